"""Settings by name: texts and numbers become the type of the field, and mistakes are refused."""

import json

import pytest

from splagger.aggregators import Mean, Softmax
from splagger.cli.list_commands import settings_of
from splagger.errors import SettingError
from splagger.memory import EmbeddingSizes
from splagger.runs.record import setting_of
from splagger.runs.run import Run
from tests.tiny import SETTINGS, tiny

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
    ("ppo.clip", "0.1,0.2", "ppo.clip must be of type float, got '0.1,0.2'; write several values"),
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
