"""Code for GPUs: number types of matmuls, kernels, and derivatives written by hand."""
