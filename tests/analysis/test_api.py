"""From the name of an analysis to its files, for untrained and trained agents."""

import csv
import functools as ft
import json
import shutil
from dataclasses import replace

import jax
import numpy as np
import pandas
import pytest

import splagger
from splagger import ENVS, METHODS
from splagger.analysis import ANALYSES, Options, analyze, api, subjects
from splagger.analysis.gradients import outputs_of
from splagger.analysis.inputs import meta_episode
from splagger.analysis.options import Options as DefinedOptions
from splagger.cli import main
from splagger.errors import RunError, SettingError
from splagger.runs.analyses import (
    DIGEST,
    VALUES_DIGEST,
    Value,
    read_description,
    read_values,
    write_analysis,
)
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
# Steps of noise, steps of a meta-episode, aggregated neurons, dimensions of a belief.
LENGTH, HORIZON, NEURONS, BELIEFS = 6, 20, 8, 6
SMALL = Options(length=LENGTH, env="tiny", methods=("splagger",), seeds=2)


@pytest.fixture(scope="module", autouse=True)
def tiny_environment():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVS, "tiny", replace(tiny().row, name="tiny"))
        yield


@pytest.fixture(scope="module")
def everything(tiny_environment, tmp_path_factory):
    """Runs all analyses of fresh agents; do not write to the folder."""
    out = tmp_path_factory.mktemp("analysis")
    return out, analyze("all", out=out, options=SMALL)


def values_of(folder, method="splagger", seed=0):
    rows = read_values(folder).itertuples()
    return [(v.step, v.dimension, v.value) for v in rows if (v.method, v.seed) == (method, seed)]


def test_the_public_names_are_unchanged():
    assert tuple(ANALYSES) == NAMES
    assert splagger.analysis.analyze is analyze and Options is DefinedOptions


def test_all_runs_every_analysis_that_suits_the_method(everything):
    out, folders = everything
    suitable = [name for name in NAMES if name != "pearl-variance"]
    assert folders == [out / name / "initialization" for name in suitable]
    assert sorted(contents(out)) == sorted(
        f"{name}/initialization/{file}"
        for name in suitable
        for file in ("analysis.json", "values.csv")
    )


def test_the_files_have_the_documented_format(everything):
    for folder in everything[1]:
        with open(folder / "values.csv", newline="") as handle:
            assert next(csv.reader(handle)) == ["method", "seed", "step", "dimension", "value"]
        values, description = read_values(folder), read_description(folder)
        assert set(values["seed"]) == {0, 1}
        assert np.isfinite(values["value"]).all()
        assert description["analysis"] == folder.parent.name
        assert description["options"] == json.loads(json.dumps(vars(SMALL)))
        assert {"command", "commit", "versions", "device"} <= set(description["provenance"])


def test_a_series_has_one_number_per_step(everything):
    for folder in everything[1][:4]:
        for seed in (0, 1):
            indices = [(step, dimension) for step, dimension, _ in values_of(folder, seed=seed)]
            assert indices == [(step, 0) for step in range(LENGTH)]
    assert values_of(everything[1][0], seed=0) != values_of(everything[1][0], seed=1)


def test_memory_records_events_after_an_initial_floor(everything):
    folder = everything[0] / "memory" / "initialization"
    for seed, note in enumerate(read_description(folder)["inputs"]):
        events = values_of(folder, seed=seed)
        assert [dimension for step, dimension, _ in events if step == -1] == list(range(NEURONS))
        assert all(value == 0 for step, _, value in events if step == -1)
        assert {step for step, *_ in events} <= set(range(-1, HORIZON))
        assert note["seed"] == seed and note["steps"] == HORIZON
        assert note["episode_ends"] == [4, 9, 14, 19]
        assert note["signal_steps"] == [0, 1, 5, 6, 10, 11, 15, 16]


def test_adaptation_is_the_mean_reward_of_each_step(trained, tmp_path, capsys):
    """Compared with 200 meta-episodes one by one; the command also draws the picture."""
    main(["analyse", "adaptation", "--run", str(trained), "--out", str(tmp_path)])
    folder = tmp_path / "adaptation" / "t-ls-small"
    assert capsys.readouterr().out.split() == [
        str(folder / "values.csv"),
        str(folder / "adaptation.png"),
    ]
    player = splagger.load(trained)
    agent = player.agent, player.normalizers
    episode = jax.jit(lambda key: meta_episode(key, player.env, *agent, player.env.horizon))
    expected = np.mean([episode(jax.random.key(task)).reward for task in range(200)], axis=0)
    seed = player.point.seed
    assert [step for step, _, _ in values_of(folder, seed=seed)] == list(range(player.env.horizon))
    values = np.array([value for *_, value in values_of(folder, seed=seed)], np.float32)
    assert_close(values, expected)


def test_an_environment_of_another_size_is_recorded_as_changed(everything):
    about = read_description(everything[0] / "memory" / "initialization")
    assert (about["env"], about["usual"]) == ("tiny", True)
    changed = ENVS["tiny"].with_meta(episodes=3)
    fresh_agents = subjects.fresh(METHODS["splagger"], changed, [0])
    assert not api._usual(fresh_agents)


@pytest.mark.parametrize("name", ["null", "NA", "nan", ""])
def test_a_method_may_have_any_name(tmp_path, name):
    write_analysis(tmp_path, [Value(name, 0, 1, 0, 2.5)], {})
    assert read_values(tmp_path).values.tolist() == [[name, 0, 1, 0, 2.5]]


def test_the_same_command_writes_the_same_values(everything, tmp_path):
    """The values depend neither on other analyses in the same call nor on the number of seeds."""
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


def test_the_variance_of_the_belief_of_pearl_falls(tmp_path):
    options = replace(SMALL, methods=("pearl",), seeds=None)
    (folder,) = analyze("pearl-variance", out=tmp_path, options=options)
    values = np.array([value for *_, value in values_of(folder, "pearl")]).reshape(HORIZON, BELIEFS)
    assert (values > 0).all() and (np.diff(values, axis=0) < 0).all()


@ft.partial(jax.jit, static_argnums=2)
def last_gradient(agent, normalizers, env):
    """Computes the gradient of the last of 6 summed outputs with respect to the agent's transitions."""
    xs = meta_episode(jax.random.key(0), env, agent, normalizers, 6).xs
    return jax.grad(lambda xs: outputs_of(agent.memory, xs)[-1].sum())(xs)


def test_trained_agents_come_from_the_run_folder(trained, tmp_path, capsys):
    """Both seeds, on their own transitions, by the command line; compared with the definition."""
    args = ["--run", str(trained), "--out", str(tmp_path)]
    args += ["--real", "--every-seed", "--length", "6"]
    main(["analyze", "gradient-inputs", *args])
    folder = tmp_path / "gradient-inputs" / "t-ls-small"
    written = [str(folder / name) for name in ("values.csv", "gradient-inputs.png")]
    assert capsys.readouterr().out.split() == written
    rows = read_values(folder).itertuples()
    assert {(v.method, v.seed) for v in rows} == {("splagger", 0), ("splagger", 1)}
    command = read_description(folder)["provenance"]["command"]
    assert "analyse gradient-inputs --run" in command
    assert "--length 6 --real --every-seed" in command
    rate = splagger.load(trained).point.rate
    for seed in (0, 1):
        player = splagger.load(trained, rate, seed)
        gradient = last_gradient(player.agent, player.normalizers, player.env)
        found = np.array([value for *_, value in values_of(folder, seed=seed)])
        assert_close(np.linalg.norm(gradient, axis=1), found, rtol=1e-3)


def test_a_player_gives_the_same_values_as_its_folder(trained, tmp_path):
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
    "permutation --task-seed -1": "task_seed must be between 0 and 2³¹ - 1, got -1",
    "permutation --run nowhere": "nowhere is not a run folder",
    "memory --methods rnn --env tiny --seeds 1": "aggregated by maximum, as splagger has, which rnn lacks",
    "pearl-variance --methods cnp --env tiny": "a belief (mean and variance), as pearl has, which cnp lacks",
}


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes_are_reported_in_one_line(args, tmp_path, capsys):
    line = refused(capsys, "analyse", *args.split(), "--out", str(tmp_path))
    assert MISTAKES[args] in line
    assert contents(tmp_path) == {}


def test_runs_that_cannot_be_distinguished_are_refused(trained, tmp_path):
    with pytest.raises(ValueError, match="two runs of splagger on t-ls-small"):
        analyze("memory", [trained, trained], tmp_path)


def test_folders_that_cannot_be_written_or_read_are_refused(tmp_path, capsys):
    (tmp_path / "file").touch()
    args = ("--methods", "splagger", "--env", "tiny", "--seeds", "1")
    line = refused(capsys, "analyse", "memory", *args, "--out", str(tmp_path / "file"))
    assert f"--out must be a folder, not a file, got {tmp_path / 'file'}" in line
    options = Options(methods=("splagger",), env="tiny", seeds=1)
    with pytest.raises(RunError, match=r"cannot write .*file/memory.*choose another --out"):
        analyze("memory", out=tmp_path / "file", options=options)
    with pytest.raises(RunError, match=r"holds no analysis: there is no .*values\.csv"):
        read_values(tmp_path)


def test_trained_agents_are_analyzed_in_an_environment_with_other_settings(trained, tmp_path):
    longer = Options(set=("env.length=7",))
    (folder,) = analyze("adaptation", trained, tmp_path, longer)
    assert read_values(folder)["step"].max() == 4 * 7 - 1
    found = read_description(folder)
    assert found["usual"] is False and found["options"]["set"] == ["env.length=7"]
    assert "--set env.length=7" in found["provenance"]["command"]
    with pytest.raises(RunError, match="with other options: set"):
        analyze("adaptation", trained, tmp_path, Options())
    with pytest.raises(SettingError, match=r"got ppo\.clip"):
        analyze("adaptation", trained, tmp_path / "other", Options(set=("ppo.clip=0.1",)))
    with pytest.raises(SettingError, match="environment of trained agents"):
        analyze("adaptation", out=tmp_path / "other", options=longer)


def test_analyses_of_versions_without_an_option_had_its_default(everything, tmp_path):
    folder = tmp_path / "permutation" / "initialization"
    shutil.copytree(everything[0] / "permutation" / "initialization", folder)
    description = json.loads((folder / "analysis.json").read_text())
    del description["options"]["set"], description[DIGEST], description[VALUES_DIGEST]
    (folder / "analysis.json").write_text(json.dumps(description))
    assert analyze("permutation", out=tmp_path, options=SMALL) == [folder]


def test_an_analysis_of_another_seed_or_environment_needs_force(trained, tmp_path):
    """The recorded call makes the same values again."""
    player = splagger.load(trained, rate=1e-3, seed=0)
    (folder,) = analyze("adaptation", player, tmp_path)
    for other, about in (
        (splagger.load(trained, rate=1e-3, seed=1), r"other seeds: splagger \[0\] \(now \[1\]\)"),
        (player.with_env(length=7), r"other agents: .*, length=7\)"),
    ):
        with pytest.raises(RunError, match=about):
            analyze("adaptation", other, tmp_path)
    analyze("adaptation", player.with_env(length=7), tmp_path, force=True)
    call, values = read_description(folder)["provenance"]["command"], read_values(folder)
    (again,) = eval(call.replace(str(tmp_path), str(tmp_path / "again")))
    assert again == tmp_path / "again" / "adaptation" / "t-ls-small"
    pandas.testing.assert_frame_equal(read_values(again), values)
    assert values["step"].max() == 4 * 7 - 1


def test_an_analysis_has_the_name_of_the_environment_that_is_played(trained, tmp_path):
    player = splagger.load(trained)
    folders = analyze("adaptation", [player, player.with_env(env="t-ls")], tmp_path)
    assert [folder.name for folder in folders] == ["t-ls", "t-ls-small"]
    assert [read_description(folder)["env"] for folder in folders] == ["t-ls", "t-ls-small"]


def test_analyses_of_versions_without_seeds_can_be_made_again(trained, tmp_path):
    (folder,) = analyze("adaptation", trained, tmp_path)
    description = json.loads((folder / "analysis.json").read_text())
    del description["seeds"], description[DIGEST], description[VALUES_DIGEST]
    (folder / "analysis.json").write_text(json.dumps(description))
    assert analyze("adaptation", trained, tmp_path) == [folder]
