"""Custom environments from start to end: trained, interrupted, resumed, evaluated, watched and plotted."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest
from PIL import Image

import splagger
from splagger.agents.loading import recreate
from splagger.bridges import from_gymnasium
from splagger.bridges.gym.host import close_pools
from splagger.bridges.resolve import resolve, row_of
from splagger.cli import main
from splagger.envs import Env, MetaEnv, TMaze
from splagger.envs.protocol import Drawable, EnvSpec, Step, follows
from splagger.errors import RunError, SettingError
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.folder import RunFolder
from splagger.runs.record import RunRecord
from splagger.runs.run import Run
from splagger.spaces import Discrete
from splagger.training import runner
from splagger.training.program import compile_grid
from tests.bridges import gym_probes
from tests.tiny import SETTINGS, bits

NAME = "gym:tests.bridges.gym_probes:ByOptions"
SMALL = {k: v for k, v in SETTINGS.items() if not k.startswith("env.")}
OWN = {"env.task": "tests.bridges.gym_probes:draw_task", "env.max_steps": 4}
BATCH, UPDATES = 80, 6


def walking(env=NAME, updates=UPDATES, **changes) -> Run:
    """A run with two members and three episodes per task: 80 frames per update, tasks of up to 12 steps."""
    given = {"method": "cnp", "rates": (1e-3,), "seeds": 2, "episodes": 3}
    given |= {"frames": updates * BATCH, "overrides": SMALL | OWN}
    return Run.create(env, **(given | changes))


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The folder of a finished run; do not write to it."""
    return runner.execute(walking(), tmp_path_factory.mktemp("walked"), show=False)[0]


def state_of(folder, run=None):
    run = run or walking()
    return bits(restore_checkpoint(folder, compile_grid(run.config, run.points).example)[:2])


def same_end(one, other):
    curves = [(folder.path / "curves.csv").read_bytes() for folder in (one, other)]
    return curves[0] == curves[1] and state_of(one) == state_of(other)


def breaking_after(update, monkeypatch):
    """Lets the environment raise at the third step of an episode, from that update on."""
    original = runner.Execution._block

    def block(self, *args):
        state = original(self, *args)
        monkeypatch.setattr(gym_probes.Walk, "broken", self.update >= update)
        return state

    monkeypatch.setattr(runner.Execution, "_block", block)


def test_a_run_whose_environment_fails_resumes_bit_for_bit_in_a_new_process(
    walked, tmp_path, monkeypatch
):
    """The environment fails within tasks, and the pool is empty when the run resumes."""
    with monkeypatch.context() as patch:
        breaking_after(2, patch)
        message = r"ByOptions: step\(\) raised ZeroDivisionError: no reason .* at step 3 of episode .* the same"
        with pytest.raises(RunError, match=message):
            runner.execute(walking(), tmp_path, save_every=0, show=False)
    folder = RunFolder(tmp_path / walked.path.relative_to(walked.path.parents[2]))
    assert folder.saved_updates()[-1] == 2 and not folder.record().finished
    close_pools()
    assert runner.execute(walking(), tmp_path, show=False)[1]
    assert same_end(folder, walked)


def test_errors_of_an_environment_are_printed_in_one_line(tmp_path, capsys, monkeypatch):
    command = shlex.split(walking().command())[1:]
    monkeypatch.setattr(gym_probes.Walk, "broken", True)
    with pytest.raises(SystemExit) as end:
        main([*command, "--out", str(tmp_path)])
    printed = capsys.readouterr().err
    assert end.value.code == 2 and "Traceback" not in printed
    assert f"splagger: {NAME}: step() raised ZeroDivisionError: no reason" in printed


def test_the_folder_describes_how_to_repeat_the_run(walked):
    record = walked.record()
    assert walked.path.parts[-3] == "gym-tests.bridges.gym_probes-ByOptions"
    run = recreate(record.arguments, record.plan, walked.path, trust=True)
    assert run.digest == walked.path.name == walking().digest
    assert record.plan["environment"]["task"] == OWN["env.task"]
    assert record.provenance["command"].startswith(f"splagger train {NAME} cnp --episodes 3 ")
    assert "gymnasium" in record.provenance["versions"]


def test_the_command_line_evaluates_watches_and_plots_a_run(walked, tmp_path, capsys):
    main(["evaluate", str(walked.path), "--tasks", "6", "--trust"])
    out = capsys.readouterr().out
    assert "6 tasks" in out and out.count("±") == 4
    main(["watch", str(walked.path), "-o", str(tmp_path / "episode.gif"), "--trust"])
    main(["plot", str(walked.path), "-o", str(tmp_path / "curves.png")])
    with Image.open(tmp_path / "episode.gif") as picture:
        assert 3 < picture.n_frames <= 12
    with Image.open(tmp_path / "curves.png") as picture:
        assert min(picture.size) > 10


def test_settings_in_python_equal_those_of_the_command_line(walked):
    env = from_gymnasium(
        gym_probes.ByOptions, task=gym_probes.draw_task, episodes=3, max_steps=4, workers=2
    )
    run = walking(env, episodes=None, overrides=SMALL)
    assert run.digest == walked.path.name, "the number of workers is not part of the digest"
    assert run.row.env.workers == 2
    assert Run.create(**run.arguments()).digest == run.digest


def test_the_kwargs_of_an_environment_are_part_of_the_digest():
    path = "gym:tests.bridges.gym_probes:Sized"

    def sized(env=path, **overrides):
        return Run.create(env, "rnn", overrides={"env.max_steps": 4} | overrides)

    plain, text = sized(), sized(**{"env.kwargs": '{"size": 5}'})
    assert text.config.env.obs_size == 5 and "kwargs" not in plain.describe()["environment"]
    same = (
        sized(**{"env.kwargs": {"size": 5}}),
        sized(from_gymnasium("tests.bridges.gym_probes:Sized", max_steps=4, kwargs={"size": 5})),
    )
    again = Run.create(**json.loads(json.dumps(text.arguments())))
    assert {run.digest for run in (*same, again)} == {text.digest} != {plain.digest}
    assert sized(**{"env.kwargs": {}}).arguments() == plain.arguments()
    compact = sized(**{"env.kwargs": '{"size":5}'})
    for run in (text, compact, again, *same):
        assert """--set 'env.kwargs={"size": 5}' env.max_steps=4""" in run.command()
        assert hash(run) == hash(text)


class Bandit(eqx.Module):
    """Two arms, one of which yields a reward; a task lasts three pulls. It has no observation and no images."""

    arms: int = eqx.field(static=True, default=2)
    noise: Any = 0

    @property
    def spec(self):
        return EnvSpec("bandit", 1, splagger.Discrete(self.arms), horizon=3)

    def sample_task(self, key):
        return jr.randint(key, (), 0, self.arms)

    def reset(self, key, task):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, key, task, pulls, action):
        paid = (action == task).astype(jnp.float32)
        return pulls + 1, Step(jnp.zeros(1), paid, pulls == 2, jnp.bool_(False))


def test_unregistered_environments_and_methods_are_passed_to_load(tmp_path):
    method = splagger.Method("custom", encoder="pointwise", skip=0.0)
    env = MetaEnv(Bandit(), episodes=1)
    run, folder = Run.create(env, method), RunFolder(tmp_path)
    record = RunRecord(plan=run.describe(), arguments=run.arguments())
    folder.write_record(record)
    message = r"no environment 'bandit'.*splagger\.load\(…, env=…, method=…\)"
    with pytest.raises(RunError, match=message):
        splagger.load(tmp_path)
    assert recreate(record.arguments, record.plan, folder.path, env, method) == run
    with pytest.raises(RunError, match="other definitions of 'bandit' or 'custom'"):
        splagger.load(tmp_path, env=MetaEnv(Bandit(3), 1), method=method)


def test_an_environment_without_render_is_reported():
    with pytest.raises(ValueError, match="bandit cannot be drawn: it has no render"):
        MetaEnv(Bandit(), 1).to_render()


class Wrapper:
    """Takes everything from the environment that it wraps."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)


def test_wrapped_environments_have_the_members_of_the_inner_one():
    assert follows(Wrapper(Bandit()), Env) and not follows(Wrapper(3), Env)
    assert follows(Wrapper(TMaze()), Drawable) and not follows(Wrapper(Bandit()), Drawable)


def test_names_with_a_prefix_are_resolved():
    path = "jax:tests.training.test_own_envs:"
    assert resolve(path + "Bandit").name == path + "Bandit"
    row = resolve(path + "ROW")  # by this name its runs find it again
    assert row == replace(ROW, name=path + "ROW") and resolve(row.name) is row
    assert resolve(Bandit()).meta == MetaEnv(Bandit(), 1)
    assert resolve("gym:CartPole-v1").meta.horizon == 500
    assert resolve("t-ls") is splagger.ENVS["t-ls"]


ROW = replace(row_of(Bandit()), name="row")

UNKNOWN = {
    "gmy:CartPole-v1": "no source of environments 'gmy'; did you mean gym",
    "gym:CartPool-v1": "gym:CartPool-v1: the environment cannot be created",
    "jax:nowhere:env": "jax:nowhere:env cannot be found",
    "gymnax:nothing": "gymnax:nothing cannot be created",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names_are_refused_before_anything_starts(name):
    with pytest.raises(ValueError, match=UNKNOWN[name]):
        Run.create(name, "rnn")


def test_other_objects_are_not_accepted_as_environments():
    with pytest.raises(ValueError, match="3 is not an environment: pass a name"):
        Run.create(3, "rnn")
    with pytest.raises(ValueError, match="settings of an environment and a method must be plain"):
        Run.create(MetaEnv(Bandit(noise=jnp.ones(2)), 1), "rnn")


def test_the_number_of_episodes_can_be_set_for_any_environment():
    assert Run.create("t-ls", "rnn", episodes=2).config.env.horizon == 200
    with pytest.raises(ValueError, match="episodes must be at least 1, got 0"):
        Run.create("t-ls", "rnn", episodes=0)


SCRIPT = """
import gymnasium, numpy as np, splagger

class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space, max_steps = gymnasium.spaces.Discrete(2), 5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(2, np.float32), 1.0, self.t >= 5, False, {}

print("the script runs")
small = splagger.SMALL | {"ppo.envs": 2, "ppo.steps": 10, "ppo.eval_interval": 1, "ppo.eval_tasks": 2}
env = splagger.from_gymnasium(Walk)
curves = splagger.train(env, "rnn", rates=1e-3, seeds=1, frames=20, settings=small, show=False)
agent = splagger.load(curves.attrs["folder"], trust=True)
print(splagger.evaluate(agent, tasks=2)[1].mean)
"""


def test_a_script_that_trusts_its_own_environment_does_not_run_twice(tmp_path):
    """Importing it would run it again, in the middle of an evaluation."""
    (tmp_path / "walking.py").write_text(SCRIPT)
    command = [sys.executable, "walking.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert run.stdout.split("\n")[:2] == ["the script runs", "5.0"], run.stderr


def test_a_script_that_trains_while_it_is_imported_does_not_hang(tmp_path):
    """Environments are made in another thread, which would wait for the end of the import."""
    (tmp_path / "walking.py").write_text(SCRIPT)
    command = [sys.executable, "-c", "import walking"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert run.stdout.split("\n")[:2] == ["the script runs", "5.0"], run.stderr


def test_what_an_environment_lacks_is_named():
    class Half(eqx.Module):
        spec = EnvSpec("half", 1, Discrete(2), 3)

        def reset(self, key, task):
            return jnp.int32(0), jnp.zeros(1)

    class Plain:
        spec = Half.spec

        def sample_task(self, key):
            return ()

        def reset(self, key, task):
            return jnp.int32(0), jnp.zeros(1)

        def step(self, key, task, state, action):
            return state, Step(jnp.zeros(1), jnp.float32(0), state == 2, jnp.bool_(False))

    with pytest.raises(SettingError, match="Half is not an environment: it has no sample_task and"):
        resolve(Half())
    with pytest.raises(SettingError, match=r"make Plain an equinox\.Module or a frozen dataclass"):
        Run.create(MetaEnv(Plain(), 1), "rnn")
