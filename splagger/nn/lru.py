"""The linear recurrent unit (LRU): a diagonal linear recurrence with complex states (Orvieto et al., 2023)."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.encoder import AbstractEncoder
from splagger.nn.gpu.recurrence import empty_if
from splagger.nn.layers import Linear
from splagger.nn.scan import over_axes, prefix_scan


class Complex(NamedTuple):
    """Complex numbers as pairs of float32: number types, checkpoints and GPU matmuls stay real."""

    real: Float[Array, "*shape"]
    imaginary: Float[Array, "*shape"]

    def times(self, other: "Complex") -> "Complex":
        return Complex(
            self.real * other.real - self.imaginary * other.imaginary,
            self.real * other.imaginary + self.imaginary * other.real,
        )

    def plus(self, other: "Complex") -> "Complex":
        return Complex(self.real + other.real, self.imaginary + other.imaginary)


class LRU(AbstractEncoder):
    """A linear recurrent unit: s' = λ·s + γ·(B x);  y = Re(C s') + D x;  output = (E y)·σ(F y).

    The eigenvalues are λ = exp(-exp(ν) + i exp(θ)), which keeps |λ| below 1. The gated output is the nonlinearity
    that follows the recurrence in the published block. B, C, E and F are each stacked in one matrix.

    >>> lru = LRU.create(jr.key(0), 5, 8)
    >>> state, output = lru.step(lru.start(), jnp.ones(5), reset=False)
    >>> lru.unroll(state, jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    nu: Float[Array, " N"]
    theta: Float[Array, " N"]
    log_gamma: Float[Array, " N"]
    input: Linear  # D → real and imaginary parts of N states
    output: Linear  # those and the input → H
    gate: Linear  # H → 2 H

    @classmethod
    def create(
        cls,
        key: Key[Array, ""],
        inputs: int,
        width: int,
        radii: tuple[float, float] = (0.9, 0.999),
        largest_phase: float = math.pi / 10,
    ) -> "LRU":
        """Builds an LRU with `width` complex states and `width` outputs.

        - `radii`: |λ| starts uniformly distributed over the area of this ring.
        - `largest_phase`: the phase of λ starts uniformly distributed from 0 to this.

        γ starts at √(1 - |λ|²), so that white noise gives states of the same variance for every λ.
        """
        ring, phase, input_key, output_key, gate_key = jr.split(key, 5)
        low, high = (radius**2 for radius in radii)
        squared_radius = jr.uniform(ring, (width,), minval=low, maxval=high)
        return cls(
            jnp.log(-0.5 * jnp.log(squared_radius)),
            jnp.log(largest_phase * jr.uniform(phase, (width,), minval=1e-3)),
            0.5 * jnp.log1p(-squared_radius),
            _normal_linear(input_key, inputs, 2 * width, (2 * inputs) ** -0.5),
            _normal_linear(output_key, 2 * width + inputs, width, (2 * width + inputs) ** -0.5),
            Linear.create(gate_key, width, 2 * width),
        )

    @property
    def input_size(self) -> int:
        return self.input.weight.shape[1]

    def start(self) -> Complex:
        return Complex(jnp.zeros_like(self.nu), jnp.zeros_like(self.nu))

    def step(self, state: Complex, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input."""
        state = self._eigenvalues().times(empty_if(reset, state)).plus(self._driven(x))
        return state, self._read(state, x)

    def unroll(self, state: Complex, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(
        self, state: Complex, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ):
        """Returns (last states, all T outputs) of a batch of sequences, by one associative scan."""
        new = over_axes(self._driven, resets.ndim)(xs)
        rows = jax.tree.map(lambda x: jnp.broadcast_to(x, new.real.shape), self._eigenvalues())
        decays = empty_if(resets[..., None], rows)
        carried = jax.tree.map(lambda x: x[0], decays).times(state)
        new = jax.tree.map(lambda b, first: b.at[0].add(first), new, carried)
        _, states = prefix_scan(_join, (decays, new))
        outputs = over_axes(self._read, resets.ndim)(states, xs)
        return jax.tree.map(lambda s: s[-1], states), outputs

    def _eigenvalues(self) -> Complex:
        """Returns λ."""
        radius, phase = jnp.exp(-jnp.exp(self.nu)), jnp.exp(self.theta)
        return Complex(radius * jnp.cos(phase), radius * jnp.sin(phase))

    def _driven(self, x: Float[Array, " D"]) -> Complex:
        """Returns γ·(B x)."""
        gamma = jnp.exp(self.log_gamma)
        return Complex(*(gamma * part for part in jnp.split(self.input(x), 2)))

    def _read(self, state: Complex, x: Float[Array, " D"]) -> Float[Array, " H"]:
        """Returns (E y)·σ(F y) with y = Re(C s) + D x."""
        y = self.output(jnp.concatenate([*state, x]))
        value, gate = jnp.split(self.gate(y), 2)
        return value * jax.nn.sigmoid(gate)


def _normal_linear(key, inputs: int, outputs: int, scale: float) -> Linear:
    return Linear(scale * jr.normal(key, (outputs, inputs)), jnp.zeros(outputs))


def _join(first, second):
    """Composes two steps s → a·s + b of a linear recurrence."""
    (a, b), (c, d) = first, second
    return a.times(c), c.times(b).plus(d)
