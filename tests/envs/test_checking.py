"""Mistakes of an environment in JAX are told by name before anything is compiled."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from splagger import ENVS
from splagger.cli import main
from splagger.envs import EnvSpec, Step, check_env
from splagger.errors import EnvError
from splagger.spaces import Discrete


class State(NamedTuple):
    place: jax.Array
    time: jax.Array


class Line:
    """A right one; each of the mistakes below changes one thing."""

    spec = EnvSpec("line", 2, Discrete(2), 5)

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return State(jnp.zeros(()), jnp.int32(0)), jnp.zeros(2)

    def step(self, key, task, state, action):
        state = State(state.place + action, state.time + 1)
        return state, self.bring(state)

    def bring(self, state):
        return Step(jnp.zeros(2), state.place, state.time > 4, jnp.zeros((), bool))


def wrong(**changes):
    return type("Wrong", (Line,), changes)()


def bring(**fields):
    return lambda self, state: Line.bring(self, state)._replace(**fields)


def far(self, key, task, state, action):
    state, step = Line.step(self, key, task, state, action)
    return state._replace(place=jnp.zeros(3)), step


MISTAKES = {
    "reset() must give (state, observation)": {"reset": lambda self, key, task: jnp.zeros(2)},
    "reset()'s observation must have shape (2,) (spec.obs_size), not (3,)": {
        "reset": lambda self, key, task: (State(jnp.zeros(()), jnp.int32(0)), jnp.zeros(3))
    },
    "step() must give (state, Step)": {"step": lambda self, key, task, state, action: (1, 2, 3)},
    "step() must give (state, splagger.envs.Step), not tuple": {"bring": lambda self, state: (1,)},
    "step()'s observation must have shape (2,)": {"bring": bring(obs=jnp.zeros(4))},
    "the reward must have shape (), not (1,)": {"bring": bring(reward=jnp.zeros(1))},
    "terminated must be a boolean, not float32": {"bring": bring(terminated=jnp.zeros(()))},
    "truncated must have shape (), not (2,)": {"bring": bring(truncated=jnp.zeros(2, bool))},
    "step() turns state.place from float32[] into float32[3]": {"step": far},
    "sample_task() raised ValueError: no luck": {
        "sample_task": lambda self, key: (_ for _ in ()).throw(ValueError("no luck"))
    },
}


def test_a_right_one_passes():
    check_env(Line())


@pytest.mark.parametrize("name", ENVS)
def test_ours_are_right(name):
    check_env(ENVS[name].env)


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(message):
    with pytest.raises(EnvError) as raised:
        check_env(wrong(**MISTAKES[message]))
    assert str(raised.value).startswith(f"line: {message}")


def test_what_it_raises_is_told_with_its_line():
    def step(self, key, task, state, action):
        return jnp.zeros(3) + jnp.zeros(2)

    with pytest.raises(EnvError, match=r"line: step\(\) raised .*test_checking\.py:\d+\)"):
        check_env(wrong(step=step))


def test_the_command_line_tells_it_in_one_line_and_leaves_no_folder(tmp_path, capsys, monkeypatch):
    (tmp_path / "own_line.py").write_text(
        "from dataclasses import dataclass\n"
        "from tests.envs.test_checking import Line\n"
        "@dataclass(frozen=True)\n"
        "class Own(Line):\n"
        "    def bring(self, state): return 1, 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "jax:own_line:Own", "splagger", "--out", str(tmp_path / "runs")])
    assert stopped.value.code == 2 and not (tmp_path / "runs").exists()
    assert "splagger: line: step() must give (state, splagger.envs.Step)" in capsys.readouterr().err


def test_errors_that_are_not_about_the_input_keep_their_traceback(monkeypatch):
    def broken(*args, **kwargs):
        raise ValueError("not the user's")

    monkeypatch.setattr("splagger.runs.run.Run.create", broken)
    with pytest.raises(ValueError, match="not the user's"):
        main(["train", "t-ls-small", "splagger"])
