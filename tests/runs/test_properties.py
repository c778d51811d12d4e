"""Properties of settings and digests, on random values that are made from the types of the settings."""

import dataclasses
import types
import typing
from typing import Annotated, Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splagger.envs import Cheetah, MineMaze, Planning, TMaze, Walker
from splagger.errors import SettingError
from splagger.methods import METHODS, Method
from splagger.network import Network
from splagger.ppo.settings import PPOConfig
from splagger.ranges import FLOAT_MIN, Range, check, type_hints
from splagger.registry import ENVS
from splagger.runs.record import as_text
from splagger.runs.settings import _convert, override
from tests.tiny import SETTINGS, tiny

CLASSES = (PPOConfig, Network, Method, TMaze, Planning, MineMaze, Cheetah, Walker)
LETTERS = "aeNn01.,=- _/\\\n\0'\"ü٣🎲"
KINDS = {
    f"{owner.__name__}.{field.name}": type_hints(owner)[field.name]
    for owner in CLASSES
    for field in dataclasses.fields(owner)
    if field.name not in ("aggregator", "latent", "name")
}


def values(kind: Any, limits: Range | None = None) -> st.SearchStrategy:
    """Returns all valid values of a type."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        ranges = [rule for rule in kind.__metadata__ if isinstance(rule, Range)]
        return values(options[0], ranges[-1] if ranges else limits)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([values(option) for option in options])
    if origin is tuple:
        return st.lists(values(options[0]), max_size=4).map(tuple)
    if hasattr(kind, "_fields"):
        return st.builds(kind, *(values(hint) for hint in type_hints(kind).values()))
    if kind is float:
        low, high = (limits.low, limits.high) if limits else (-1e38, 1e38)
        return st.floats(low, high).filter(lambda x: not 0 < abs(x) < FLOAT_MIN)
    if kind is int:
        return st.integers(int(limits.low), int(limits.high)) if limits else st.integers(-9, 9)
    words = st.text(LETTERS, min_size=1).filter(lambda text: text.lower() != "none")
    return {bool: st.booleans(), str: words, type(None): st.none()}[kind]


@pytest.mark.parametrize("name", KINDS)
@hypothesis.settings(max_examples=20)
@given(st.data())
def test_a_setting_is_read_as_it_is_written(name, data):
    value = data.draw(values(KINDS[name]))
    read = _convert(name, as_text(value), KINDS[name])
    assert read == value and type(read) is type(value)
    check(name, read, KINDS[name])


TEXTS = st.one_of(
    st.text(LETTERS, max_size=20),
    st.floats().map(str),
    st.integers(-(10**40), 10**40).map(str),
    st.sampled_from(
        ["nan", "-inf", "1e400", "1e-400", "", ",", "1,,2", "none", "true", "1_0", "٣"]
    ),
)
GROUPS = ("ppo", "network", "method", "env")
ROWS = [ENVS[name] for name in ("t-ls-small", "planning-small", "mc-ls-small", "walker-small")]
FIELDS = sorted(
    {
        f"{group}.{field.name}"
        for row in ROWS
        for group, owner in zip(
            GROUPS, (row.ppo, row.network, METHODS["splagger"], row.env), strict=True
        )
        for field in dataclasses.fields(owner)
    }
)
NAMES = st.one_of(st.sampled_from(FIELDS), st.sampled_from(FIELDS), st.text(LETTERS, max_size=10))


@hypothesis.settings(max_examples=400)
@given(st.sampled_from(ROWS), st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3))
def test_every_text_is_a_setting_or_a_setting_error(row, overrides):
    assert len(refusal(row, overrides).splitlines()) <= 1


def refusal(row, overrides) -> str:
    """Returns why settings are refused; empty if they are accepted. Any other error is raised."""
    try:
        override(row, METHODS["splagger"], overrides)
    except SettingError as error:
        return str(error)
    return ""


CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "ppo.clip": st.floats(0, 1),
        "ppo.epochs": st.integers(1, 9),
        "ppo.anneal": st.booleans(),
        "ppo.decoded": st.none() | st.integers(1, 9),
        "network.output_size": st.integers(1, 50),
        "network.decoder_hidden": st.lists(st.integers(1, 50), min_size=1, max_size=3).map(tuple),
        "method.skip": st.floats(0, 1),
        "env.reward_right": st.floats(-10, 10, width=32),
    },
)


@hypothesis.settings(max_examples=30)
@given(CHANGES, st.randoms(use_true_random=False))
def test_the_digest_ignores_the_order_and_the_spelling_of_settings(changes, random):
    changes = {k: v for k, v in changes.items() if not _is_tiny(v)}
    items = list((SETTINGS | changes).items())
    random.shuffle(items)
    digest = tiny(overrides=SETTINGS | changes).digest
    assert tiny(overrides=dict(items)).digest == digest
    assert tiny(overrides={name: as_text(value) for name, value in items}).digest == digest


@hypothesis.settings(max_examples=30)
@given(CHANGES, CHANGES)
def test_the_digest_differs_if_a_setting_differs(one, other):
    one, other = ({k: v for k, v in c.items() if not _is_tiny(v)} for c in (one, other))
    runs = [tiny(overrides=SETTINGS | changes) for changes in (one, other)]
    same = (runs[0].row, runs[0].method) == (runs[1].row, runs[1].method)
    assert (runs[0].digest == runs[1].digest) == same


def _is_tiny(value: Any) -> bool:
    return isinstance(value, float) and 0 < abs(value) < FLOAT_MIN
