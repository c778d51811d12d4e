"""Objects and code as plain data: what differs in behavior differs in its description, in every process."""

import dataclasses
import functools as ft
import json
import logging
import os
import pathlib
import py_compile
import subprocess
import sys
import threading
import typing
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splagger.bridges.by_value import ByValue
from splagger.envs import MetaEnv, TMaze
from splagger.identity import agrees, differences, digest_of, plain
from splagger.identity.code import is_stale
from splagger.identity.content import Content, _around
from splagger.memory.encoders import ENCODERS, Pointwise
from splagger.runs.run import Run


def digest(value) -> str:
    return digest_of({"of": json.loads(json.dumps(Content().of(value)))})


class Linear(typing.NamedTuple):
    a: float

    def __call__(self, x):
        return self.a * x


class Square(typing.NamedTuple):
    a: float

    def __call__(self, x):
        return self.a * x * x


class Noise:
    """Its method has the name of an attribute by which Equinox finds functions."""

    def __init__(self, scale):
        self.scale = scale

    def method(self, x):
        return x * self.scale

    def __len__(self):
        return 0


class Door:
    def __init__(self):
        self.kind, self.code = "exit", 7

    def open(self):
        return 1


class Trap(Door):
    def open(self):
        return -1


class Table(dict):
    def __missing__(self, key):
        return 9


def level(n, decorate=lambda f: f):
    class Level:
        size = n

        @decorate
        def f(self):
            return n

    return Level


def times(n):
    def decorate(f):
        @ft.wraps(f)
        def g(*args):
            return n * f(*args)

        return g

    return decorate


def twice(x, y):
    return x + 2 * y


def defaults(a, b):
    return lambda x, a=a, b=b: x


PAIRS = {
    "named tuples of two classes": (Linear(2.0), Square(2.0)),
    "objects with a method called method": (Noise(1), Noise(100)),
    "attributes called method": (SimpleNamespace(method=twice, n=1), SimpleNamespace(method=twice)),
    "methods of falsy objects": (Noise(1).method, Noise(2).method),
    "methods of a dictionary": ({0: 1}.get, {0: 9}.get),
    "classes with variables around them": (level(3), level(9)),
    "objects of such classes": (level(3)(), level(9)()),
    "attributes kind and code": (Door(), Trap()),
    "random generators": (np.random.default_rng(0), np.random.default_rng(1)),
    "keys 1 and '1'": ({1: 2, "1": 0}, {1: 0, "1": 2}),
    "partial functions": (ft.partial(Linear, of=1), ft.partial(Square, of=1)),
    "dictionaries of other classes": (Table(a=1), {"a": 1}),
    "decorated functions": (times(2)(twice), times(9)(twice)),
    "mapped functions": (jax.vmap(twice, (0, None)), jax.vmap(twice, (None, 0))),
    "derivatives": (twice, jax.grad(twice)),
    "defaults": (defaults(1, 23), defaults(12, 3)),
    "functions as defaults": (defaults(0, jax.random.normal), defaults(0, jax.random.uniform)),
    "arrays of objects": (np.array([twice, None], object), np.array([digest, None], object)),
    "bytes": (b"1", bytearray(b"1")),
    "classes of NumPy": (np.float32, np.float64),
}


@dataclasses.dataclass(frozen=True)
class Paid:
    """Its argument is not a field."""

    paid: dataclasses.InitVar[float] = 1.0

    def __post_init__(self, paid):
        object.__setattr__(self, "_paid", paid)


PRICE = 1.0


@dataclasses.dataclass(frozen=True)
class Priced:
    def price(self):
        return [PRICE for _ in range(2)]


class Elman(Pointwise):
    pass


@pytest.mark.parametrize("price", [1.0, 9.0])
def test_constants_of_a_module_are_described(price, monkeypatch):
    monkeypatch.setitem(globals(), "PRICE", price)
    _around.cache_clear()
    assert plain(Priced())["around"] == {"Priced.price.PRICE": price}
    _around.cache_clear()


def test_the_code_of_a_custom_encoder_is_described(monkeypatch):
    ours = Run.create("t-ls", "rnn").describe()
    assert "encoder" not in ours
    monkeypatch.setitem(
        ENCODERS, "gru", lambda key, inputs, width, context: Elman.create(key, inputs, width)
    )
    found = Run.create("t-ls", "rnn").describe()
    assert [part.get("class", "")[-5:] for part in found["encoder"]] == ["", "Elman"]
    assert digest_of(found) != digest_of(ours) and agrees(
        found, ours
    )  # older records do not have it
    other = found | {"encoder": [*found["encoder"][:1], {"class": "Elman", "code": "0"}]}
    assert not agrees(found, other)


@dataclasses.dataclass(frozen=True)
class Rewarded:
    reward: typing.Any


class Bonus(MetaEnv):
    bonus: float = eqx.field(static=True, default=0.0)


def attribute(n):
    @dataclasses.dataclass(frozen=True)
    class Attribute:
        size = n

    return Attribute()


def default(n):
    @dataclasses.dataclass(frozen=True)
    class Default:
        def f(self, x=n):
            return x

    return Default()


SETTINGS = {
    "arguments that are not fields": (Paid(1.0), Paid(5.0)),
    "named tuples": (Linear(1.0), Square(1.0)),
    "parts that are named tuples": (Rewarded(Linear(1.0)), Rewarded(Square(1.0))),
    "attributes of a class that a function made": (attribute(1), attribute(100)),
    "defaults in a class that a function made": (default(1), default(100)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_behave_differently_are_described_differently(name):
    first, second = SETTINGS[name]
    assert digest_of({"of": plain(first)}) != digest_of({"of": plain(second)})


def test_fields_of_a_custom_meta_environment_make_another_experiment():
    runs = [Run.create(Bonus(env=TMaze(length=5), episodes=2, bonus=b), "rnn") for b in (0.0, 9.0)]
    first, second = (run.describe() for run in runs)
    assert runs[0].digest != runs[1].digest and not agrees(first, second)
    assert list(differences(second, first)) == ["meta.own fields.bonus was 0.0 and is 9.0"]
    older = first | {"meta": {k: v for k, v in first["meta"].items() if k != "own fields"}}
    assert agrees(first, older)  # recorded before fields were


@pytest.mark.parametrize("name", PAIRS)
def test_what_behaves_differently_is_described_differently(name):
    one, other = PAIRS[name]
    assert digest(one) == digest(one) != digest(other)


CLASSES = {
    "private tuple": ("  _goals = (1, 2)", "  _goals = (3, 4)"),
    "private array": ("  _map = np.arange(3)", "  _map = np.arange(4)"),
    "kept value": (
        "  @ft.cached_property\n  def f(self): return 1",
        "  @ft.cached_property\n  def f(self): return 2",
    ),
    "class inside": (
        "  class P:\n    def f(self): return 1",
        "  class P:\n    def f(self): return 2",
    ),
    "function as default": (
        "  def f(self, g=np.sin): return g",
        "  def f(self, g=np.cos): return g",
    ),
    "defaults": ("  def f(self, a=1, b=23): return a", "  def f(self, a=12, b=3): return a"),
    "partial method": (
        "  def f(self, x): return x\n  g = ft.partialmethod(f, 1)",
        "  def f(self, x): return x\n  g = ft.partialmethod(f, 2)",
    ),
    "a field called code": (
        "  code: int = 1\n  def f(self): return 1",
        "  code: int = 1\n  def f(self): return 2",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_an_edited_class_of_a_notebook_is_described_differently(name):
    """Such a class has no source."""

    def described(body):
        space = {"__name__": "__main__", "eqx": eqx, "np": np, "ft": ft}
        exec(f"class E(eqx.Module):\n{body}", space)
        return digest_of(plain(space["E"]()))

    one, other = CLASSES[name]
    assert described(one) == described(one) != described(other)


IN_A_PROCESS = """
import functools as ft, json, logging, pathlib
import numpy as np
from beartype import beartype
from jaxtyping import Array, Float, jaxtyped
from splagger.identity.content import Content
from splagger.runs.run import Run

@ft.cache
def read(path):
    return "a level"

@jaxtyped(typechecker=beartype)
class Checked:
    def f(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        return x

class Handlers:
    def __init__(self):
        self.table = {self.left: 0, frozenset("abc"): 1}

    def left(self, x):
        return x

path = pathlib.Path("level.txt")
read(path)  # a path keeps its hash, which depends on the process
handlers = [Handlers() for _ in range(3)]
found = path, Handlers(), np.array([read, Handlers], object), {"n", "e", "s"}, set(handlers), handlers, Checked(), Checked().f, logging.getLogger("mine"), ft.partial(read)
print(json.dumps(Content().of(found)))
"""


def test_descriptions_do_not_depend_on_the_process():
    found = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", IN_A_PROCESS],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_graphs_of_objects_are_described_once_each():
    """A path through them for every order of the objects would take years."""

    def rooms(n, last):
        found = [SimpleNamespace(exits=[]) for _ in range(n)]
        for room in found:
            room.exits = [other for other in found if other is not room]
        found[-1].last = last
        return found

    assert digest(rooms(12, 1)) == digest(rooms(12, 1)) != digest(rooms(12, 2))
    assert len(json.dumps(Content().of(rooms(12, 1)))) < 10_000
    shared = [1, 2]
    assert digest([shared, shared]) == digest([[1, 2], [1, 2]])


def test_what_cannot_be_described_is_named(capsys):
    assert Content().of(SimpleNamespace(lock=threading.Lock()))
    assert "cannot be described" in capsys.readouterr().err
    assert Content().of(logging.getLogger("a.b")) == "logger a.b"


def test_a_class_of_a_running_script_has_the_path_of_the_module(monkeypatch):
    """A second script that imports it describes it in the same way."""
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__="/here/trainer.py"))
    monkeypatch.setattr(Door, "__module__", "__main__")
    assert Content().of(Door())["kind"] == "trainer:Door"


def test_a_file_that_was_edited_after_its_import_is_noticed(tmp_path, monkeypatch, capsys):
    """Before the class is used for the first time: the digest is that of the loaded code."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "edited_later.py"
    body = "class Bandit:\n    def step(self): return {}\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    file.write_text(body.format(1))
    py_compile.compile(str(file))  # as the import does
    loaded = __import__("edited_later").Bandit
    assert not is_stale(loaded)
    file.write_text(body.format(100))
    found = Content().of(loaded())
    assert is_stale(loaded) and "was edited after it was imported" in capsys.readouterr().err
    del sys.modules["edited_later"]
    file.with_suffix(".py").touch()
    pathlib.Path(py_compile.compile(str(file)) or "").exists()
    again = __import__("edited_later").Bandit
    assert Content().of(again())["code"] != found["code"]
    del sys.modules["edited_later"]


def test_parameters_are_described_with_all_their_digits():
    """Whatever a script has set for printing."""
    of = lambda *numbers: digest_of(plain_of(ByValue(jnp.array(numbers))))  # noqa: E731
    before = of(1.001), of(1.002)
    with np.printoptions(precision=2):
        assert (of(1.001), of(1.002)) == before and before[0] != before[1]
    assert of(0.00012345) != of(0.000123454)
    half = [ByValue(jnp.array(x, jnp.bfloat16)) for x in (1.0, 2.0)]
    assert digest_of(plain_of(half[0])) != digest_of(plain_of(half[1]))
    keys = [ByValue(jax.random.key(seed)) for seed in (0, 1)]
    assert keys[0] != keys[1] and keys[0] == ByValue(jax.random.key(0))


def plain_of(value: ByValue):
    return {name: Content().of(part) for name, part in value.describe().items()}


def test_differences_begin_where_they_are():
    long = "x" * 500
    (text,) = differences({"a": {"b": long + "1"}}, {"a": {"b": long + "2"}})
    assert "2'" in text and "1'" in text and len(text) < 150
    assert list(differences({"a": None}, {})) == ["a was missing and is None"]
    assert list(differences({"a": (1, 2)}, {"a": [1, 2]})) == []


def test_what_decorators_keep_is_not_described():
    """A counter or a cache changes while the environment is used."""
    calls = []

    def counted(f):
        @ft.wraps(f)
        def g(*args):
            calls.append(args)
            return f(*args)

        return g

    class Env(eqx.Module):
        @counted
        def reset(self, key):
            return key

    before = plain(Env())
    Env().reset(0)
    assert plain(Env()) == before and "around" not in before


def test_variables_around_a_class_are_those_of_its_first_use():
    """A memory that its functions share would change with every step."""
    seen = []

    class Env(eqx.Module):
        def reset(self, key):
            seen.append(key)

    before = plain(Env())
    Env().reset(0)
    assert plain(Env()) == before and before["around"]
    older = {name: part for name, part in before.items() if name != "around"}
    assert agrees({"environment": before}, {"environment": older})
    assert not agrees({"environment": before}, {"environment": before | {"around": {}}})


def test_modules_that_python_does_not_cache_are_not_stale(tmp_path, monkeypatch):
    """Their cache may be older than they are."""
    file = tmp_path / "touched.py"
    file.write_text("class Bandit: pass\n")
    py_compile.compile(str(file))
    os.utime(file, (1, 1))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not is_stale(__import__("touched").Bandit)
    del sys.modules["touched"]
