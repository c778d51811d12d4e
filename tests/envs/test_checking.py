"""Mistakes in JAX environments are reported by name before anything is compiled."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from splagger import ENVS
from splagger.cli import main
from splagger.envs import EnvSpec, MetaEnv, Step, check_env
from splagger.errors import EnvError
from splagger.spaces import Discrete


class State(NamedTuple):
    position: jax.Array
    time: jax.Array


class Line:
    """A valid environment; each mistake below changes one thing."""

    spec = EnvSpec("line", 2, Discrete(2), 5)

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return State(jnp.zeros(()), jnp.int32(0)), jnp.zeros(2)

    def step(self, key, task, state, action):
        state = State(state.position + action, state.time + 1)
        return state, self.result(state)

    def result(self, state):
        return Step(jnp.zeros(2), state.position, state.time > 4, jnp.zeros((), bool))


def wrong(**changes):
    return type("Wrong", (Line,), changes)()


def result(**fields):
    return lambda self, state: Line.result(self, state)._replace(**fields)


def changes_shape(self, key, task, state, action):
    state, step = Line.step(self, key, task, state, action)
    return state._replace(position=jnp.zeros(3)), step


MISTAKES = {
    "reset() must return (state, observation)": {"reset": lambda self, key, task: jnp.zeros(2)},
    "reset()'s observation must have shape (2,) (spec.obs_size), got (3,)": {
        "reset": lambda self, key, task: (State(jnp.zeros(()), jnp.int32(0)), jnp.zeros(3))
    },
    "step() must return (state, Step)": {"step": lambda self, key, task, state, action: (1, 2, 3)},
    "step() must return (state, splagger.envs.Step), got tuple": {
        "result": lambda self, state: (1,)
    },
    "step()'s observation must have shape (2,)": {"result": result(obs=jnp.zeros(4))},
    "the reward must have shape (), got (1,)": {"result": result(reward=jnp.zeros(1))},
    "terminated must be a boolean, got float32": {"result": result(terminated=jnp.zeros(()))},
    "truncated must have shape (), got (2,)": {"result": result(truncated=jnp.zeros(2, bool))},
    "step() changes state.position from float32[] to float32[3]": {"step": changes_shape},
    "sample_task() raised ValueError: no task": {
        "sample_task": lambda self, key: (_ for _ in ()).throw(ValueError("no task"))
    },
}


def test_a_valid_environment_passes():
    check_env(Line())
    check_env(MetaEnv(Line(), 2))
    with pytest.raises(EnvError, match="must return"):
        check_env(MetaEnv(wrong(reset=lambda self, key, task: jnp.zeros(2)), 2))


def test_a_reward_may_be_a_number_of_python():
    env = MetaEnv(wrong(result=result(reward=1)), 1)
    state = env.reset(jax.random.key(0))
    step = jax.jit(env.step)(jax.random.key(1), state, jnp.int32(0))[1]
    assert step.reward.dtype == jnp.float32 and step.reward == 1


@pytest.mark.parametrize("name", ENVS)
def test_our_environments_are_valid(name):
    check_env(ENVS[name].env)


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(message):
    with pytest.raises(EnvError) as raised:
        check_env(wrong(**MISTAKES[message]))
    assert str(raised.value).startswith(f"line: {message}")


def test_errors_of_an_environment_are_reported_with_their_line():
    def step(self, key, task, state, action):
        return jnp.zeros(3) + jnp.zeros(2)

    with pytest.raises(EnvError, match=r"line: step\(\) raised .*test_checking\.py:\d+\)"):
        check_env(wrong(step=step))


def test_the_command_line_prints_one_line_and_creates_no_folder(tmp_path, capsys, monkeypatch):
    (tmp_path / "own_line.py").write_text(
        "from dataclasses import dataclass\n"
        "from tests.envs.test_checking import Line\n"
        "@dataclass(frozen=True)\n"
        "class Own(Line):\n"
        "    def result(self, state): return 1, 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "jax:own_line:Own", "splagger", "--out", str(tmp_path / "runs")])
    assert stopped.value.code == 2 and not (tmp_path / "runs").exists()
    assert (
        "splagger: line: step() must return (state, splagger.envs.Step)" in capsys.readouterr().err
    )


def test_internal_errors_keep_their_traceback(monkeypatch):
    def broken(*args, **kwargs):
        raise ValueError("not the user's")

    monkeypatch.setattr("splagger.runs.run.Run.create", broken)
    with pytest.raises(ValueError, match="not the user's"):
        main(["train", "t-ls-small", "splagger"])
