"""Robots in the training loop: one call per step for a whole grid, bit-exact resuming, and learning."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger.envs import Cheetah, MetaEnv, Walker
from splagger.envs.mujoco.simulations import Simulations
from splagger.methods import ROWS
from splagger.ppo.train import update
from splagger.runs.checkpoints import restore_checkpoint, save_checkpoint
from splagger.runs.folder import RunFolder
from tests.ppo.probe_envs import TUNABLES, random_state, tiny
from tests.tiny import bits, finish, start

RUNS, ENVS, STEPS = 15, 16, 8


def test_a_grid_is_one_call_per_step_and_resumes_bit_for_bit(tmp_path, monkeypatch):
    """The second half is computed from a checkpoint, by new simulations."""
    calls, step = [], Simulations.step
    spy = lambda self, numbers, *rest: calls.append(len(numbers)) or step(self, numbers, *rest)  # noqa: E731
    monkeypatch.setattr(Simulations, "step", spy)
    config = tiny("splagger", MetaEnv(Walker(horizon=5), 2), envs=ENVS, steps=STEPS)
    states = [random_state(config, seed) for seed in range(RUNS)]
    first = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    advance = jax.jit(jax.vmap(ft.partial(update, config, TUNABLES)))
    middle, _ = jax.block_until_ready(advance(first))
    assert calls == [RUNS * ENVS] * STEPS
    last, metrics = advance(middle)

    folder = RunFolder(tmp_path)
    save_checkpoint(folder, 1, middle)
    Simulations.shared.cache_clear()
    restored = restore_checkpoint(folder, jax.eval_shape(lambda: middle))
    resumed, _ = advance(jax.tree.map(jnp.asarray, restored[1]))
    assert bits(resumed) == bits(last)
    assert bits(middle) != bits(last)
    assert {name for name, value in metrics.items() if not np.isfinite(value).all()} == set()
    assert metrics["first_ratio_error"].max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("env", [Cheetah(horizon=5), Walker(horizon=5)], ids=["cheetah", "walker"])
@pytest.mark.parametrize("method", [row.name for row in ROWS])
def test_every_method_trains(env, method):
    options = {"mask_truncated": True, "decoded": 4, "steps": STEPS}
    config = tiny(method, MetaEnv(env, 1 + isinstance(env, Walker)), **options)
    state, advance = random_state(config), jax.jit(update, static_argnums=0)
    for _ in range(3):
        state, metrics = advance(config, TUNABLES, state)
        assert {name for name, value in metrics.items() if not np.isfinite(value).all()} == set()
        assert metrics["first_ratio_error"] < 1e-4


WITHOUT = """
import sys
sys.modules["mujoco"] = None
from splagger.cli import main
main(["list"])
from splagger import ENVS
import jax, jax.random as jr
env = ENVS["walker"].meta
state = jax.eval_shape(env.reset, jr.key(0))
jax.eval_shape(env.step, jr.key(0), state, jax.numpy.zeros(6))
"""


def test_without_mujoco_robots_are_listed_and_the_error_names_what_is_missing():
    code, out, err = finish(start(code=WITHOUT))
    assert "cheetah-dir" in out and "walker" in out
    assert code == 1
    assert "SettingError: robots are simulated by MuJoCo 4, which cannot be imported" in err
    assert "pip install 'mujoco>=4'" in err


@ft.partial(jax.jit, static_argnums=(0, 1))
def random_return(env, episodes, key):
    """Returns the mean return of random actions, like those of an untrained agent."""

    def one(key):
        task_key, reset_key, action_key = jr.split(key, 3)
        task = env.sample_task(task_key)
        state, _ = env.reset(reset_key, task)
        actions = jr.normal(action_key, (env.horizon, 6))
        return jax.lax.scan(lambda s, a: env.step(key, task, s, a), state, actions)[1].reward.sum()

    return jax.vmap(one)(jr.split(key, episodes)).mean()


@pytest.mark.slow
def test_the_cheetah_learns_to_run_in_both_directions(tmp_path):
    """Trains three seeds for 400,000 frames. Standing still yields 0, and random actions less."""
    assert -60 < random_return(Cheetah(horizon=100), 64, jr.key(0)) < 0
    curves = splagger.train("cheetah-dir-small", "splagger", [1e-3], 3, 4e5, tmp_path, show=False)
    last = curves[curves["update"] == curves["update"].max()]
    assert (last["return"] > 40).all(), last["return"]
    returns = returns_by_direction(splagger.load(curves.attrs["folder"]))
    assert min(returns.values()) > 20, returns


def returns_by_direction(player, episodes=4):
    """Returns the player's mean return for each direction."""
    env = player.env.env
    step, returns = jax.jit(env.step), {}
    for direction in (-1.0, 1.0):
        task, total = jnp.float32(direction), 0.0
        for seed in range(episodes):
            state, obs = env.reset(jr.key(seed), task)
            player.reset()
            for _ in range(env.horizon):
                action = player.act(obs)
                state, out = step(jr.key(0), task, state, jnp.asarray(action))
                player.observe(action, float(out.reward), out.obs)
                obs, total = out.obs, total + float(out.reward)
        returns[direction] = total / episodes
    return returns
