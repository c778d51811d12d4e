"""Learning in environments that each require one thing; three seeds each."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import Bandit, EndlessTMaze, MetaEnv, TMaze
from splagger.memory import EmbeddingSizes
from splagger.methods import Method
from splagger.network import Network
from splagger.ppo.settings import Tunables
from splagger.ppo.train import train
from tests.ppo import probe_envs
from tests.ppo.probe_envs import tiny

NETWORK = Network(EmbeddingSizes(8, 8, 8), 12, 16, 8, (16,), 1 / 4)
MAZE = MetaEnv(TMaze(length=5), 4)  # perfect: 16; guessing: 2


def trained(env, updates, steps, method="splagger", **options):
    """Returns (states, last metrics) of three seeds."""
    options |= {"envs": 16, "steps": steps, "minibatches": 4}
    options |= {"eval_tasks": 128, "eval_interval": updates}
    config = tiny(method, env, updates, NETWORK, **options)
    run = jax.vmap(lambda key: train.__wrapped__(config, Tunables(3e-3, 0.01, 1e-6, 0.1), key))
    states, metrics = jax.jit(run)(jr.split(jr.key(0), 3))
    return states, {name: np.asarray(metric)[:, -1] for name, metric in metrics.items()}


@pytest.mark.slow
def test_the_value_of_a_constant_reward_is_that_reward():
    """The returns have no variance, so that the scaled reward is the largest possible: 10."""
    states, _ = trained(MetaEnv(probe_envs.Prize(), 1), updates=40, steps=16, clip=0.5)

    def value(state):
        output = state.agent.start().output
        inputs = output[None], jnp.ones((1, 1)), jnp.zeros((1, 0))
        return state.agent.value_batch(*inputs, state.normalizers)[0]

    np.testing.assert_allclose(jax.jit(jax.vmap(value))(states), 10, rtol=0.01)


def test_the_better_arm_is_chosen():
    _, metrics = trained(MetaEnv(probe_envs.Bandit(), 1), updates=15, steps=16)
    np.testing.assert_array_equal(metrics["return"], 1)


@pytest.mark.slow
def test_a_picture_is_seen_and_both_numbers_of_the_action_are_learned():
    """Guessing earns (1/2 + 1/3) / 2; a policy that does not see the picture cannot earn more."""
    env = MetaEnv(probe_envs.Picture(), 1)
    _, metrics = trained(env, updates=60, steps=16, method="memoryless")
    assert (metrics["return"] > 0.9).all(), metrics["return"]


@pytest.mark.slow
def test_the_value_explains_observed_rewards():
    _, metrics = trained(MetaEnv(probe_envs.Fortune(), 1), updates=60, steps=16, clip=0.5)
    assert (metrics["explained_variance"] > 0.8).all()  # the mean over all updates


@pytest.mark.slow
def test_the_better_arm_of_a_task_is_found_and_remembered():
    """The best return of six pulls is 5.5; without a memory it is 3 for any policy."""
    _, metrics = trained(MetaEnv(probe_envs.MetaBandit(horizon=6), 1), updates=80, steps=24)
    assert (metrics["return"] > 4.8).all()


@pytest.mark.slow
def test_a_number_shown_once_is_used_later():
    """Three actions aim at a target shown before the first: the best return is 0, or -2/3 if it is forgotten."""
    _, metrics = trained(MetaEnv(probe_envs.Target(horizon=3), 1), updates=80, steps=24)
    assert (metrics["return"] > -0.1).all()


def late_returns(method, env, updates=50, steps=40, **changes):
    """Returns the median return over the last five evaluations: a greedy policy may fail in a single one."""
    options = {"envs": 16, "steps": steps, "minibatches": 4, "eval_tasks": 128, "eval_interval": 5}
    config = tiny(method, env, updates, NETWORK, **(options | changes))
    run = jax.vmap(lambda key: train.__wrapped__(config, Tunables(3e-3, 0.01, 1e-6, 0.1), key))
    _, metrics = jax.jit(run)(jr.split(jr.key(0), 3))
    return np.median(np.asarray(metrics["return"])[:, -5:], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["splagger", "splagger-mingru", "splagger-lru", "splagger-mlstm"]
)
def test_a_memory_solves_the_short_maze(method):
    late = late_returns(method, MAZE)
    assert (late >= 15).all(), late


ENDLESS = MetaEnv(
    EndlessTMaze(length=4, laps=6), 1
)  # perfect: 24; guessing: 3; the first signal alone: about 10


@pytest.mark.slow
def test_an_encoder_learns_to_overwrite_a_signal():
    late = late_returns("lru", ENDLESS, updates=80, steps=48)
    assert (late >= 18).all(), late


@pytest.mark.slow
def test_a_bandit_is_explored_and_exploited():
    """Guessing earns 10 of 20 pulls, Thompson sampling with three arms about 12.6."""
    env, changes = MetaEnv(Bandit(arms=3, pulls=20), 1), {"clip": 0.2, "gae_decay": 0.3}
    late = late_returns("splagger", env, updates=100, **changes)
    assert (late >= 11.5).all(), late


@pytest.mark.slow
def test_the_last_transition_alone_does_not_solve_the_short_maze():
    memoryless = Method("memoryless", encoder="pointwise", skip=1.0)
    _, metrics = trained(MAZE, updates=50, steps=40, method=memoryless)
    assert (metrics["return"] <= 8).all()
