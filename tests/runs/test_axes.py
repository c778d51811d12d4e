"""The axes of a sweep: one table drives grid points, tunables, defaults, the command line and what is refused."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

import splagger
from splagger.agents import exports, load
from splagger.aggregators import Halves, Softmax
from splagger.cli import main
from splagger.cli.grid_options import Grid
from splagger.errors import RunError, SettingError
from splagger.methods import METHODS, Method
from splagger.ppo.settings import Tunables
from splagger.runs import run as run_module
from splagger.runs.axes import AXES, BY_PLURAL, PLURALS, SETTINGS, numbers_of
from splagger.runs.run import Point
from splagger.training import program, runner
from tests.contract.make import AGENT
from tests.tiny import SWEPT, tiny


def test_every_tunable_has_exactly_one_axis():
    tunables = Counter(axis.tunable for axis in AXES if axis.tunable is not None)
    assert tunables == Counter(Tunables._fields)
    assert [axis.name for axis in AXES if axis.tunable is None] == ["seed"]


def test_names_of_axes_are_unique():
    assert len({axis.name for axis in AXES}) == len(AXES) == len(BY_PLURAL)
    assert tuple(axis.plural for axis in AXES) == PLURALS


def test_every_axis_is_a_column_of_a_point():
    assert Point._fields == tuple(axis.name for axis in AXES)


def made_newer(monkeypatch, module, name):
    """Pretends that an axis was added after the runs of version 0.1."""
    axes = [replace(axis, newer=axis.name == name) for axis in AXES]
    monkeypatch.setattr(module, "AXES", tuple(axes))


def test_a_newer_axis_changes_digests_only_where_it_is_used(monkeypatch):
    plain, swept = tiny(method=SWEPT).describe(), tiny(method=SWEPT, kl_weights=0.5).describe()
    made_newer(monkeypatch, run_module, "kl_weight")
    assert tiny(method=SWEPT).describe() == {k: v for k, v in plain.items() if k != "kl_weights"}
    assert tiny(method=SWEPT, kl_weights=0.5).describe() == swept


def test_a_newer_axis_names_members_only_where_it_is_swept(monkeypatch):
    names = lambda run: [run.member(point) for point in run.points]  # noqa: E731
    before = names(tiny(method=SWEPT))
    made_newer(monkeypatch, run_module, "kl_weight")
    removed = [re.sub(r"kl_weight=[^,]*,", "", name) for name in before]
    assert names(tiny(method=SWEPT)) == removed != before
    assert "kl_weight=0.5" in names(tiny(method=SWEPT, kl_weights=(0.5, 0.1)))[0]


def test_an_agent_file_from_before_an_axis_is_loaded(monkeypatch, tmp_path):
    with np.load(AGENT) as archive:
        arrays = dict(archive)
    about = json.loads(str(arrays.pop("description")))
    default = about["point"].pop("kl_weight")
    path = tmp_path / "agent.npz"
    np.savez(path, description=np.asarray(json.dumps(about)), **arrays)
    with pytest.raises(RunError, match="is not an agent that splagger wrote, or is damaged"):
        load(path)
    made_newer(monkeypatch, exports, "kl_weight")
    assert load(path).point.kl_weight == default


def test_every_axis_is_in_the_description_and_the_arguments_of_a_run():
    run = tiny(method=SWEPT)
    for axis in AXES:
        values = run.values(axis.plural)
        assert run.describe()[axis.plural] == list(values) and values
        assert run.arguments()[axis.plural] == values


def test_every_axis_is_an_option_of_the_command_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = capsys.readouterr().out
    options = [f"--{axis.plural.replace('_', '-')} " for axis in AXES]
    assert [option for option in options if option not in text] == []
    assert [axis.name for axis in SETTINGS if axis.help not in " ".join(text.split())] == []
    assert tuple(vars(Grid().swept)) == tuple(axis.plural for axis in SETTINGS)


@pytest.mark.parametrize("axis", SETTINGS, ids=lambda axis: axis.name)
def test_options_of_the_command_line_are_the_values_of_the_axis(axis, monkeypatch):
    runs = []
    monkeypatch.setattr(runner, "execute", lambda run, *_: runs.append(run) or 1 / 0)
    option = f"--{axis.plural.replace('_', '-')}"
    with pytest.raises(ZeroDivisionError):
        main(["train", "t-ls-small", "tests.tiny:SWEPT", option, "0.25", "0.75"])
    assert runs[0].values(axis.plural) == (0.25, 0.75)


def test_every_value_of_a_point_reaches_its_tunable():
    run = tiny(
        method=SWEPT,
        rates=0.125,
        entropy_weights=0.25,
        kl_weights=0.5,
        temperatures=0.75,
        seeds=(5,),
    )
    tunables, keys = program._arrays(run.points)
    for axis in AXES:
        if axis.tunable is not None:
            (value,) = run.values(axis.plural)
            assert getattr(tunables, axis.tunable).tolist() == [value]
    assert keys.shape == (1,)


def test_points_are_the_product_of_all_axes():
    axes = {"rates": (1e-3, 1e-4), "entropy_weights": (0.0, 0.1), "kl_weights": (0.5,)}
    run = tiny(**axes, method=SWEPT, temperatures=(0.1, 0.2, 0.3), seeds=(5, 7))
    expected = product((1e-3, 1e-4), (0.0, 0.1), (0.5,), (0.1, 0.2, 0.3), (5, 7))
    assert [tuple(point) for point in run.points] == list(expected)


def test_axes_that_are_not_given_have_the_defaults_of_the_row_and_the_method():
    run = tiny(method="splagger-softmax")
    assert run.values("entropy_weights") == (run.row.ppo.entropy,)
    assert run.values("kl_weights") == (run.row.ppo.kl_weight,)
    assert run.values("temperatures") == (0.1,)


def test_a_number_of_seeds_counts_from_zero():
    assert tiny(seeds=3).seeds == (0, 1, 2)


def test_one_number_is_a_list_of_one():
    assert tiny(rates=1e-3, seeds=1).rates == (1e-3,)
    assert tiny(entropy_weights=0.3).values("entropy_weights") == (0.3,)


def test_values_may_be_iterators_and_scalars_of_arrays():
    assert tiny(rates=iter((1e-3, 3e-4)), seeds=map(int, "01")).points == tiny().points
    for scalar in (np.float64(1e-3), np.array(1e-3)):
        assert tiny(rates=scalar).rates == (1e-3,)
    for number in (np.int64(3), np.array(3), jnp.int32(3)):
        assert tiny(seeds=number).seeds == (0, 1, 2)
    assert tiny(rates=np.array([1e-3, 3e-4]), seeds=np.arange(2)).points == tiny().points


def test_a_temperature_inside_another_aggregator_is_the_methods_default():
    assert tiny(method=SWEPT).values("temperatures") == (0.3,)


def test_a_temperature_of_zero_is_a_temperature():
    method = Method("mine", aggregator=Halves(Softmax(0.0), Softmax(0.5)))
    assert tiny(method=method).values("temperatures") == (0.0,)
    assert tiny(method=method, temperatures=(0.1, 0.2)).values("temperatures") == (0.1, 0.2)


REFUSED = [
    ({"seeds": 0}, "a run needs at least one seed"),
    ({"seeds": (-1,)}, "seed.*-1"),
    ({"rates": ()}, "a run needs at least one rate"),
    ({"rates": (math.nan,)}, "rates must be finite numbers > 0, got nan"),
    ({"rates": (-1e-3,)}, r"rates must be finite numbers > 0, got -0\.001"),
    ({"rates": (0.0,)}, "rates must be finite numbers > 0, got 0"),
    ({"rates": (1e39,)}, r"rates must be at most 3\.40282e\+38, got 1e\+39"),
    ({"seeds": 10**6}, "seeds must be at most 100,000, got 1000000"),
    ({"seeds": range(10**9)}, "the number of seeds must be at most 100,000, got 1000000000"),
    ({"seeds": 60_000, "rates": (1e-3, 1e-4)}, "the number of runs .* must be at most 100,000"),
    ({"method": SWEPT, "temperatures": (0.0,)}, "temperatures must be finite numbers > 0, got 0"),
    ({"kl_weights": (math.inf,)}, "kl_weights must be finite numbers ≥ 0, got inf"),
    ({"kl_weights": (0.2, 0.3)}, "method 'splagger' does not use kl_weights"),
    ({"method": "pearl-vari", "kl_weights": (0.0, 1.0)}, "'pearl-vari' does not use kl_weights"),
    ({"seeds": 2.5}, "seeds must be a whole number, got 2.5"),
    ({"temperatures": (0.2,)}, "method 'splagger' does not use temperatures"),
    (
        {"method": replace(METHODS["splagger-softmax"], skip=1.0), "temperatures": (0.2, 0.3)},
        "method 'splagger-softmax' does not use temperatures",
    ),
    ({"rates": (1e-3, 1e-3)}, "listed twice"),
    ({"seeds": (1, 1)}, "listed twice"),
    ({"rate": 1e-3}, "no argument 'rate': pass rates=1e-3"),
    ({"frame": 1e3}, "no argument .frame.; did you mean frames"),
    ({"first_seed": 2}, r"no argument 'first_seed': pass seeds=\[2, 3, 4\]"),
    ({"vary": {"ppo.clip": [0.1]}}, "no argument 'vary': splagger.sweep has it"),
    ({"clip": 0.1}, r"no argument 'clip'; .*settings are written settings={'ppo.clip': 0.1}"),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=str)
def test_grids_that_cannot_be_trained_are_refused(change, message):
    with pytest.raises(SettingError, match=message):
        tiny(**change)


@pytest.mark.parametrize("name", ["force", "show", "on_metrics"])
def test_arguments_of_training_that_a_sweep_lacks_are_named(name, tmp_path):
    message = f"no argument '{name}' here: splagger.train has it"
    with pytest.raises(SettingError, match=message):
        splagger.sweep("t-ls", "rnn", out=tmp_path, **{name: True})


@pytest.mark.parametrize("start", [splagger.train, splagger.sweep])
@pytest.mark.parametrize(
    "axis", [axis for axis in AXES if axis.setting], ids=lambda axis: axis.name
)
def test_an_axis_beside_the_setting_with_its_default_is_refused(start, axis, tmp_path):
    settings = {axis.setting: 0.5}
    method = "splagger-softmax" if axis.name == "temperature" else "pearl"
    with pytest.raises(SettingError, match=f"{axis.plural} and {axis.setting} are one setting"):
        start("t-ls", method, out=tmp_path, settings=settings, **{axis.plural: [0.1]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", ["fast", [1, "fast"], object()], ids=["text", "list", "object"])
def test_values_of_an_axis_must_be_numbers(given):
    with pytest.raises(SettingError, match=r"rates .*numbers, got"):
        numbers_of("rates", given)


@pytest.mark.parametrize("seed", [0.5, -1, 2**32, math.inf, math.nan])
def test_seeds_must_be_whole_numbers_of_32_bits(seed):
    with pytest.raises(SettingError, match="seeds must be whole numbers from 0 to 2³² - 1, got"):
        numbers_of("seeds", [seed])
