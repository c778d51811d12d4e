"""Statistics and pictures from run folders: numpy, pandas and matplotlib, no jax."""
