"""Environments that break their promises and members that diverge: named, and nothing wrong is saved."""

import functools as ft
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas
import pytest

import splagger
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import DivergedError, RunError
from splagger.ppo import faults
from splagger.ppo.faults import Fault
from splagger.ppo.train import evaluation
from splagger.runs.folder import find_runs
from splagger.runs.run import Run
from splagger.spaces import Continuous
from splagger.training import health, progress, runner
from tests.ppo.probe_envs import random_state
from tests.tiny import SETTINGS, tiny

LENGTH, EPISODES, BATCH, UPDATES = 4, 2, 32, 5
SMALL = {k: v for k, v in SETTINGS.items() if not k.startswith("env.")}
SMALL |= {"ppo.envs": 2, "ppo.steps": 16, "ppo.eval_tasks": 2, "ppo.minibatches": 2}

# What is wrong with the environment, and in which members of the grid; all cases share one compiled program.
CASES = ("right", "early", "late", "first obs", "middle obs", "last obs", "reward")
wrong = {"case": "right", "members": (0, 1)}


def look(time):
    """Returns the number of the case for each environment; the first axis is that of the members."""
    affected = np.isin(np.arange(len(time)), wrong["members"]).reshape(-1, *[1] * (time.ndim - 1))
    return np.where(affected, CASES.index(wrong["case"]), 0).astype(np.int32) + 0 * time


class Faulty(eqx.Module):
    """Claims episodes of four steps; `wrong` decides at run time whether that is true and numbers are finite."""

    @property
    def spec(self):
        return EnvSpec("faulty", 2, Continuous(1), LENGTH, fixed_length=True)

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        now = (jr.bits(key) & 0).astype(jnp.int32)  # depends on the member
        first = self.case(now) == CASES.index("first obs")
        return jnp.int32(0), jnp.stack([0.0, jnp.where(first, jnp.nan, 1.0)])

    def step(self, key, task, time, action):
        time, case = time + 1, self.case(time)
        is_case = lambda name: case == CASES.index(name)  # noqa: E731
        early = is_case("early") & jr.bernoulli(key, 0.1)
        done = (early | (time == LENGTH)) & ~is_case("late") | (time == LENGTH + 1)
        broken = is_case("middle obs") & (time == 2) | is_case("last obs") & (time == LENGTH)
        obs = jnp.stack([time / LENGTH, jnp.where(broken, jnp.inf, 1.0)])
        reward = jnp.where(is_case("reward") & (time == 3), -jnp.inf, action[0])
        return time, Step(obs, reward, done, jnp.bool_(False))

    def case(self, time):
        shape = jax.ShapeDtypeStruct((), jnp.int32)
        return jax.pure_callback(look, shape, time, vmap_method="broadcast_all")


def faulty(rates=(1e-3,), seeds=2, updates=UPDATES) -> Run:
    frames = updates * BATCH
    return Run.create(Faulty(), "cnp", frames, SMALL, EPISODES, rates=rates, seeds=seeds)


@pytest.fixture(autouse=True)
def right():
    """Every test begins and ends with an environment that keeps its promises."""
    wrong.update(case="right", members=(0, 1))
    yield
    wrong.update(case="right", members=(0, 1))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    wrong.update(case="right")
    return runner.execute(faulty(), tmp_path_factory.mktemp("right"), show=False)[0]


def wrong_after(update, case, monkeypatch, members=(0, 1)):
    """Lets the environment be wrong from that update on."""
    original = runner.Execution._block

    def block(self, *args):
        state = original(self, *args)
        if self.update >= update:
            wrong.update(case=case, members=members)
        return state

    monkeypatch.setattr(runner.Execution, "_block", block)


MESSAGES = {
    "early": r"faulty declares fixed_length=True, so each of its tasks must end at step 8, but one ended at step "
    r"[1-7]; declare fixed_length=False in its EnvSpec",
    "late": r"must end at step 8, but one did not end there; declare fixed_length=False",
    "first obs": r"faulty: observation is nan at index 1 at step [04] of a task",
    "middle obs": r"faulty: observation is inf at index 1 at step 2 of a task",
    "last obs": r"faulty: observation is inf at index 1 at step 4 of a task",
    "reward": r"faulty: reward is -inf at step 3 of a task",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", MESSAGES)
def test_a_broken_environment_is_named_before_training(case, tmp_path):
    wrong.update(case=case)
    with pytest.raises(
        RunError, match=MESSAGES[case] + r".* \(found before training\)\. .*the same"
    ):
        runner.execute(faulty(), tmp_path, show=False)
    (folder,) = find_runs(tmp_path)
    assert not folder.saved_updates() and not folder.record().ended


@ft.cache
def evaluated():
    """Returns a function from a case and the affected members to the faults that an evaluation finds."""
    config = faulty().config
    states = jax.tree.map(lambda *x: jnp.stack(x), *(random_state(config, seed) for seed in (0, 1)))
    run = jax.jit(jax.vmap(lambda state: evaluation(config, state)))

    def find(case, members=(0, 1)):
        wrong.update(case=case, members=members)
        return faults.unstack(faults.take(jax.block_until_ready(run(states))))

    return config, find


@pytest.mark.parametrize("case", MESSAGES)
def test_a_broken_environment_is_named(case):
    config, find = evaluated()
    for fault in find(case):
        assert re.search(MESSAGES[case], faults.describe(fault, config.env))
        assert fault.is_of_environment and faults.when(fault) == "before training"
    assert [bool(fault) for fault in find(case, members=[1])] == [False, True]
    assert find("right") == [None, None]


LOST, EARLY = Fault(faults.OBSERVATION, 3, 17, False, 2, 0), Fault(faults.EARLY, 3, 5)


def finding(real, *found):
    """Returns a program that finds these faults in its third block."""
    calls = []

    def block(state):
        calls.append(0)
        state, metrics = real.block(state)
        now = [*found, None] if len(calls) == 3 else [None] * 5
        return state, metrics | {"fault": np.fromiter(now[:4], object)}

    return real._replace(block=block)


BLAMED = {
    "t-ls-small|T-Maze: observation is nan at index 2 at step 17 of a rollout": [LOST] * 4,
    r"but one ended at step 5; declare .* \(found at update 3\)": [None, None, EARLY, None],
}


@pytest.mark.parametrize("message", BLAMED)
def test_a_broken_environment_stops_the_run_and_its_last_checkpoint_stays(
    message, tmp_path, monkeypatch, trained
):
    real = runner.compile_grid(tiny().config, tiny().points)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "compile_grid", lambda *_: finding(real, *BLAMED[message]))
        with pytest.raises(RunError, match=f"{message}.*run the same command again to continue"):
            runner.execute(tiny(), tmp_path, save_every=0, show=False)
    (folder,) = find_runs(tmp_path)
    assert folder.saved_updates()[-1] == 2 and not folder.record().ended
    assert not folder.record().stopped
    runner.execute(tiny(), tmp_path, show=False)
    assert (folder.path / "curves.csv").read_bytes() == (trained / "curves.csv").read_bytes()


def test_members_whose_environment_breaks_are_named_and_the_others_continue(
    tmp_path, monkeypatch, trained
):
    real, notes = runner.compile_grid(tiny().config, tiny().points), []
    view = lambda *rest: progress.Lines(*rest[:3], write=notes.append)  # noqa: E731
    monkeypatch.setattr(progress, "choose", view)
    monkeypatch.setattr(runner, "compile_grid", lambda *_: finding(real, LOST, None, None, LOST))
    folder, _ = runner.execute(tiny(), tmp_path)
    first, second = [note for note in notes if note.startswith("stopped")]
    assert first.startswith("stopped: rate 0.001, seed 0 diverged (NaN or infinity) at update 3: ")
    assert first.endswith("at index 2 at step 17 of a rollout; the other runs continue")
    assert "rate 0.0003, seed 1" in second
    assert list(folder.record().stopped.values()) == [3, 3] and folder.record().finished
    ours, theirs = folder.curves(), splagger.curves(trained)
    healthy = (theirs.rate == 1e-3) & (theirs.seed == 1) | (theirs.rate == 3e-4) & (
        theirs.seed == 0
    )
    kept = theirs[healthy | (theirs["update"] < 3)].reset_index(drop=True)
    pandas.testing.assert_frame_equal(ours, kept)


@pytest.mark.parametrize(
    "rates, update",
    [
        ((1e38, 1e37), 1),
        ((1e30, 1e29), 2),  # the first update's gradients are finite, only their squares overflow
    ],
)
def test_members_with_rates_far_too_high_fail_by_name(rates, update, tmp_path):
    member = re.escape(f"rate {rates[0]:g}, seed 0 at update {update}: ")
    with pytest.raises(DivergedError, match=member + r"\w+ (is|are) not finite; .*no checkpoint"):
        runner.execute(tiny(rates=rates), tmp_path, show=False)
    (folder,) = find_runs(tmp_path)
    assert folder.record().failed and set(folder.record().stopped.values()) == {update}


def metrics(error):
    return {"return": np.ones(2), "first_ratio_error": np.array([0.01, error])}


def test_ratios_far_from_one_are_warned_of_once():
    run = faulty()
    checked = health.Health(run.config, run.points, str, progress.Silent())
    assert len(list(checked.check(metrics(health.MAX_RATIO_ERROR), 1))) == 2
    with pytest.warns(
        UserWarning, match=r"rate 0\.001, seed 1, update 2: first_ratio_error is 0\.3, above 0\.2"
    ):
        list(checked.check(metrics(0.3), 2))
    assert len(list(checked.check(metrics(0.4), 3))) == 2  # without another warning


def test_ratios_are_not_one_by_design_if_updates_draw_other_noise():
    run = Run.create(
        Faulty(),
        "pearl",
        BATCH,
        SMALL | {"ppo.update_noise": "fresh"},
        EPISODES,
        seeds=2,
        rates=[1e-3],
    )
    checked = health.Health(run.config, run.points, str, progress.Silent())
    assert len(list(checked.check(metrics(5.0), 1))) == 2


def test_warnings_are_printed_where_progress_is():
    lines = []
    progress.Lines("title", [], 1, write=lines.append).warn("look")
    assert lines == ["WARNING: look"]


@pytest.mark.slow
@pytest.mark.parametrize("case", MESSAGES)
def test_a_broken_environment_stops_training_and_saves_nothing_wrong(
    case, tmp_path, monkeypatch, undisturbed
):
    with monkeypatch.context() as patch:
        wrong_after(2, case, patch)
        with pytest.raises(RunError, match=MESSAGES[case] + r".* \(found at update 3\)"):
            runner.execute(faulty(), tmp_path, save_every=0, show=False)
    (folder,) = find_runs(tmp_path)
    assert folder.saved_updates()[-1] == 2 and not folder.record().ended
    wrong.update(case="right")
    runner.execute(faulty(), tmp_path, show=False)
    curves = [(f.path / "curves.csv").read_bytes() for f in (folder, undisturbed)]
    assert curves[0] == curves[1] and folder.record().finished


@pytest.mark.slow
@pytest.mark.parametrize("case", ["reward", "last obs"])
def test_a_member_whose_environment_breaks_is_named_and_the_others_continue(
    case, tmp_path, monkeypatch, undisturbed
):
    notes = []
    view = lambda *rest: progress.Lines(*rest[:3], write=notes.append)  # noqa: E731
    monkeypatch.setattr(progress, "choose", view)
    wrong_after(1, case, monkeypatch, members=[0])
    folder, _ = runner.execute(faulty(), tmp_path)
    (note,) = [note for note in notes if note.startswith("stopped")]
    assert re.match(
        r"stopped: rate 0\.001, seed 0 diverged .* at update 2: " + MESSAGES[case], note
    )
    assert note.endswith("the other runs continue")
    assert list(folder.record().stopped.values()) == [2] and folder.record().finished
    ours, theirs = folder.curves(), undisturbed.curves()
    assert (ours[ours.seed == 1].to_numpy() == theirs[theirs.seed == 1].to_numpy())[2:].all()
