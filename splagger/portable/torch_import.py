"""PyTorch if it is installed, and one line that says how to install it if it is not."""

from typing import Any

from splagger.errors import SettingError

try:
    import torch  # pyright: ignore[reportMissingImports]
except ImportError:
    torch: Any = None

Module: Any = torch.nn.Module if torch else object
Tensor = Any  # torch.Tensor


def require_torch() -> None:
    """Raises a SettingError if PyTorch is not installed."""
    if torch is None:
        raise SettingError("PyTorch is not installed; install it with: pip install torch")
