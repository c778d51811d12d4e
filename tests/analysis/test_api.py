"""From a name to files, before training and after it."""

import csv
import functools as ft
import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import splagger
from splagger import ENVS, METHODS
from splagger.analysis import ANALYSES, Options, analyze, api, read, subjects
from splagger.analysis.gradients import outputs_of
from splagger.analysis.inputs import meta_episode
from splagger.analysis.options import Options as DefinedOptions
from splagger.cli import main
from splagger.errors import RunError
from tests.cli.test_cli import refused
from tests.close import assert_close
from tests.tiny import contents, tiny

NAMES = (
    "gradient-first",
    "gradient-parameters",
    "gradient-inputs",
    "permutation",
    "pearl-variance",
    "memory",
    "adaptation",
)
LENGTH, HORIZON, NEURONS, BELIEFS = (
    6,
    20,
    8,
    6,
)  # of noise, of a meta-episode; aggregated; a belief's
SMALL = Options(length=LENGTH, env="tiny", methods=("splagger",), seeds=2)


@pytest.fixture(scope="module", autouse=True)
def tiny_environment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVS, "tiny", replace(tiny().row, name="tiny"))
        yield


@pytest.fixture(scope="module")
def everything(tiny_environment, tmp_path_factory):
    """All analyses of fresh agents; do not write to it."""
    out = tmp_path_factory.mktemp("analysis")
    return out, analyze("all", out=out, options=SMALL)


def values_of(folder, method="splagger", seed=0):
    return [(v.step, v.dimension, v.value) for v in read(folder)[0] if v[:2] == (method, seed)]


def test_the_names_are_those_that_others_rely_on():
    assert tuple(ANALYSES) == NAMES
    assert splagger.analysis.analyze is analyze and Options is DefinedOptions


def test_all_means_all_that_suit_the_method(everything):
    out, folders = everything
    suiting = [name for name in NAMES if name != "pearl-variance"]
    assert folders == [out / name / "initialization" for name in suiting]
    assert sorted(contents(out)) == sorted(
        f"{name}/initialization/{file}"
        for name in suiting
        for file in ("analysis.json", "values.csv")
    )


def test_the_files_have_the_agreed_form(everything):
    for folder in everything[1]:
        with open(folder / "values.csv", newline="") as handle:
            assert next(csv.reader(handle)) == ["method", "seed", "step", "dimension", "value"]
        values, description = read(folder)
        assert {value.seed for value in values} == {0, 1}
        assert all(np.isfinite(value.value) for value in values)
        assert description["analysis"] == folder.parent.name
        assert description["options"] == json.loads(json.dumps(vars(SMALL)))
        assert {"command", "commit", "versions", "device"} <= set(description["provenance"])


def test_a_series_has_one_number_a_step(everything):
    for folder in everything[1][:4]:
        for seed in (0, 1):
            places = [(step, dimension) for step, dimension, _ in values_of(folder, seed=seed)]
            assert places == [(step, 0) for step in range(LENGTH)]
    assert values_of(everything[1][0], seed=0) != values_of(everything[1][0], seed=1)


def test_memory_tells_events_with_the_floor_before_the_first(everything):
    values, description = read(everything[0] / "memory" / "initialization")
    for seed, note in enumerate(description["inputs"]):
        mine = [value for value in values if value.seed == seed]
        assert [v.dimension for v in mine if v.step == -1] == list(range(NEURONS))
        assert all(v.value == 0 for v in mine if v.step == -1)
        assert {v.step for v in mine} <= set(range(-1, HORIZON))
        assert note["seed"] == seed and note["steps"] == HORIZON
        assert note["episode_ends"] == [4, 9, 14, 19]
        assert note["signal_steps"] == [0, 1, 5, 6, 10, 11, 15, 16]


def test_adaptation_is_the_mean_reward_of_each_step(trained, tmp_path, capsys):
    """Against 200 meta-episodes one by one; drawn by the command."""
    main(["analyse", "adaptation", "--run", str(trained), "--out", str(tmp_path)])
    folder = tmp_path / "adaptation" / "t-ls-small"
    assert capsys.readouterr().out.split() == [
        str(folder / "values.csv"),
        str(folder / "adaptation.png"),
    ]
    player = splagger.load(trained)
    who = player.agent, player.normalizers
    live = jax.jit(lambda key: meta_episode(key, player.env, *who, player.env.horizon))
    earned = np.mean([live(jax.random.key(task)).reward for task in range(200)], axis=0)
    seed = player.point.seed
    assert [step for step, _, _ in values_of(folder, seed=seed)] == list(range(player.env.horizon))
    values = np.array([value for *_, value in values_of(folder, seed=seed)], np.float32)
    assert_close(values, earned)


def test_an_environment_of_another_size_is_not_the_usual_one(tmp_path):
    options = replace(SMALL, seeds=1)
    about = read(analyze("memory", out=tmp_path / "own", options=options)[0])[1]
    assert (about["env"], about["usual"], about["sequences"]) == ("tiny", True, 1)
    grown = replace(ENVS["tiny"], episodes=3)
    fresh_agents = subjects.fresh(METHODS["splagger"], grown, [0])
    assert not api._usual(fresh_agents)


def test_the_same_command_writes_the_same_values(everything, tmp_path):
    """Also when an analysis is done alone, and with fewer seeds beside it."""
    out, _ = everything
    for name in ("gradient-inputs", "memory"):
        (again,) = analyze(name, out=tmp_path, options=SMALL)
        assert (again / "values.csv").read_bytes() == (
            out / name / "initialization" / "values.csv"
        ).read_bytes()
    other = replace(SMALL, seeds=1)
    with pytest.raises(RunError, match=r"holds an analysis with other options: seeds 2 \(now 1\)"):
        analyze("gradient-inputs", out=tmp_path, options=other)
    (alone,) = analyze("gradient-inputs", out=tmp_path, options=other, force=True)
    assert_close(values_of(alone), values_of(out / "gradient-inputs" / "initialization"), rtol=1e-4)


def test_the_belief_of_pearl_grows_surer(tmp_path):
    options = replace(SMALL, methods=("pearl",), seeds=None)
    (folder,) = analyze("pearl-variance", out=tmp_path, options=options)
    values = np.array([value for *_, value in values_of(folder, "pearl")]).reshape(HORIZON, BELIEFS)
    assert (values > 0).all() and (np.diff(values, axis=0) < 0).all()


@ft.partial(jax.jit, static_argnums=2)
def last_gradient(agent, normalizers, env):
    """Of the summed last of 6 outputs, by each of the transitions that the agent lived through."""
    xs = meta_episode(jax.random.key(0), env, agent, normalizers, 6).xs
    return jax.grad(lambda xs: outputs_of(agent.memory, xs)[-1].sum())(xs)


def test_trained_agents_are_those_of_the_folder(trained, tmp_path, capsys):
    """By the command line, both seeds, on their own transitions; against the definition."""
    args = [
        "--run",
        str(trained),
        "--out",
        str(tmp_path),
        "--real",
        "--every-seed",
        "--length",
        "6",
    ]
    main(["analyze", "gradient-inputs", *args])
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "gradient-inputs/t-ls-small/values.csv")
    ]
    values, description = read(tmp_path / "gradient-inputs" / "t-ls-small")
    assert {(v.method, v.seed) for v in values} == {("splagger", 0), ("splagger", 1)}
    assert "analyse gradient-inputs --run" in description["provenance"]["command"]
    assert "--length 6 --real --every-seed" in description["provenance"]["command"]
    rate = splagger.load(trained).point.rate
    for seed in (0, 1):
        player = splagger.load(trained, rate, seed)
        gradient = last_gradient(player.agent, player.normalizers, player.env)
        expected = [
            value for *_, value in values_of(tmp_path / "gradient-inputs/t-ls-small", seed=seed)
        ]
        assert_close(np.linalg.norm(gradient, axis=1), np.array(expected), rtol=1e-3)


def test_a_player_is_as_good_as_its_folder(trained, tmp_path):
    (by_folder,) = analyze("memory", trained, tmp_path / "a")
    (by_player,) = analyze("memory", splagger.load(trained), tmp_path / "b")
    assert by_folder == tmp_path / "a" / "memory" / "t-ls-small"
    assert (by_folder / "values.csv").read_bytes() == (by_player / "values.csv").read_bytes()


MISTAKES = {
    "gradient-frist": "no analysis 'gradient-frist'; did you mean gradient-first",
    "permutation --methods splager": "no method 'splager'; did you mean splagger",
    "permutation --env t-lss": "no environment 't-lss'; did you mean t-ls",
    "permutation --length 0": "length must be at least 1, got 0",
    "permutation --seeds 0": "seeds must be at least 1, got 0",
    "permutation --task-seed -1": "task_seed must lie in 0",
    "permutation --run nowhere": "nowhere is no run folder",
    "memory --methods rnn --env tiny --seeds 1": "aggregated by maximum, as splagger has; not so rnn",
    "pearl-variance --methods cnp --env tiny": "a belief (mean and variance), as pearl has; not so cnp",
}


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes_are_told_in_one_line(args, tmp_path, capsys):
    line = refused(capsys, "analyse", *args.split(), "--out", str(tmp_path))
    assert MISTAKES[args] in line
    assert contents(tmp_path) == {}


def test_runs_that_cannot_be_told_apart_are_refused(trained, tmp_path):
    with pytest.raises(ValueError, match="two runs of splagger on t-ls-small"):
        analyze("memory", [trained, trained], tmp_path)


def test_places_that_cannot_be_written_or_read_are_told(tmp_path, capsys):
    (tmp_path / "file").touch()
    args = ("--methods", "splagger", "--env", "tiny", "--seeds", "1")
    line = refused(capsys, "analyse", "memory", *args, "--out", str(tmp_path / "file"))
    assert "cannot write to" in line and "choose another --out" in line
    with pytest.raises(RunError, match=r"holds no analysis: there is no .*values\.csv"):
        read(tmp_path)
