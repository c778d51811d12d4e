"""What GPUs need: number types of matmuls, kernels, and derivatives written by hand."""
