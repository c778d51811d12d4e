"""A scan in blocks computes all prefixes, in order, for operations that do not commute."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splagger.nn.scan import prefix_scan
from tests.close import assert_close

both_ways = pytest.mark.parametrize("reverse", [False, True])


def join(a, b):
    """Multiplies matrices and composes affine maps; neither operation commutes."""
    (m, (u, v)), (n, (x, y)) = a, b
    return m @ n, (u * x, x * v + y)


def elements(length, seed=0):
    """Returns rotations (some with reflections) and contractions, whose products are of order 1."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, length)
    c, s, sign = np.cos(angle), np.sin(angle), rng.choice([-1.0, 1.0], length)
    matrix = np.stack([np.stack([c, -sign * s], -1), np.stack([s, sign * c], -1)], -2)
    return matrix, (rng.uniform(0.5, 1.0, (length, 3)), rng.normal(size=(length, 3)))


def loop(tree, reverse):
    """Joins one element after another, from the start or from the end, in double precision."""
    order = range(len(tree[0]))[:: -1 if reverse else 1]
    pick = lambda t: jax.tree.map(lambda leaf: leaf[t], tree)  # noqa: E731
    totals = [pick(order[0])]
    for t in order[1:]:
        totals.append(join(totals[-1], pick(t)))
    return jax.tree.map(lambda *x: np.stack(x), *(totals[::-1] if reverse else totals))


@jax.jit
def both_directions(tree):
    return [prefix_scan(join, tree, reverse=reverse) for reverse in (False, True)]


# Blocks of each size with and without a rest; `make test-slow` tries every length up to 20.
LENGTHS = (1, 2, 3, 4, 5, 7, 9, 12, 13, 16, 17, 700)
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in range(1, 21) if n not in LENGTHS]


@pytest.mark.parametrize("length", [*LENGTHS, *SLOW])
def test_prefixes_equal_those_of_a_loop(length):
    tree = elements(length)
    for reverse, prefixes in enumerate(both_directions(tree)):
        assert_close(prefixes, loop(tree, reverse), rtol=2e-4, atol=2e-4)


@both_ways
@pytest.mark.parametrize("length", [1, 2, 3, 7, 12])
def test_prefixes_equal_those_of_the_associative_scan_of_jax(length, reverse):
    tree = elements(length)
    library = jax.jit(ft.partial(jax.lax.associative_scan, join, reverse=reverse))(tree)
    assert_close(both_directions(tree)[reverse], library, rtol=1e-4, atol=1e-5)


def test_the_two_joins_do_not_commute():
    """Otherwise the tests above would miss a wrong order."""
    a, b = (jax.tree.map(lambda leaf, t=t: leaf[t], elements(2)) for t in (0, 1))
    ab, ba = join(a, b), join(b, a)
    assert np.abs(ab[0] - ba[0]).max() > 0.1 and np.abs(ab[1][1] - ba[1][1]).max() > 0.1


def serial(join, tree, reverse):
    """The same loop, differentiable."""

    def step(total, x):
        total = join(total, jax.tree.map(lambda leaf: leaf[None], x))
        return total, jax.tree.map(lambda leaf: leaf[0], total)

    end = -1 if reverse else 0
    rest = jax.tree.map(lambda leaf: leaf[:-1] if reverse else leaf[1:], tree)
    first = jax.tree.map(lambda leaf: leaf[end][None], tree)
    _, totals = jax.lax.scan(step, first, rest, reverse=reverse)
    order = (lambda f, t: (t, f)) if reverse else (lambda f, t: (f, t))
    return jax.tree.map(lambda f, t: jnp.concatenate(order(f, t)), first, totals)


@both_ways
@pytest.mark.parametrize("length", [1, 2, 5, 12, 700])
def test_gradients_equal_those_of_a_loop(length, reverse):
    weights = elements(length, seed=1)

    def gradient(scan):
        def loss(tree):
            result = scan(join, tree, reverse=reverse)
            return sum(map(jnp.vdot, jax.tree.leaves(result), jax.tree.leaves(weights)))

        return jax.grad(loss)

    tree = jax.tree.map(jnp.float32, elements(length))
    ours, expected = jax.jit(lambda tree: [gradient(s)(tree) for s in (prefix_scan, serial)])(tree)
    assert_close(ours, expected, rtol=1e-3, atol=1e-3)


@both_ways
def test_a_batched_scan_equals_each_scan_alone(reverse):
    many = [elements(11, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: np.stack(x, 1), *many)
    in_axis_1 = jax.vmap(ft.partial(prefix_scan, join, reverse=reverse), in_axes=1, out_axes=1)
    expected = jax.tree.map(lambda *x: np.stack(x, 1), *(loop(tree, reverse) for tree in many))
    assert_close(jax.jit(in_axis_1)(stacked), expected, rtol=1e-4, atol=1e-5)


def test_integers_are_added_exactly():
    x = jnp.arange(1, 101)
    found = jax.jit(ft.partial(prefix_scan, jnp.add))(x)
    np.testing.assert_array_equal(found, np.cumsum(np.arange(1, 101)))
