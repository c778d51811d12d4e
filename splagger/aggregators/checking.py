"""A check of the aggregator laws on random numbers."""

import dataclasses
import functools as ft
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from splagger.aggregators.monoid import AbstractAggregator
from splagger.errors import FOREIGN_ERRORS, SettingError, UserError, cause_of, kind_of

TOLERANCE = 1e-4  # relative to the largest number: sums of floats depend on their order


def check_parameters(aggregator: AbstractAggregator) -> None:
    """Raises a SettingError that names the first field that cannot be trained: all fields but static ones are."""
    for field in dataclasses.fields(aggregator):
        value = getattr(aggregator, field.name)
        if isinstance(value, AbstractAggregator):
            check_parameters(value)
        elif not field.metadata.get("static"):
            problems = [
                _problem(leaf, "float" in str(field.type)) for leaf in jax.tree.leaves(value)
            ]
            for problem in filter(None, problems):
                raise SettingError(f"{type(aggregator).__name__}: {field.name} {problem}")


def _problem(leaf: Any, declared: bool) -> str:
    """What is wrong with a trained leaf; `declared`: its field is annotated as a float, which may be written as 2."""
    if hasattr(leaf, "dtype"):
        is_float, is_finite = jnp.issubdtype(leaf.dtype, jnp.floating), True
    else:
        is_float = type(leaf) is float or (type(leaf) is int and declared)
        is_finite = not is_float or math.isfinite(leaf)
    if not is_float:
        shown = f"{kind_of(leaf)} {leaf!r:.40}"
        return f"holds {shown}, and only floats are trained: declare it with eqx.field(static=True)"
    return "" if is_finite else f"must be finite, got {leaf}"


def check_aggregator(aggregator: AbstractAggregator, size: int = 8) -> None:
    """Raises a SettingError that names the first law that does not hold for encodings of `size` numbers.

    `combine` must be associative and commutative, and `empty` its unit. Otherwise a memory would depend on how
    a sequence is cut into pieces. `read` must return a vector.

    >>> from splagger.aggregators import Max
    >>> check_aggregator(Max())
    """
    if not isinstance(aggregator, AbstractAggregator):
        raise SettingError(
            f"an aggregator must be an instance of a class, got {kind_of(aggregator)}"
        )
    check_parameters(aggregator)
    try:
        hash(aggregator)
    except TypeError:  # of arrays
        _check_laws.__wrapped__(aggregator, size)
    else:
        _check_laws(aggregator, size)


@ft.cache
def _check_laws(aggregator: AbstractAggregator, size: int) -> None:
    name = type(aggregator).__name__
    a, b, c = jr.normal(jr.key(0), (3, size))
    lift, combine = eqx.filter_jit(aggregator.lift), eqx.filter_jit(aggregator.combine)
    try:
        x, y, z, unit = lift(a), lift(b), lift(c), aggregator.empty(a)
        read = aggregator.read(x)
        sides = {
            "combine is not associative": (combine(combine(x, y), z), combine(x, combine(y, z))),
            "combine is not commutative": (combine(x, y), combine(y, x)),
            "empty is not a unit of combine": (combine(unit, x), x),
            "empty is not a unit of combine, on the right": (combine(x, unit), x),
        }
    except ValueError as error:
        raise SettingError(f"{name}: {error}") from error
    except UserError:
        raise
    except FOREIGN_ERRORS as error:
        raise SettingError(f"{name} cannot be used ({cause_of(error)})") from error
    if getattr(read, "ndim", None) != 1:
        raise SettingError(f"{name}: read must return a vector, got shape {jnp.shape(read)}")
    if not bool(jnp.isfinite(read).all()):
        raise SettingError(
            f"{name}: read must return finite numbers, got {read!s:.60} for random encodings"
        )
    for part, found in {"empty": unit, "combine": combine(x, y)}.items():
        if _kinds(found) != _kinds(x):
            raise SettingError(
                f"{name}: {part} and lift must return aggregates of the same shapes and types, got {_kinds(found)} and "
                f"{_kinds(x)}"
            )
    for problem, (left, right) in sides.items():
        if jax.tree.structure(left) != jax.tree.structure(right):
            raise SettingError(f"{name}: combine must not change the structure of an aggregate")
        # Compare what is read: different aggregates may represent the same encodings.
        left, right = (aggregator.read(side) for side in (left, right))
        scale = max(1.0, float(jnp.abs(right).max(initial=0.0)))
        if not jnp.allclose(left, right, rtol=0, atol=TOLERANCE * scale):
            off = float(jnp.abs(left - right).max())
            raise SettingError(f"{name}: {problem} (off by {off:.3g})")


def _kinds(aggregate: Any) -> Any:
    """The types and shapes of an aggregate's arrays, as JAX writes them: float32[8]."""
    one = lambda leaf: f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"  # noqa: E731
    return jax.tree.map(one, aggregate)
