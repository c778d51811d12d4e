"""Pictures from run folders: numpy and matplotlib, no jax."""
