"""The public functions: what `train` returns, and that a loaded agent is the one that was trained."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas
import pytest
from PIL import Image, ImageSequence

import splagger
from splagger.agent import Actor
from splagger.agents import Player, recording
from splagger.agents.loading import load_members, load_seeds
from splagger.cli import main
from splagger.envs import MetaEnv, TMaze
from splagger.errors import RunError, SettingError
from splagger.memory import Transition
from splagger.ppo.evaluation import returns_of
from splagger.ppo.rollout import collect, start_actors
from splagger.ppo.train import FRESH_STREAM
from splagger.runs.folder import RunFolder
from splagger.training.runner import TRAINING_METRICS
from tests.close import assert_close
from tests.tiny import BATCH, SETTINGS, UPDATES, tiny


@pytest.fixture(scope="module")
def player(trained):
    return splagger.load(trained)


@pytest.fixture
def fresh(player):
    """The same agent with an empty memory."""
    return Player(player.agent, player.normalizers, player.env, player.point)


def experience(env, steps=6):
    """Returns random (obs, action, reward, next_obs) as numpy."""
    random = np.random.default_rng(0)
    obs = random.normal(size=(steps + 1, env.obs_size)).astype(np.float32)
    actions, rewards = random.integers(env.space.size, size=steps), random.normal(size=steps)
    return list(zip(obs[:-1], actions, rewards, obs[1:], strict=True))


def test_train_returns_the_curves_and_their_folder(trained):
    frame = splagger.train(
        "t-ls-small",
        "splagger",
        rates=[1e-3, 3e-4],
        seeds=2,
        frames=UPDATES * BATCH,
        out=trained.parents[2],
        settings=SETTINGS,
        show=False,
    )
    assert frame.attrs["folder"] == str(trained)
    assert len(frame) == 4 * (UPDATES + 1)
    assert {"update", "frames", "rate", "seed", "return", *TRAINING_METRICS} <= set(frame.columns)
    pandas.testing.assert_frame_equal(frame, splagger.curves(frame.attrs["folder"]))


def test_the_best_agent_at_the_end_is_loaded(trained, player):
    curves = splagger.curves(trained)
    last = curves[curves["update"] == UPDATES].set_index(["rate", "seed"])["return"]
    assert last[player.point.rate, player.point.seed] == last.max()


@pytest.mark.parametrize("point", tiny().points, ids=str)
def test_rate_and_seed_select_the_agent(trained, point):
    assert splagger.load(trained, rate=point.rate, seed=point.seed).point == point


def test_different_members_are_different_agents(trained):
    one, other = (splagger.load(trained, rate=1e-3, seed=s).agent for s in (0, 1))
    weights = [agent.memory.projection.weight for agent in (one, other)]
    assert weights[0].shape == weights[1].shape
    assert not np.allclose(*weights)


@pytest.mark.parametrize("choice", [{"rate": 0.5}, {"seed": 7}], ids=str)
def test_an_untrained_rate_or_seed_is_refused_with_the_trained_ones(trained, choice):
    ((name, value),) = choice.items()
    there = {"rate": r"\[0\.0003, 0\.001\]", "seed": r"\[0, 1\]"}[name]
    with pytest.raises(RunError, match=f"no agent with {name} {value}; it has {name}: {there}"):
        splagger.load(trained, **choice)


def test_an_agent_is_selected_by_any_axis(trained):
    player = splagger.load(trained, 3e-4, 1, entropy_weight=0.1)
    assert player.point[:2] == (3e-4, 0.1) and player.point.seed == 1
    assert player.path == trained
    with pytest.raises(RunError, match=r"no agent with kl_weight 7; it has kl_weight: \["):
        splagger.load(trained, kl_weight=7)
    with pytest.raises(
        SettingError, match="no setting of an agent 'kl'; there are entropy_weight, kl_weight"
    ):
        splagger.load(trained, kl=7)


def test_a_folder_without_a_run_cannot_be_loaded(tmp_path):
    with pytest.raises(RunError, match=r"is not a run folder: it has no run\.json"):
        splagger.load(tmp_path)


def test_the_memory_of_a_player_equals_that_of_the_actor(fresh):
    observe, actor, memory = jax.jit(Actor.observe), fresh.agent.actor(), fresh.agent.start()
    for obs, action, reward, next_obs in experience(fresh.env):
        fresh.act(obs)
        fresh.observe(int(action), float(reward), next_obs)
        step = jnp.asarray(obs), jnp.int32(action), jnp.float32(reward), jnp.asarray(next_obs)
        memory = observe(actor, memory, Transition(*step), False)
        assert_close(fresh.memory, memory, rtol=0, atol=0)


def test_the_end_of_a_task_and_a_reset_empty_the_memory(fresh):
    for end in (lambda step: fresh.observe(*step, task_done=True), lambda _: fresh.reset()):
        obs, action, reward, next_obs = experience(fresh.env)[0]
        fresh.act(obs)
        fresh.observe(action, reward, next_obs)
        assert not np.allclose(fresh.memory.output, fresh.agent.start().output)
        fresh.act(next_obs)
        end((action, reward, next_obs))
        assert_close(fresh.memory, fresh.agent.start(), rtol=1e-6)


def test_actions_are_legal_and_the_most_likely_one_is_deterministic(fresh):
    obs = experience(fresh.env)[0][0]
    assert type(fresh.act(obs)) is int
    assert len({fresh.act(obs) for _ in range(5)}) == 1
    explored = {fresh.act(list(obs), explore=True) for _ in range(50)}
    assert len(explored) > 1 and explored <= set(range(fresh.env.space.size))


@pytest.mark.parametrize("shape", [(4,), (6,), (1, 5), ()])
def test_observations_of_another_shape_are_refused_with_the_right_one(fresh, shape):
    message = r"obs must have shape \(5,\) \(the last number is the done flag\), got \("
    with pytest.raises(SettingError, match=message):
        fresh.act(np.zeros(shape))


def test_next_observations_of_another_shape_are_refused_with_the_right_one(fresh):
    fresh.act(np.zeros(5))
    with pytest.raises(SettingError, match=r"next_obs must have shape \(5,\).*, got \(4,\)"):
        fresh.observe(0, 0.0, np.zeros(4))


def test_nothing_can_be_observed_before_an_action(fresh):
    with pytest.raises(SettingError, match=r"call act\(\) before each"):
        fresh.observe(0, 0.0, np.zeros(5))
    fresh.act(np.zeros(5))
    fresh.reset()
    with pytest.raises(SettingError, match=r"call act\(\) before each"):
        fresh.observe(0, 0.0, np.zeros(5))


def test_evaluation_has_an_interval_and_depends_on_its_seed_alone(player):
    episodes, total = splagger.evaluate(player, tasks=6, seed=3)
    assert (episodes, total) == splagger.evaluate(player, tasks=6, seed=3)
    assert (episodes, total) != splagger.evaluate(player, tasks=6, seed=4)
    assert len(episodes) == player.env.episodes
    assert {score.tasks for score in (*episodes, total)} == {6}
    assert total.mean == pytest.approx(sum(score.mean for score in episodes))
    assert -12 <= total.mean <= 16 and all(score.margin >= 0 for score in (*episodes, total))


def test_evaluation_samples_actions_if_it_explores(player):
    """The rewards are those of a rollout of training, which explores too."""
    sampled = splagger.evaluate(player, tasks=8, seed=3, explore=True)
    assert sampled == splagger.evaluate(player, tasks=8, seed=3, explore=True)
    assert sampled != splagger.evaluate(player, tasks=8, seed=3)
    env = player.environment("evaluating")
    start, run = jr.split(jr.split(jr.fold_in(jr.key(3), FRESH_STREAM), 1)[0])
    actors = start_actors(env, player.agent, 8, start)
    keys = jr.split(run, env.horizon)
    rollout = collect(env, player.agent, player.normalizers, actors, keys)[1]
    assert sampled[1].mean == pytest.approx(float(returns_of(env, rollout).sum() / 8), abs=1e-4)


def test_an_interval_needs_two_tasks(player):
    with pytest.raises(SettingError, match="at least 2 tasks, got 1"):
        splagger.evaluate(player, tasks=1)


def test_a_player_says_what_it_is(player):
    assert re.fullmatch(
        r"Player\(splagger on t-ls-small, rate .*, seed \d, from .*\)", repr(player)
    )


def test_new_rows_are_passed_to_a_callback(tmp_path):
    rows = []
    settings = {
        "settings": SETTINGS,
        "frames": UPDATES * BATCH,
        "show": False,
        "on_metrics": rows.append,
    }
    curves = splagger.train("t-ls-small", "splagger", [1e-3, 3e-4], 2, out=tmp_path, **settings)
    assert [row["update"] for row in rows] == list(curves["update"])
    assert [row["return"] for row in rows] == list(curves["return"])
    assert set(rows[0]) == set(curves.columns)


def test_watch_writes_an_animated_gif(player, tmp_path):
    earned = splagger.watch(player, tmp_path / "watch.gif", seed=1)
    assert earned in {4.0 * right - 3.0 * (4 - right) for right in range(5)}
    with Image.open(tmp_path / "watch.gif") as picture:
        assert picture.format == "GIF" and picture.n_frames > 1


def test_a_gif_shows_as_many_pictures_per_second_as_asked_for(player, tmp_path, monkeypatch):
    """One every 1/60 s, although GIF files store hundredths of a second."""
    fps, pictures = 60, 7
    frames = [np.full((4, 4, 3), 30 * k, np.uint8) for k in range(pictures)]
    monkeypatch.setattr(recording, "record", lambda *_: (frames, 0.0))
    splagger.watch(player, tmp_path / "watch.gif", fps=fps)
    with Image.open(tmp_path / "watch.gif") as picture:
        shown = sum(frame.info["duration"] for frame in ImageSequence.Iterator(picture))
    assert abs(shown - 1000 * pictures / fps) <= 10


def test_watch_depends_on_its_seed_alone_also_if_latents_are_sampled(tmp_path, player, monkeypatch):
    """Each recording draws its latents from its own seed, and leaves the keys of the player alone."""
    keys = []
    act = Player.act
    monkeypatch.setattr(Player, "act", lambda self, *a: keys.append(self._key) or act(self, *a))
    splagger.watch(player, seed=3)
    player.act(np.zeros(5))  # draws from the player's own keys
    first, keys[:] = jnp.stack(keys[:-1]), []
    before = player._key
    splagger.watch(player, seed=3)
    assert (first == jnp.stack(keys)).all() and (player._key == before).all()


def test_watch_returns_pictures_without_a_path_and_shows_the_end_of_every_episode(player):
    frames = splagger.watch(player, seed=1)
    steps, episodes = 4 * 5, 4
    assert len(frames) == steps + episodes * recording.PAUSE
    assert {(f.shape, str(f.dtype)) for f in frames} == {(frames[0].shape, "uint8")}
    ends = frames[5 :: 5 + recording.PAUSE]
    strips = [frame[-recording.STRIP :] for frame in ends]
    assert not any((strips[0] == strip).all() for strip in strips[1:])  # another return each time
    assert (frames[-1] == frames[-recording.PAUSE]).all()


def test_an_agent_is_loaded_from_a_file_as_it_was_saved(trained, tmp_path):
    player = splagger.load(trained, 3e-4, 1)
    splagger.save_agent(player, tmp_path / "agent.npz")
    again = splagger.load(tmp_path / "agent.npz")
    assert (again.point, again.run, again.path) == (
        player.point,
        player.run,
        tmp_path / "agent.npz",
    )
    assert_close(again.agent, player.agent, rtol=0, atol=0)
    assert_close(again.normalizers, player.normalizers, rtol=0, atol=0)
    assert splagger.evaluate(again, 8) == splagger.evaluate(player, 8)
    assert splagger.load(tmp_path / "agent.npz", seed=1).point.seed == 1
    with pytest.raises(RunError, match=r"agent\.npz has no agent with seed 0; it has seed: \[1\]"):
        splagger.load(tmp_path / "agent.npz", seed=0)


def test_a_file_that_is_not_an_agent_is_refused(trained, tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(RunError, match=f"{name} is not an agent that splagger wrote"):
            splagger.load(tmp_path / name)
    player = splagger.load(trained)
    with pytest.raises(SettingError, match=r"must end with \.npz, got .*agent\.pt"):
        splagger.save_agent(player, tmp_path / "agent.pt")
    with pytest.raises(RunError, match=r"cannot write .*nowhere"):
        splagger.save_agent(player, tmp_path / "nowhere" / "agent.npz")
    splagger.save_agent(player, tmp_path / "agent.npz")
    arrays = dict(np.load(tmp_path / "agent.npz"))
    wider = next(name for name in arrays if name.endswith("hidden_weight"))
    np.savez(tmp_path / "wider.npz", **(arrays | {wider: np.zeros((3, 3), np.float32)}))
    with pytest.raises(RunError, match=r"hidden_weight must be float32\[.*\], got float32\[3, 3\]"):
        splagger.load(tmp_path / "wider.npz")


def test_an_agent_plays_in_an_environment_with_other_settings(player):
    longer = player.with_env(length=7, episodes=3)
    assert (longer.env.env.length, longer.env.episodes, longer.env.horizon) == (7, 3, 21)
    assert (player.env.env.length, player.env.episodes) == (5, 4)  # unchanged
    assert (longer.agent, longer.point, longer.path) == (player.agent, player.point, player.path)
    episodes, _ = splagger.evaluate(longer, tasks=4)
    assert len(episodes) == 3
    same = player.with_env(length="5")  # as on the command line
    assert splagger.evaluate(same, tasks=4) == splagger.evaluate(player, tasks=4)


def test_settings_that_change_what_the_agent_sees_are_refused(player, fresh):
    with pytest.raises(SettingError, match=r"t-ls-small would have 4 observed numbers .* with 5"):
        player.with_env(episodes=1)
    with pytest.raises(SettingError, match="no env setting 'lenth'; did you mean length"):
        player.with_env(lenth=7)
    with pytest.raises(SettingError, match="length"):
        player.with_env(length=0)
    with pytest.raises(SettingError, match="episodes must be"):
        player.with_env(episodes=0)
    with pytest.raises(SettingError, match="this player has no run"):
        fresh.with_env(length=7)


@pytest.mark.parametrize("name", ["env", "episodes", "self", "settings"])
def test_a_setting_may_have_any_name(player, trained, capsys, name):
    """Also that of an argument of `with_env`: the error says what is possible."""
    message = f"no setting here; pass {name}=" if name[0] == "e" else f"no env setting '{name}'; th"
    with pytest.raises(SettingError, match=message):
        player.with_env(settings={name: 3})
    with pytest.raises(SystemExit):
        main(["evaluate", str(trained), "--tasks", "2", "--set", f"env.{name}=3"])
    assert message in capsys.readouterr().err
    assert player.with_env(settings={"length": 7}).env == player.with_env(length=7).env


def test_changes_of_the_environment_add_up_in_any_order(player):
    ways = player.with_env(length=7).with_env(episodes=3), player.with_env(3).with_env(length=7)
    assert {(p.env.env.length, p.env.episodes) for p in ways} == {(7, 3)}
    again = ways[0].with_env(length=6)
    assert (again.env.env.length, again.env.episodes) == (6, 3)
    assert again.changes == {"length": 6, "episodes": 3} and player.changes == {}


def test_an_agent_plays_in_another_environment(player, fresh):
    other = MetaEnv(TMaze(length=9), episodes=2)
    elsewhere = player.with_env(env=other)
    assert elsewhere.env == other and len(splagger.evaluate(elsewhere, tasks=4)[0]) == 2
    assert elsewhere.with_env(length=6).env == MetaEnv(TMaze(length=6), episodes=2)
    # Changes of the environment in training do not follow into another one, and those of `env` are named.
    changed = player.with_env(length=7, episodes=3).with_env(env=other, length=8)
    assert changed.env == MetaEnv(TMaze(length=8), episodes=2)
    assert changed.changes == {"env": "T-Maze", "length": 8}
    assert fresh.with_env(env=other).env == other


def test_an_environment_without_a_number_of_episodes_has_those_of_training(player):
    bare = TMaze(length=9)
    assert player.with_env(env=bare).env == MetaEnv(bare, episodes=4)
    assert player.with_env(3).with_env(env=bare).with_env(length=6).env == MetaEnv(TMaze(6), 4)
    assert player.with_env(episodes=2, env=bare).env == MetaEnv(bare, episodes=2)
    with pytest.raises(SettingError, match=r"would have 4 .*; pass episodes=4, as before"):
        player.with_env(env=MetaEnv(bare, episodes=1))


def test_an_environment_that_the_agent_cannot_see_is_refused(player):
    with pytest.raises(
        SettingError, match=r"planning would have .*, but the agent was trained with 5"
    ):
        player.with_env(env="planning")
    with pytest.raises(SettingError, match="no environment 'nowhere'"):
        player.with_env(env="nowhere")


def test_a_player_in_another_environment_is_saved_with_that_of_its_training(player, tmp_path):
    splagger.save_agent(player.with_env(length=7, episodes=3), tmp_path / "agent.npz")
    loaded = splagger.load(tmp_path / "agent.npz")
    assert (loaded.env, loaded.changes) == (player.env, {})
    assert splagger.evaluate(loaded, tasks=4) == splagger.evaluate(player, tasks=4)


OUTCOMES = {  # (action, reward) → message
    (0, np.nan): "reward must be one finite number, got nan",
    (0, np.inf): "reward must be one finite number, got inf",
    (0, (0.0,)): r"reward must be one finite number, got \(0.0,\)",
    (0, None): "reward must be one finite number|reward must be a number",
    (0, "much"): "reward must be a number, got str",
    (4, 0.0): r"action must be one of Discrete\(size=4\), got 4",
    (-1, 0.0): "action must be one of .*, got -1",
    (1.5, 0.0): r"action must be one of .*, got 1\.5",
    (np.nan, 0.0): "action must be one of .*, got nan",
    ((1, 2), 0.0): r"action must be one of .*, got \(1, 2\)",
    ("left", 0.0): "action must be one of .*, got 'left'",
    (None, 0.0): "action must be one of .*, got None",
}


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_an_outcome_that_cannot_be_is_refused_and_the_memory_kept(fresh, outcome):
    obs = np.zeros(fresh.env.obs_size)
    fresh.act(obs)
    before = fresh.memory
    with pytest.raises(SettingError, match=OUTCOMES[outcome]):
        fresh.observe(*outcome, obs)
    assert fresh.memory is before
    fresh.observe(np.int64(3), np.float64(0.5), obs)  # the same step, with a valid outcome
    assert np.isfinite(fresh.memory.output).all()


@pytest.mark.parametrize("fps", [0, -3, 2000])
def test_a_speed_that_no_gif_has_is_refused_before_playing(player, tmp_path, fps):
    with pytest.raises(SettingError, match=f"fps must be between 1 and 100, got {fps}"):
        splagger.watch(player, tmp_path / "a.gif", fps=fps)
    assert not list(tmp_path.iterdir())


def test_an_agent_that_diverged_is_not_loaded(trained, player, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "run")
    folder, run = RunFolder(tmp_path / "run"), tiny()
    gone = player.point._replace(seed=1 - player.point.seed)
    folder.write_record(replace(folder.record(), stopped={run.member(gone): 3}))
    name = f"rate {gone.rate:g} and seed {gone.seed}"
    with pytest.raises(
        RunError, match=f"the agent with {name} had diverged by update 3; choose another"
    ):
        splagger.load(folder.path, rate=gone.rate, seed=gone.seed)
    assert [p.point for p in load_seeds(folder.path)] == [player.point]
    assert [p.point for p in load_members(folder.path)] == [p for p in run.points if p != gone]
    main(["evaluate", str(folder.path), "--every-seed", "--tasks", "2"])
    assert f"seed {gone.seed}         diverged, not evaluated" in capsys.readouterr().out


MISTAKES = """
import numpy as np
import splagger
from splagger.errors import UserError

def line(call):
    try:
        return f"no error: {call()}"
    except UserError as error:
        return str(error)

name = "t-ls/rnn"
agent = splagger.load(name)
for call in (
    lambda: splagger.evaluate(name, tasks=4),
    lambda: splagger.watch(name),
    lambda: splagger.save_agent(name, "x.npz"),
    lambda: splagger.inspect(name, "x.html"),
    lambda: splagger.evaluate(agent, tasks=2.5),
    lambda: splagger.evaluate(agent, tasks="8"),
    lambda: splagger.evaluate(agent, seed=0.5),
    lambda: splagger.train("t-ls-small", "rnn", settings=["ppo.steps=80"]),
    lambda: splagger.sweep("t-ls-small", "rnn", settings=["ppo.steps=80"]),
    lambda: splagger.sweep("t-ls-small", "rnn", vary=["ppo.steps=80"]),
    lambda: splagger.sweep("t-ls-small", "rnn", vary={"ppo.steps": 80}),
    lambda: splagger.train("t-ls-small", "rnn", on_metrics=5, frames=100),
    lambda: splagger.aggregators.check_aggregator(splagger.aggregators.Max),
    lambda: [agent.act(np.zeros(5)), agent.observe(0, 0.0, np.zeros(5), np.array([False, True]))],
):
    print(line(call))
"""


def test_values_of_wrong_types_are_named(tmp_path):
    """In a process of its own, because the type checks of these tests would be the first to complain."""
    done = subprocess.run(
        [sys.executable, "-c", MISTAKES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    needed = "an agent that splagger.load returned is needed, got str; splagger.load('t-ls/rnn') returns one"
    assert done.stdout.splitlines() == [needed] * 4 + [
        "tasks must be a whole number, got 2.5",
        "tasks must be a number, got 8",
        "seed must be a whole number, got 0.5",
        *["settings must be like {\"ppo.steps\": 80}, got ['ppo.steps=80']"] * 2,
        "vary must be like {\"method.skip\": [0, 0.5, 1]}, got ['ppo.steps=80']",
        "vary takes a list of values for ppo.steps, got 80",
        "on_metrics must be a function, got int",
        "an aggregator must be an instance of a class, got the class Max",
        "task_done must be True or False, got array([False,  True])",
    ]
    assert not list(tmp_path.iterdir())
