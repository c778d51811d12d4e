"""Splitting a computation into the part that depends on its early argument alone, and the rest."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

INLINED = ("jit", "closed_call")


class _Operation(NamedTuple):
    """A primitive operation. Inputs are numbers of values, or constants; outputs are numbers of values."""

    equation: Any
    inputs: list[Any]
    outputs: list[int]


class _Constant(NamedTuple):
    value: Any


def in_two_stages(function: Callable, early: Any, late: Any) -> tuple[Callable, Callable]:
    """Returns (first, second) with second(first(early), late) = function(early, late).

    `first` does all operations that do not depend on `late`. The arguments give shapes and dtypes only. A loop can
    compute `first` for all of its steps at once: random numbers, for example, if `early` has a key.

    >>> import jax.numpy as jnp
    >>> first, second = in_two_stages(lambda x, y: jnp.sin(x) + y, jnp.ones(2), jnp.ones(2))
    >>> [x.tolist() for x in first(jnp.zeros(2))]
    [[0.0, 0.0]]
    >>> second(first(jnp.zeros(2)), jnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(early, late)
    structure = jax.tree.structure(shape)
    values = list(range(len(closed.jaxpr.invars)))
    operations: list[_Operation] = []
    results = _inline(closed, values, operations, iter(range(len(values), 10**9)))

    # A value is early, late, or a constant, which both stages compute.
    count = len(jax.tree.leaves(early))
    first_inputs, second_inputs = values[:count], values[count:]
    is_early, is_late = set(first_inputs), set(second_inputs)
    for operation in operations:
        inputs = [x for x in operation.inputs if not isinstance(x, _Constant)]
        if any(x in is_late for x in inputs):
            is_late.update(operation.outputs)
        elif any(x in is_early for x in inputs):
            is_early.update(operation.outputs)
    first_stage = [o for o in operations if not is_late.intersection(o.outputs)]
    second_stage = [o for o in operations if not is_early.intersection(o.outputs)]
    used = [x for o in second_stage for x in o.inputs] + results
    passed = sorted({x for x in used if not isinstance(x, _Constant) and x in is_early})

    def first(early):
        known = dict(zip(first_inputs, jax.tree.leaves(early), strict=True))
        return _evaluate(first_stage, known, passed)

    def second(passed_values, late):
        known = dict(zip(second_inputs, jax.tree.leaves(late), strict=True))
        known |= dict(zip(passed, passed_values, strict=True))
        return jax.tree.unflatten(structure, _evaluate(second_stage, known, results))

    return first, second


def _inline(closed, inputs, operations, numbers) -> list[Any]:
    """Appends all operations of a jaxpr, with those of the functions that it calls; returns its results."""
    jaxpr = closed.jaxpr
    names = dict(zip(jaxpr.constvars, map(_Constant, closed.consts), strict=True))
    names |= dict(zip(jaxpr.invars, inputs, strict=True))
    read = lambda x: _Constant(x.val) if hasattr(x, "val") else names[x]  # noqa: E731
    for equation in jaxpr.eqns:
        arguments = [read(x) for x in equation.invars]
        if equation.primitive.name in INLINED:
            outputs = _inline(
                equation.params.get("jaxpr") or equation.params["call_jaxpr"],
                arguments,
                operations,
                numbers,
            )
        else:
            outputs = [next(numbers) for _ in equation.outvars]
            operations.append(_Operation(equation, arguments, outputs))
        names |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _evaluate(operations, known: dict[int, Any], wanted) -> list[Any]:
    read = lambda x: x.value if isinstance(x, _Constant) else known[x]  # noqa: E731
    for equation, inputs, outputs in operations:
        primitive = equation.primitive
        parameters = primitive.get_bind_params(equation.params)
        result = primitive.bind(*map(read, inputs), **parameters)
        results = result if primitive.multiple_results else [result]
        known |= dict(zip(outputs, results, strict=True))
    return [read(x) for x in wanted]
