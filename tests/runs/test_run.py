"""Descriptions of runs: what names an experiment, how it is made again, and what is refused."""

import dataclasses
import importlib
import json
import linecache
import math
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import splagger
from splagger.aggregators import Halves, Mean, Softmax, WeightedMean
from splagger.cli.grid_options import Grid
from splagger.envs import TMaze
from splagger.errors import SettingError
from splagger.identity import digest_of, plain
from splagger.methods import METHODS, Method
from splagger.ranges import Weight
from splagger.registry import ENVS
from splagger.runs.record import setting_of
from splagger.runs.run import Run
from splagger.runs.run_checks import check_not_mistaken, check_varied
from splagger.training.runner import execute
from tests.tiny import BATCH, SETTINGS, SWEPT, UPDATES, tiny


def changed(**settings) -> Run:
    """The small run with other settings; a dot is written as two underscores."""
    return tiny(overrides=SETTINGS | {k.replace("__", "."): v for k, v in settings.items()})


def test_equal_experiments_have_equal_digests():
    assert tiny().digest == tiny(rates=[1e-3, 3e-4], seeds=range(2)).digest
    assert len(tiny().digest) == 10 and int(tiny().digest, 16) >= 0


CHANGES = [
    {"env": "t-latent-small"},
    {"method": "rnn"},
    {"rates": (1e-3,)},
    {"rates": (3e-4, 1e-3)},
    {"seeds": 3},
    {"seeds": (1, 2)},
    {"entropy_weights": (0.2,)},
    *({"overrides": SETTINGS | {name: value}} for name, value in [
        ("env.length", 6), ("env.signals", "2"), ("env.noise_up", 0.6), ("env.reward_right", 5.0),
        ("ppo.clip", 0.2), ("ppo.epochs", 3), ("ppo.anneal", True), ("ppo.eval_tasks", 5),
        ("network.hidden", "16,16"), ("network.width_factor", 0.125), ("network.output_size", 6),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_digest_changes_with_any_setting(change):
    assert tiny(**change).digest != tiny().digest


@pytest.mark.parametrize("change", [{"kl_weights": 0.2}, {"temperatures": 0.2}], ids=str)
def test_digest_changes_with_axes_that_the_method_uses(change):
    assert tiny(method=SWEPT, **change).digest != tiny(method=SWEPT).digest


@pytest.mark.parametrize("text, value", [("16,8", (16, 8)), ("1e1,8", (10, 8))])
def test_digest_depends_on_values_and_not_on_their_spelling(text, value):
    assert changed(network__hidden=text).digest == changed(network__hidden=value).digest


@pytest.mark.parametrize("name, value", [("ppo.clip", "0.05"), ("env.noise_up", "0.5")])
def test_digest_does_not_change_where_a_default_is_spelled_out(name, value):
    assert tiny(overrides=SETTINGS | {name: value}).digest == tiny().digest


@pytest.mark.parametrize("given", ["100", 100])
def test_a_setting_that_is_the_default_is_no_setting(given):
    """Otherwise, a value of --vary that is the default would keep the run out of figures and rankings."""
    run = Run.create("t-ls", "splagger", overrides={"env.length": given, "method.skip": "0.5"})
    assert run == Run.create("t-ls", "splagger") and "--set" not in run.command()
    both = Run.create("t-ls", "splagger", overrides={"ppo.clip": "0.05", "ppo.epochs": "3"})
    assert both.overrides == (("ppo.epochs", "3"),)


def test_digest_does_not_change_with_the_frames():
    assert tiny(frames=80_000).digest == tiny().digest


@pytest.mark.parametrize(
    "change", [{"env": "mc-ls-small", "overrides": None}, {"method": "pearl-vari"}], ids=str
)
def test_digest_changes_with_the_frames_where_a_schedule_or_a_buffer_depends_on_them(change):
    assert tiny().can_be_extended and not tiny(**change).can_be_extended
    assert tiny(frames=80_000, **change).digest != tiny(frames=160_000, **change).digest


def test_two_names_of_a_method_are_one_experiment():
    one, other = tiny(method="cnp"), tiny(method="splagger-nornn-avg")
    assert one == other
    assert (one.method.name, one.digest) == (other.method.name, other.digest)


REFUSED = [
    ({"frames": -5}, "frames must be positive, got -5"),
    ({"frames": 0}, "frames must be positive, got 0"),
    ({"frames": math.inf}, "frames .*inf"),
    ({"frames": math.nan}, "frames .*nan"),
    ({"env": "t-lss"}, r"no environment 't-lss'; did you mean t-ls"),
    (
        {"method": "pearl-vari", "overrides": SETTINGS | {"network.output_size": 5}},
        "output_size|must be even",
    ),
    (
        {"overrides": SETTINGS | {"network.output_size": 5, "method.reconstruct": True}},
        "network.output_size must be even for 'splagger', .* got 5",
    ),
    (
        {"method": "pearl", "overrides": SETTINGS | {"method.skip": 0.5}},
        "method.skip must be 0 or 1 for 'pearl', got 0.5",
    ),
    ({"method": "splager"}, r"no method 'splager'; did you mean splagger"),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=str)
def test_runs_that_cannot_be_trained_are_refused(change, message):
    with pytest.raises(SettingError, match=message):
        tiny(**change)


@pytest.mark.parametrize("hidden", ["16,8", (16, 8)], ids=["text", "tuple"])
def test_arguments_make_an_equal_run_again_even_after_json(hidden):
    run = changed(network__hidden=hidden)
    assert Run.create(**run.arguments()) == run
    again = Run.create(**json.loads(json.dumps(run.arguments())))
    assert (again.row, again.points, again.digest) == (run.row, run.points, run.digest)


@pytest.mark.parametrize(
    "updates, interval, expected", [(7, 1, 7), (7, 5, 10), (10, 5, 10), (0.5, 5, 5), (1, 1, 1)]
)
def test_updates_are_whole_evaluation_intervals(updates, interval, expected):
    overrides = SETTINGS | {"ppo.eval_interval": interval}
    assert tiny(frames=updates * BATCH, overrides=overrides).config.updates == expected


def test_the_small_run_has_four_members():
    assert len(tiny().points) == 4 and tiny().config.updates == UPDATES


def test_published_runs_keep_their_names():
    """A new setting must not change the digests of runs that were trained before it."""
    published = Path(__file__).parents[2] / "results" / "t-ls"
    for method in ("pearl", "rnn", "splagger"):
        digest = Run.create("t-ls", method).digest
        assert (published / method / digest).is_dir(), (method, digest)
    changed = Run.create("t-ls", "pearl", overrides={"ppo.update_noise": "none"})
    assert changed.digest != Run.create("t-ls", "pearl").digest


def test_folder_of_a_run():
    run = tiny(method="rnn")
    assert run.folder("there") == Path("there") / "t-ls-small" / "rnn" / run.digest


MODULE = """
import jax.numpy as jnp
from splagger import Method
from splagger.aggregators import Max

class Mine(Max):
    def read(self, aggregate):
        return {read}

method = Method("mine", aggregator=Mine())
number = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Writes a module with a custom method, and imports it as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(read="jnp.tanh(aggregate)"):
        (tmp_path / "own_method.py").write_text(MODULE.format(read=read))
        sys.modules.pop("own_method", None)
        linecache.clearcache()
        importlib.invalidate_caches()

    write()
    return write


def test_a_custom_method_is_found_by_its_import_path(own_module):
    run = tiny(method="own_method:method")
    assert run.method.name == "mine" and run.folder("out").parent.name == "mine"
    assert run.arguments()["method"] == "own_method:method"
    assert run.command().startswith("splagger train t-ls-small own_method:method ")
    assert Run.create(**json.loads(json.dumps(run.arguments()))).digest == run.digest
    for path, message in (
        ("own_method:nothing", "method own_method:nothing cannot be found"),
        ("nowhere:method", "method nowhere:method cannot be found"),
        ("own_method:number", r"own_method:number must be a splagger\.Method, got int"),
    ):
        with pytest.raises(SettingError, match=message):
            tiny(method=path)


def test_custom_code_is_part_of_the_experiment(own_module):
    before = tiny(method="own_method:method").digest
    assert tiny(method="own_method:method").digest == before
    own_module("jnp.sin(aggregate)")
    assert tiny(method="own_method:method").digest != before
    assert '"code"' not in json.dumps(tiny().describe())  # the commit identifies ours


BASE = """
import jax.numpy as jnp
from splagger.aggregators import AbstractAggregator


class Base(AbstractAggregator):
    def empty(self, e):
        return jnp.zeros_like(e)

    def lift(self, e):
        return {lift}

    def combine(self, a, b):
        return a + b

    def read(self, aggregate):
        return aggregate


class Mine(Base):
    pass
"""


def test_an_edit_after_the_import_does_not_rename_the_old_code(own_module, tmp_path, capsys):
    """The class that was imported still trains, so that its runs keep their digest; a line says so."""
    before = tiny(method="own_method:method").digest
    (tmp_path / "own_method.py").write_text(MODULE.format(read="jnp.sin(aggregate)"))
    linecache.clearcache()
    assert tiny(method="own_method:method").digest == before
    assert "was edited after it was imported" in capsys.readouterr().err


def test_a_base_class_of_the_same_module_is_part_of_the_experiment(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = set()
    for number, lift in enumerate(("e", "2 * e", "e")):
        text = BASE.format(lift=lift)
        (tmp_path / f"own_base_{number}.py").write_text(text)
        importlib.invalidate_caches()
        module = importlib.import_module(f"own_base_{number}")
        digests.add(tiny(method=Method("mine", aggregator=module.Mine())).digest)
    assert len(digests) == 2


def test_a_class_without_a_file_is_identified_by_its_functions():
    """As in a notebook or at a prompt, where the same class may be defined again with other code."""

    def typed(lift):
        names = {"__name__": "typed"}
        exec(BASE.format(lift=lift), names)
        return tiny(method=Method("mine", aggregator=names["Mine"]())).digest

    assert typed("e") == typed("e") != typed("2 * e")


@pytest.mark.parametrize("body", ["BOUNDS = ({}, 1.0)", "def lift(self, e, gain={}):\n        return gain * e",
                                  "def lift(self, e, *, gain={}):\n        return gain * e", "TABLE = {{'a': [{}]}}",
                                  "SCALES = jnp.array([{}, 1.0])"])  # fmt: skip
def test_constants_and_defaults_of_a_class_without_a_file_are_part_of_it(body):
    def typed(number):
        names = {"__name__": "typed"}
        text = BASE.format(lift="e").replace(
            "class Mine(Base):\n    pass", f"class Mine(Base):\n    {body}"
        )
        exec(text.format(number), names)
        return tiny(method=Method("mine", aggregator=names["Mine"]())).digest

    assert typed(0.5) == typed(0.5) != typed(0.25)


class Described(TMaze):
    """A class of the user with a method that happens to be called `describe`."""

    def describe(self):
        return "a corridor"


def test_a_method_called_describe_does_not_hide_the_settings():
    short, long = (changed(env__length=n).row.env for n in (4, 6))
    envs = [
        Described(**{f.name: getattr(e, f.name) for f in dataclasses.fields(e)})
        for e in (short, long)
    ]
    digests = {Run.create(env, "splagger", rates=1e-3, seeds=1).digest for env in envs}
    assert len(digests) == 2


@dataclasses.dataclass
class Scaled:
    gain: float
    ranged: Weight = 0.5
    either: "float | None" = None
    count: "int | float" = 2
    flag: bool = True


def test_whole_numbers_may_be_written_without_a_point():
    whole, point = plain(Scaled(1, 2, 3)), plain(Scaled(1.0, 2.0, 3.0))
    assert digest_of(whole) == digest_of(point) != digest_of(plain(Scaled(1, 2, 4)))
    assert repr(whole["count"]) == "2" and whole["flag"] is True  # as they were recorded before


def test_settings_may_be_numbers_of_numpy():
    given = {"ppo.envs": np.int64(2), "ppo.clip": np.float32(0.25), "network.hidden": [np.int64(4)]}
    given |= {"ppo.anneal": np.bool_(True), "network.embedding": np.array([4, 2, 2])}
    plain = {"ppo.envs": 2, "ppo.clip": 0.25, "network.hidden": [4], "ppo.anneal": True}
    found = tiny(overrides=SETTINGS | given, episodes=np.int64(2))
    expected = tiny(overrides=SETTINGS | plain | {"network.embedding": [4, 2, 2]}, episodes=2)
    assert found == expected and json.dumps(found.arguments()) == json.dumps(expected.arguments())


@pytest.mark.parametrize("method, settings", [
    ("splagger-wavg", {"method.width": 10, "method.skip": 0.3}),
    ("splagger-wsoftmax", {"method.width": 9}),
    (Method("halves", aggregator=Halves(Mean(), WeightedMean())), {"method.width": 12}),
])  # fmt: skip
def test_a_number_of_neurons_that_an_aggregator_cannot_read_is_refused(method, settings):
    with pytest.raises(SettingError, match="needs an even number of neurons"):
        tiny(method=method, overrides=SETTINGS | {"network.width_factor": 1} | settings)


def test_numbers_of_64_bits_are_refused():
    with jax.enable_x64(True), pytest.raises(SettingError, match=r"32-bit numbers.*JAX_ENABLE_X64"):
        tiny()


def test_a_class_is_not_an_environment():
    with pytest.raises(SettingError, match=r"TMaze is a class: pass an environment, TMaze\(…\)"):
        tiny(env=TMaze)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "a\\b", "mine:v2", "x\ny", "m" * 101, "checkpoints", "tensorboard"],
)
def test_a_name_that_no_folder_can_have_is_refused(name):
    with pytest.raises(SettingError, match="its name becomes the name of a folder"):
        Method(name)


def test_settings_that_a_method_does_not_use_cannot_be_varied():
    """They may be set, since --set may be for other methods of a sweep."""
    run = Run.create("t-ls-demo", "splagger", overrides={"ppo.kl_weight": 0.1})
    with pytest.raises(SettingError, match=r"method 'splagger' does not use ppo\.kl_weight"):
        check_varied(run, ["ppo.kl_weight"])
    check_varied(Run.create("t-ls-demo", "pearl"), ["ppo.kl_weight", "method.skip"])
    for train in (
        lambda: splagger.sweep("t-ls-demo", "rnn", vary={"ppo.kl_weight": [0.1, 1]}),
        lambda: Grid().run("t-ls-demo", "rnn", {"ppo.kl_weight": "0.1"}),
    ):
        with pytest.raises(SettingError, match=r"does not use ppo\.kl_weight"):
            train()


def test_varied_settings_are_shown_at_their_defaults():
    """Also those that plans lack there, and booleans as --set takes them."""
    run = Run.create("t-ls-demo", "pearl")
    plan = json.loads(json.dumps(run.describe()))
    names = ("ppo.update_noise", "network.image_channels", "ppo.decoded", "method.bottleneck")
    assert [setting_of(plan, n) for n in names] == ["stored", "16,32", "none", "true"]
    assert setting_of(plan, "goal") is None  # an argument of a Gymnasium environment
    assert setting_of(plan, "ppo.typo") is setting_of(plan, "method.aggregator.typo") is None


def test_settings_of_a_passed_row_are_recorded_unless_its_name_stands_for_them():
    """The row has five epochs, and its name stands for two."""
    row = ENVS["t-ls-demo"]
    row = dataclasses.replace(row, ppo=dataclasses.replace(row.ppo, epochs=5))
    run = Run.create(row, "splagger", overrides={"ppo.epochs": 5})
    assert dict(run.overrides) == {"ppo.epochs": 5} and "--set ppo.epochs=5" in run.command()
    assert Run.create(**run.arguments()).digest == run.digest
    assert Run.create(row, "splagger", overrides={"ppo.epochs": 2}).overrides == ()


def test_changes_of_a_registered_method_or_environment_are_settings():
    """Tables must not take a changed copy for the registered one."""
    named = Run.create("t-ls-small", "splagger", overrides={"method.skip": 1.0, "env.length": 3})
    method, row = replace(METHODS["splagger"], skip=1.0), ENVS["t-ls-small"]
    copied = Run.create(row.with_meta(env=replace(row.env, length=3)), method)
    assert dict(copied.overrides) == dict(named.overrides) == {"method.skip": 1.0, "env.length": 3}
    assert copied.digest == named.digest and copied.command() == named.command()
    assert Run.create(**copied.arguments()) == copied
    check_not_mistaken(copied)
    soft = Run.create("t-ls-small", replace(METHODS["splagger-softmax"], aggregator=Softmax(0.3)))
    assert dict(soft.overrides) == {"method.aggregator.temperature": 0.3}
    check_not_mistaken(soft)


class OtherMaze(TMaze):
    pass


@pytest.mark.parametrize("what", ["method", "environment"])
def test_another_method_or_environment_needs_a_name_of_its_own(what, tmp_path):
    row, method = ENVS["t-ls-small"], METHODS["splagger"]
    if what == "method":
        method = replace(method, aggregator=Softmax(0.1))
    else:
        row = row.with_meta(env=OtherMaze(length=10))
    run = Run.create(row, method, frames=1, rates=[1e-3], seeds=1)  # recorded ones can be read
    with pytest.raises(SettingError, match=f"is the name of a registered {what}"):
        execute(run, tmp_path)
    assert not any(tmp_path.iterdir())
