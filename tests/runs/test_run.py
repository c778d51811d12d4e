"""What is run: the grid's points, what names an experiment, and what refuses to be one."""

import importlib
import json
import linecache
import math
import sys
from itertools import product
from pathlib import Path

import pytest

from splagger.aggregators import Softmax, StraightThrough
from splagger.bridges.importing import find
from splagger.envs import TMaze
from splagger.memory import EmbeddingSizes
from splagger.methods import Method
from splagger.policy import Gaussian
from splagger.runs.run import Run
from tests.tiny import BATCH, SETTINGS, UPDATES, tiny

SWEPT = Method("swept", aggregator=StraightThrough(Softmax(0.3)), latent=Gaussian())


def changed(**settings) -> Run:
    """The small run with other settings; a dot is written as two underscores."""
    return tiny(overrides=SETTINGS | {k.replace("__", "."): v for k, v in settings.items()})


def test_points_are_the_product_of_all_axes():
    axes = {"rates": (1e-3, 1e-4), "entropy_weights": (0.0, 0.1), "kl_weights": (0.5,)}
    run = tiny(**axes, method=SWEPT, temperatures=(0.1, 0.2, 0.3), seeds=(5, 7))
    expected = product((1e-3, 1e-4), (0.0, 0.1), (0.5,), (0.1, 0.2, 0.3), (5, 7))
    assert [tuple(point) for point in run.points] == list(expected)


def test_axes_that_are_not_given_have_the_numbers_of_the_row_and_the_method():
    run = tiny(method="splagger-softmax")
    assert run.entropy_weights == (run.row.ppo.entropy,)
    assert run.kl_weights == (run.row.ppo.kl_weight,)
    assert run.temperatures == (0.1,)


def test_a_number_of_seeds_counts_from_zero():
    assert tiny(seeds=3).seeds == (0, 1, 2)


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
def test_digest_changes_with_what_a_method_has(change):
    assert tiny(method=SWEPT, **change).digest != tiny(method=SWEPT).digest


def test_a_temperature_inside_another_aggregator_is_the_methods():
    assert tiny(method=SWEPT).temperatures == (0.3,)


@pytest.mark.parametrize("text, value", [("16,8", (16, 8)), ("1e1,8", (10, 8))])
def test_digest_knows_values_and_not_how_they_were_written(text, value):
    assert changed(network__hidden=text).digest == changed(network__hidden=value).digest


@pytest.mark.parametrize("name, value", [("ppo.clip", "0.05"), ("env.noise_up", "0.5")])
def test_digest_does_not_change_where_a_default_is_spelled_out(name, value):
    assert tiny(overrides=SETTINGS | {name: value}).digest == tiny().digest


def test_digest_does_not_change_with_the_frames():
    assert tiny(frames=80_000).digest == tiny().digest


@pytest.mark.parametrize(
    "change", [{"env": "mc-ls-small", "overrides": None}, {"method": "pearl-vari"}], ids=str
)
def test_digest_changes_with_the_frames_where_a_schedule_or_a_buffer_depends_on_them(change):
    assert tiny(frames=80_000, **change).digest != tiny(frames=160_000, **change).digest


def test_two_names_of_a_method_are_one_experiment():
    one, other = tiny(method="cnp"), tiny(method="splagger-nornn-avg")
    assert one == other
    assert (one.method.name, one.digest) == (other.method.name, other.digest)


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
def test_texts_become_the_type_of_the_setting(name, text, value):
    run = tiny(overrides=SETTINGS | {name: text})
    part, field = name.split(".")
    found = getattr(getattr(run.row, part), field)
    assert found == value and type(found) is type(value)


MISTAKES = [
    ("ppo.epochs", "2.5", r"ppo\.epochs takes a int, got '2\.5'"),
    ("ppo.epochs", "two", r"ppo\.epochs takes a int, got 'two'"),
    ("ppo.epochs", "inf", r"ppo\.epochs .*inf"),
    ("ppo.epochs", "0", r"ppo\.epochs must be at least 1, got 0"),
    ("ppo.clip", "small", r"ppo\.clip takes a float, got 'small'"),
    ("ppo.clip", "nan", r"ppo\.clip must be a finite number ≥ 0, got nan"),
    ("ppo.anneal", "yes", r"ppo\.anneal takes a bool, got 'yes'"),
    ("ppo.decoded", "all", r"ppo\.decoded takes a int.*, got 'all'"),
    ("network.hidden", "16,x", r"network\.hidden takes a int, got 'x'"),
    ("network.embedding", "4,4", r"network\.embedding takes 3 values, got 2"),
    ("network.embedding", "4,4,0", r"network\.embedding must be positive"),
    ("network.width_factor", "-1", r"network\.width_factor must be positive, got -1"),
    ("ppo.discount", "1.5", r"ppo\.discount must lie in 0 … 1, got 1\.5"),
    ("ppo.decoded", "-5", r"ppo\.decoded must be at least 1, or none, got -5"),
    ("ppo.steps", 64.5, r"ppo\.steps takes a int, got 64\.5"),
    ("ppo.envs", True, r"ppo\.envs takes a int, got True"),
    ("ppo.clip", None, r"ppo\.clip takes a float, got None"),
    ("ppo.update_noise", 3, r"ppo\.update_noise takes a str, got 3"),
    ("network.hidden", 32, r"network\.hidden takes several values, got 32"),
    ("env.length", 20.5, r"env\.length takes a int, got 20\.5"),
    ("env.length", "1", "length must be at least 2, got 1"),
    ("ppo.minibatches", "7", r"ppo\.minibatches=7 does not divide the 80 steps"),
    ("ppo.cilp", "1", r"no ppo setting 'cilp'; did you mean clip\?"),
    ("pop.clip", "1", r"no setting group 'pop'; did you mean ppo\?"),
    ("clip", "1", "no setting group 'clip'; there are env, method, network, ppo"),
    ("network.hiden", "1", r"no network setting 'hiden'; did you mean hidden"),
    ("env.lenght", "1", r"no env setting 'lenght'; did you mean length\?"),
]


@pytest.mark.parametrize("name, text, message", MISTAKES)
def test_wrong_settings_are_refused_by_name_and_value(name, text, message):
    with pytest.raises(ValueError, match=message):
        tiny(overrides=SETTINGS | {name: text})


REFUSED = [
    ({"frames": -5}, "frames must be positive, got -5"),
    ({"frames": 0}, "frames must be positive, got 0"),
    ({"frames": math.inf}, "frames .*inf"),
    ({"frames": math.nan}, "frames .*nan"),
    ({"seeds": 0}, "at least one rate and one seed"),
    ({"seeds": (-1,)}, "seed.*-1"),
    ({"rates": ()}, "at least one rate and one seed"),
    ({"rates": (math.nan,)}, "rates must be finite numbers ≥ 0, got nan"),
    ({"rates": (-1e-3,)}, r"rates must be finite numbers ≥ 0, got -0\.001"),
    ({"kl_weights": (math.inf,)}, "kl_weights must be finite numbers ≥ 0, got inf"),
    ({"kl_weights": (0.2, 0.3)}, "method 'splagger' has no use for kl_weights"),
    ({"temperatures": (0.2,)}, "method 'splagger' has no use for temperatures"),
    ({"rates": (1e-3, 1e-3)}, "listed twice"),
    ({"seeds": (1, 1)}, "listed twice"),
    ({"env": "t-lss"}, r"no environment 't-lss'; did you mean t-ls"),
    ({"method": "splager"}, r"no method 'splager'; did you mean splagger"),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=str)
def test_grids_without_a_meaning_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
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


def test_the_small_run_is_what_its_name_says():
    assert len(tiny().points) == 4 and tiny().config.updates == UPDATES


def test_published_runs_keep_their_names():
    """A setting that is new must not rename what was trained before it."""
    published = Path(__file__).parents[2] / "results" / "t-ls"
    for method in ("pearl", "rnn", "splagger"):
        digest = Run.create("t-ls", method).digest
        assert (published / method / digest).is_dir(), (method, digest)
    changed = Run.create("t-ls", "pearl", overrides={"ppo.update_noise": "none"})
    assert changed.digest != Run.create("t-ls", "pearl").digest


def test_one_number_is_a_list_of_one():
    assert tiny(rates=1e-3, seeds=1).rates == (1e-3,)
    assert tiny(entropy_weights=0.3).entropy_weights == (0.3,)


def test_values_from_python_and_from_json_become_the_type_of_the_setting():
    written = {"ppo.steps": 20.0, "network.hidden": [16, 8], "network.embedding": [4, 5, 6]}
    run = tiny(overrides=SETTINGS | written)
    assert run.digest == tiny(overrides=SETTINGS | {"network.embedding": "4,5,6"}).digest
    assert run.row.ppo.steps == 20 and isinstance(run.row.ppo.steps, int)
    assert run.row.network.embedding == EmbeddingSizes(4, 5, 6)
    again = Run.create(**json.loads(json.dumps(run.arguments())))
    assert again == run and isinstance(again.row.network.embedding, EmbeddingSizes)


def test_a_run_knows_its_folder():
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
    """Writes a module with a method of one's own, as if in a new process."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(read="jnp.tanh(aggregate)"):
        (tmp_path / "own_method.py").write_text(MODULE.format(read=read))
        sys.modules.pop("own_method", None)
        linecache.clearcache()
        find.cache_clear()
        importlib.invalidate_caches()

    write()
    return write


def test_a_method_of_ones_own_is_found_by_its_place(own_module):
    run = tiny(method="own_method:method")
    assert run.method.name == "mine" and run.folder("out").parent.name == "mine"
    assert run.arguments()["method"] == "own_method:method"
    assert run.command().startswith("splagger train t-ls-small own_method:method ")
    assert Run.create(**json.loads(json.dumps(run.arguments()))).digest == run.digest
    for place, message in (
        ("own_method:nothing", "method own_method:nothing cannot be found"),
        ("nowhere:method", "method nowhere:method cannot be found"),
        ("own_method:number", r"own_method:number is no splagger\.Method but int"),
    ):
        with pytest.raises(ValueError, match=message):
            tiny(method=place)


def test_code_of_ones_own_is_part_of_the_experiment(own_module):
    before = tiny(method="own_method:method").digest
    assert tiny(method="own_method:method").digest == before
    own_module("jnp.sin(aggregate)")
    assert tiny(method="own_method:method").digest != before
    assert '"code"' not in json.dumps(tiny().describe())  # ours is told by the commit


def test_settings_of_a_method():
    run = tiny(overrides=SETTINGS | {"method.skip": "0.25", "method.encoder": "lstm"})
    assert (run.method.skip, run.method.encoder, run.method.name) == (0.25, "lstm", "splagger")
    assert run.digest != tiny().digest
    assert Run.create(**json.loads(json.dumps(run.arguments()))) == run
    for name, value, message in (
        ("method.skip", "2", r"skip must lie in 0 … 1, got 2"),
        ("method.encoder", "gur", "no encoder 'gur'; did you mean gru"),
        ("method.name", "mine", "a method keeps its name"),
    ):
        with pytest.raises(ValueError, match=message):
            tiny(overrides=SETTINGS | {name: value})


def test_a_class_is_no_environment():
    with pytest.raises(ValueError, match=r"TMaze is a class: give an environment, TMaze\(…\)"):
        tiny(env=TMaze)
