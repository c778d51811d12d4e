"""Programs for a GPU, lowered on a machine without one."""

import jax
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

# Since JAX 0.12, Pallas lowers kernels for a device that it knows.
H200 = AbstractDevice(device_kind="NVIDIA H200", num_cores=132, platform="gpu")


def lowered(function, *args) -> str:
    """Returns the program of a function for a GPU: everything but the machine code."""
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=H200)):
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
