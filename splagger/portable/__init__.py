"""Trained agents outside JAX: a player that needs NumPy only, and SplAgger's memory for PyTorch."""

from splagger.portable.numpy_player import NumpyPlayer as NumpyPlayer
from splagger.portable.numpy_player import load as load
