"""Settings by name: texts and numbers become the type of the field, and mistakes are refused."""

import json
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from splagger.aggregators import Max, Mean, Softmax, StraightThrough
from splagger.cli.list_commands import settings_of
from splagger.envs import EnvSpec, MetaEnv, Step
from splagger.errors import SettingError
from splagger.memory import EmbeddingSizes
from splagger.methods import METHODS
from splagger.ranges import Count
from splagger.runs.record import setting_of
from splagger.runs.run import Run
from splagger.spaces import Discrete
from tests.tiny import SETTINGS, tiny


class Plain:
    """The functions of an environment."""

    spec = EnvSpec("plain", 1, Discrete(2), 3)

    def sample_task(self, key):
        return ()

    def reset(self, key, task):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, key, task, time, action):
        return time + 1, Step(jnp.zeros(1), jnp.zeros(()), jnp.zeros((), bool), time == 2)


@dataclass(frozen=True)
class Part:
    goal: int = 3
    speed: float = 1.0


@dataclass(frozen=True)
class Marked(Plain):
    """An environment of others: only type checkers know all of its types."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("inner",)

    mode: str = "easy"
    table: "Table | None" = None
    part: Part = Part()
    inner: Part = Part()


@dataclass(frozen=True)
class Pairs(Plain):
    pair: tuple[int, float] = (1, 2.5)
    either: Count | str = 3
    weight: "float | np.ndarray" = 0.5


def of_env(env, **overrides):
    """Returns the environment with these settings."""
    named = {f"env.{name.replace('__', '.')}": value for name, value in overrides.items()}
    return Run.create(MetaEnv(env, 1), "rnn", overrides=named).row.env


CONVERSIONS = [
    ("ppo.epochs", "3", 3),
    ("ppo.buffer", "1e5", 100_000),
    ("ppo.clip", "2e-1", 0.2),
    ("ppo.clip", "1", 1.0),
    ("ppo.anneal", "true", True),
    ("ppo.anneal", "False", False),
    ("ppo.decoded", "none", None),
    ("ppo.decoded", "7", 7),
    ("network.hidden", "16,8", (16, 8)),
    ("network.hidden", "16", (16,)),
    ("env.signals", "", ()),
    ("env.signals", "1,3", (1, 3)),
    ("env.noise_up", "0.25", 0.25),
]


@pytest.mark.parametrize("name, text, value", CONVERSIONS)
def test_texts_are_converted_to_the_type_of_the_setting(name, text, value):
    run = tiny(overrides=SETTINGS | {name: text})
    part, field = name.split(".")
    found = getattr(getattr(run.row, part), field)
    assert found == value and type(found) is type(value)


MISTAKES = [
    ("ppo.epochs", "2.5", r"ppo\.epochs must be of type int, got '2\.5'"),
    ("ppo.epochs", "two", r"ppo\.epochs must be of type int, got 'two'"),
    ("ppo.epochs", "inf", r"ppo\.epochs .*inf"),
    ("ppo.epochs", "0", r"ppo\.epochs must be at least 1, got 0"),
    ("ppo.clip", "small", r"ppo\.clip must be of type float, got 'small'"),
    ("ppo.clip", "nan", r"ppo\.clip must be a finite number ≥ 0, got nan"),
    ("ppo.anneal", "yes", r"ppo\.anneal must be of type bool, got 'yes'"),
    ("ppo.decoded", "all", r"ppo\.decoded must be of type int.*, got 'all'"),
    ("network.hidden", "16,x", r"network\.hidden must be of type int, got 'x'"),
    ("network.embedding", "4,4", r"network\.embedding takes 3 values, got 2"),
    ("network.embedding", "4,4,0", r"network\.embedding must be positive"),
    ("network.width_factor", "-1", r"network\.width_factor must be positive, got -1"),
    ("ppo.discount", "1.5", r"ppo\.discount must lie in 0 … 1, got 1\.5"),
    ("ppo.decoded", "-5", r"ppo\.decoded must be at least 1, or none, got -5"),
    ("ppo.steps", 64.5, r"ppo\.steps must be of type int, got 64\.5"),
    ("ppo.envs", True, r"ppo\.envs must be of type int, got True"),
    ("ppo.clip", None, r"ppo\.clip must be of type float, got None"),
    ("ppo.update_noise", 3, r"ppo\.update_noise must be of type str, got 3"),
    ("network.hidden", 32, r"network\.hidden takes several values, got 32"),
    ("env.length", 20.5, r"env\.length must be of type int, got 20\.5"),
    ("env.length", "1", "length must be at least 2, got 1"),
    ("ppo.minibatches", "7", r"ppo\.minibatches=7 does not divide the 80 steps"),
    ("ppo.cilp", "1", r"no ppo setting 'cilp'; did you mean clip\?"),
    ("pop.clip", "1", r"no setting group 'pop'; did you mean ppo\?"),
    ("clip", "1", r"no setting 'clip'; did you mean ppo\.clip\?"),
    ("clop", "1", "no setting group 'clop'; there are env, method, network, ppo"),
    ("ppo", "1", r"settings are written ppo\.NAME, got 'ppo' alone"),
    (
        "ppo.clip",
        "0.1,0.2",
        "ppo.clip must be of type float, got '0.1,0.2'; several values are for sweeps",
    ),
    ("method.aggregator.flor", "1", r"no method\.aggregator setting 'flor'; did you mean floor"),
    ("method.aggregator.floor", "x", "method.aggregator.floor must be of type float, got 'x'"),
    ("network.hiden", "1", r"no network setting 'hiden'; did you mean hidden"),
    ("env.lenght", "1", r"no env setting 'lenght'; did you mean length\?"),
]


@pytest.mark.parametrize("name, text, message", MISTAKES)
def test_wrong_settings_are_refused_by_name_and_value(name, text, message):
    with pytest.raises(SettingError, match=message):
        tiny(overrides=SETTINGS | {name: text})


def test_values_from_python_and_from_json_are_converted_to_the_type_of_the_setting():
    written = {"ppo.steps": 20.0, "network.hidden": [16, 8], "network.embedding": [4, 5, 6]}
    run = tiny(overrides=SETTINGS | written)
    assert run.digest == tiny(overrides=SETTINGS | {"network.embedding": "4,5,6"}).digest
    assert run.row.ppo.steps == 20 and isinstance(run.row.ppo.steps, int)
    assert run.row.network.embedding == EmbeddingSizes(4, 5, 6)
    again = Run.create(**json.loads(json.dumps(run.arguments())))
    assert again == run and isinstance(again.row.network.embedding, EmbeddingSizes)


@pytest.mark.parametrize("name", ["source", "label", "render"])
def test_an_environment_of_others_keeps_its_name(name):
    """Runs of another source would have its name, and could have its folder."""
    with pytest.raises(
        SettingError, match=f"env.{name} cannot be changed; pass another environment"
    ):
        Run.create("gym:CartPole-v1", "rnn", overrides={f"env.{name}": "Acrobot-v1"})
    row = Run.create("gym:CartPole-v1", "rnn").row
    assert f"env.{name}" not in {listed for listed, *_ in settings_of("env", row.env)}


def test_settings_of_a_method():
    run = tiny(overrides=SETTINGS | {"method.skip": "0.25", "method.encoder": "lstm"})
    assert (run.method.skip, run.method.encoder, run.method.name) == (0.25, "lstm", "splagger")
    assert run.digest != tiny().digest
    assert Run.create(**json.loads(json.dumps(run.arguments()))) == run
    for name, value, message in (
        ("method.skip", "2", r"skip must lie in 0 … 1, got 2"),
        ("method.encoder", "gur", "no encoder 'gur'; did you mean gru"),
        (
            "method.aggregator",
            Mean(),
            "method.aggregator must be plain .*, got Mean; pass a splagger.Method",
        ),
        ("method.name", "mine", "method.name cannot be changed; pass another method instead"),
    ):
        with pytest.raises(SettingError, match=message):
            tiny(overrides=SETTINGS | {name: value})


def test_a_field_of_the_aggregator_is_a_setting():
    """So that a parameter of a custom aggregator can be swept."""
    run = tiny(method="splagger-softmax", overrides={"method.aggregator.temperature": "0.3"})
    assert run.method.aggregator == Softmax(0.3)
    assert run.values("temperatures") == (0.3,)
    assert run.describe()["method"]["aggregator"]["temperature"] == 0.3
    assert run.overrides == (("method.aggregator.temperature", "0.3"),)
    assert "--set method.aggregator.temperature=0.3" in run.command()
    assert Run.create(**run.arguments()) == run
    default = {"method.aggregator.temperature": "0.1"}
    assert tiny(method="splagger-softmax", overrides=default).overrides == ()
    assert setting_of(run.describe(), "method.aggregator.temperature") == "0.3"
    assert setting_of(run.describe(), "method.aggregator.other") is None


def test_settings_inside_of_settings():
    """At any depth, several of one part at once."""
    amrl = tiny(method="amrl", overrides={"method.aggregator.inner.floor": "-1"})
    assert amrl.method.aggregator == StraightThrough(Max(-1.0))
    assert amrl.digest != tiny(method="amrl").digest
    halves = {"method.aggregator.second.floor": -1, "method.skip": 0.25}
    assert tiny(method="splagger-avgmax", overrides=halves).method.aggregator.second == Max(-1.0)
    assert of_env(Marked(), part__goal="5", part__speed=2).part == Part(5, 2.0)
    with pytest.raises(SettingError, match=r"no method\.aggregator\.inner setting 'flor'; did you"):
        tiny(method="amrl", overrides={"method.aggregator.inner.flor": 1})
    with pytest.raises(SettingError, match=r"no method\.aggregator setting 'other\.floor'"):
        tiny(method="amrl", overrides={"method.aggregator.other.floor": 1})
    assert "method.aggregator.inner.floor" in {
        name for name, *_ in settings_of("method", METHODS["amrl"])
    }


def test_what_an_environment_is_cannot_be_changed_inside_either():
    """A run would have the name of another environment."""
    with pytest.raises(SettingError, match=r"env\.inner\.speed cannot be changed; pass another"):
        of_env(Marked(), inner__speed=2.0)


def test_types_that_cannot_be_evaluated_are_those_of_the_values():
    assert of_env(Marked(), mode="hard").mode == "hard"
    with pytest.raises(SettingError, match=r"env\.mode must be of type str, got 3"):
        of_env(Marked(), mode=3)
    assert "env.mode" in {name for name, *_ in settings_of("env", Marked())}


def test_only_fields_are_settings():
    message = "no env setting 'IDENTITY'; there are inner, mode, part, table$"
    with pytest.raises(SettingError, match=message):
        of_env(Marked(), IDENTITY=("x",))
    with pytest.raises(SettingError, match="no setting group 'IDENTITY'"):
        tiny(overrides={"IDENTITY": 1})


def test_items_of_a_tuple_and_of_a_union_have_types_of_their_own():
    assert [of_env(Pairs(), pair=pair).pair for pair in ("2,3", (2, 3.0))] == [(2, 3.0)] * 2
    assert type(of_env(Pairs(), pair="2,3").pair[1]) is float
    for pair, message in (((2.5, 3), "type int, got 2.5"), ("1", r"takes 2 values, got 1: '1'")):
        with pytest.raises(SettingError, match=f"env.pair .*{message}"):
            of_env(Pairs(), pair=pair)
    assert [of_env(Pairs(), either=value).either for value in ("4", "far")] == [4, "far"]
    with pytest.raises(SettingError, match=r"env\.either must be at least 1, got 0"):
        of_env(Pairs(), either=0)
    with pytest.raises(SettingError, match=r"env\.weight must be of type float, got 'x'"):
        of_env(Pairs(), weight="x")
    listed = {name: values for name, values, *_ in settings_of("env", Pairs())}
    assert listed["env.pair"] == "int,float"


@pytest.mark.parametrize(
    ("name", "answer"),
    [("ppo.gamma", "ppo.discount"), ("ppo.lr", "--rates"), ("ppo.n_steps", "ppo.steps")],
)
def test_names_of_other_libraries_are_answered_with_ours(name, answer):
    with pytest.raises(SettingError, match=f"no ppo setting .*{answer}"):
        Run.create("t-ls", "rnn", overrides={name: 1})
