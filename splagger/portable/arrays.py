"""The arrays of an agent file by their names, and layers that NumPy computes from them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splagger.errors import SettingError

Vector = NDArray[np.float32]


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)) as (1 + tanh(x / 2)) / 2, which does not overflow."""
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)


class Arrays:
    """The arrays of an agent below one name, which remember whether they were used."""

    def __init__(self, arrays: Mapping[str, NDArray], used: set[str], name: str):
        self._arrays, self._used, self._name = arrays, used, name

    def below(self, name: str) -> "Arrays":
        return Arrays(self._arrays, self._used, f"{self._name}.{name}")

    def has(self, name: str) -> bool:
        return f"{self._name}.{name}" in self._arrays

    def get(self, name: str) -> Any:
        self._used.add(f"{self._name}.{name}")
        return np.ascontiguousarray(self._arrays[f"{self._name}.{name}"], np.float32)

    def linear(self, name: str) -> Callable[[Vector], Vector]:
        weight, bias = self.below(name).get("weight"), self.below(name).get("bias")
        return lambda x: np.dot(weight, x) + bias

    def layer_norm(self, name: str) -> Callable[[Vector], Vector]:
        scale, offset = self.below(name).get("scale"), self.below(name).get("offset")

        def normalize(x: Vector) -> Vector:
            centered = x - x.mean()
            deviation = np.sqrt((centered * centered).mean() + np.float32(1e-5))
            return scale * centered / deviation + offset

        return normalize

    def moments(self, name: str) -> Callable[[Vector], Vector]:
        self.below(name).get("count")
        if not self.below(name).has("mean"):  # of no numbers: the observations are only images
            return lambda x: x
        mean, variance = self.below(name).get("mean"), self.below(name).get("variance")
        scale = 1 / np.sqrt(variance + np.float32(1e-8))
        return lambda x: (x - mean) * scale


def built(table: Mapping[str, Any], about: Mapping[str, Any], what: str) -> Any:
    """Returns the row of a described object; a custom class is unknown, also one with the name of one of ours."""
    return known(table, "custom" if "code" in about else about["kind"], what)


def known(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        known = ", ".join(table)
        raise SettingError(
            f"the NumPy player has no {what} {name!r}, only {known}; load it by splagger.load"
        )
    return table[name]
