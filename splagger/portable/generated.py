"""Networks that a hypernetwork generates, in NumPy."""

import numpy as np

from splagger.portable.arrays import Arrays, Vector

KEPT = 128  # inputs whose first products are kept: 27 kB each at full size


class GeneratedNetwork:
    """Layers Σₖ z̃ₖ (x Hₖ + bₖ) with tanh between them, for terms z̃ and an input x.

    The products x Hₖ are most of the work, and those of the first layer depend on x alone. They are kept, because many
    environments show the same observations again and again.
    """

    def __init__(self, arrays: Arrays):
        self._layers, self._kept = [], dict[bytes, Vector]()
        while arrays.has(f"layers.{len(self._layers)}.weight"):
            layer = arrays.below(f"layers.{len(self._layers)}")
            weight = layer.get("weight")  # [in, terms, out]
            self._layers.append((weight.reshape(len(weight), -1), layer.get("bias")))
        self.output_size = self._layers[-1][1].shape[1]

    def __call__(self, x: Vector, terms: Vector) -> Vector:
        wide = self._first_products(x)
        for (_, bias), (weight, _) in zip(self._layers, self._layers[1:], strict=False):
            wide = np.dot(np.tanh(np.dot(terms, wide.reshape(bias.shape) + bias)), weight)
        bias = self._layers[-1][1]
        return np.dot(terms, wide.reshape(bias.shape) + bias)

    def _first_products(self, x: Vector) -> Vector:
        key = x.tobytes()
        if key not in self._kept:
            if len(self._kept) == KEPT:
                self._kept.pop(next(iter(self._kept)))  # the oldest
            self._kept[key] = np.dot(x, self._layers[0][0])
        return self._kept[key]
