"""Environments that each require learning one thing, and the small settings that tests train with."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.envs import MetaEnv
from splagger.envs.protocol import EnvSpec, Step
from splagger.images import Image
from splagger.memory import EmbeddingSizes
from splagger.methods import METHODS, Method
from splagger.network import Network
from splagger.ppo.normalizers import ReturnScale
from splagger.ppo.settings import Config, PPOConfig, Tunables
from splagger.ppo.train import TrainState, init, update
from splagger.spaces import ActionSpace, Continuous, Discrete, MultiDiscrete

quick_update = jax.jit(update, static_argnums=0)  # shared by all tests: equal programs compile once
NETWORK = Network(EmbeddingSizes(8, 4, 4), 8, 16, 5, (8,), 1 / 16, decoder_hidden=(8,))
TUNABLES = Tunables(1e-3, 0.1, 1e-6, 0.1)


class Probe(eqx.Module):
    """Episodes of `horizon` steps. Subclasses define the reward and the observation."""

    horizon: int = eqx.field(static=True, default=1)
    space: ActionSpace = eqx.field(static=True, default=Discrete(2))

    @property
    def spec(self):
        return EnvSpec(type(self).__name__, 1, self.space, self.horizon, -1.0, 1.0)

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return jnp.int32(0), self.observe(task, jnp.int32(0))

    def step(self, key, task, state, action):
        done = state + 1 == self.horizon
        reward = jnp.asarray(self.reward(task, action), jnp.float32)
        return state + 1, Step(self.observe(task, state + 1), reward, done, jnp.zeros((), bool))

    def observe(self, task, state):
        return jnp.ones(1)

    def render(self, task, state, episode=0, episodes=1):
        raise NotImplementedError


class Picture(eqx.Module):
    """One step per episode: the action must repeat two numbers, the bright column and the bright row of a picture."""

    @property
    def spec(self):
        return EnvSpec("picture", 75, MultiDiscrete((2, 3)), 1, images=(Image(5, 5, 3),))

    def sample_task(self, key):
        return jr.randint(key, (2,), 0, jnp.array([2, 3]))

    def reset(self, key, task):
        picture = jnp.zeros((5, 5, 3)).at[:, task[0], 0].set(255.0).at[task[1], :, 1].set(255.0)
        return task, picture.ravel()

    def step(self, key, task, state, action):
        _, obs = self.reset(key, task)
        right = jnp.mean(jnp.asarray(action == task, jnp.float32))
        return state, Step(obs, right, jnp.ones((), bool), jnp.zeros((), bool))


class Prize(Probe):
    """Every step is rewarded with 1: only the value has to be learned."""

    def reward(self, task, action):
        return 1.0


class Fortune(Probe):
    """The reward is the observation, for any action: the value depends on the observation."""

    def sample_task(self, key):
        return jr.uniform(key, minval=-1.0, maxval=1.0)

    def reward(self, task, action):
        return task

    def observe(self, task, state):
        return task[None]


class Bandit(Probe):
    """Arm 1 is rewarded with 1, arm 0 with 0: only the policy has to be learned."""

    def reward(self, task, action):
        return action == 1


class MetaBandit(Bandit):
    """The task decides which arm is rewarded: the agent must find the arm and remember it."""

    def sample_task(self, key):
        return jr.bernoulli(key).astype(jnp.int32)

    def reward(self, task, action):
        return action == task


class Target(Probe):
    """The reward is -(a - target)². The target is the task and is observed at the first step only."""

    space: ActionSpace = eqx.field(static=True, default=Continuous(1))

    def sample_task(self, key):
        return jr.uniform(key, minval=-1.0, maxval=1.0)

    def reward(self, task, action):
        return -((action[0] - task) ** 2)

    def observe(self, task, state):
        return jnp.where(state == 0, task, 0.0)[None]


class RandomEnds(Probe):
    """Observations are noise. Episodes terminate at random times, or are truncated at the horizon."""

    horizon: int = eqx.field(static=True, default=4)
    space: ActionSpace = eqx.field(static=True, default=Continuous(2))

    @property
    def spec(self):
        return super().spec._replace(obs_size=2)

    def reset(self, key, task):
        state = jnp.int32(0), jr.normal(key, (2,))
        return state, self.observe(task, state)

    def step(self, key, task, state, action):
        end_key, noise_key = jr.split(key)
        state = state[0] + 1, jr.normal(noise_key, (2,))
        ended = jr.bernoulli(end_key, 0.3)
        reward = jnp.sum(self.space.encode(action)) + state[1][0]
        return state, Step(state[1], reward, ended, ~ended & (state[0] == self.horizon))

    def observe(self, task, state):
        return state[1]


def tiny(method: Method | str, env: MetaEnv, updates: int = 10, network=NETWORK, **options):
    """Returns the settings of a small training program."""
    small = {"envs": 4, "steps": 24, "minibatches": 2, "eval_tasks": 3}
    small |= {"trajectories": 3, "beliefs": 4, "buffer": 20}
    method = METHODS[method] if isinstance(method, str) else method
    return Config(method, env, PPOConfig(**(small | options)), network, updates)


@ft.partial(jax.jit, static_argnums=(0, 1))
def resets(env, envs, key):
    return jax.vmap(env.reset)(jr.split(key, envs))


@ft.cache
def state_shapes(config: Config) -> TrainState:
    return jax.eval_shape(lambda key: init(config, TUNABLES, key)._replace(key=None), jr.key(0))


def random_state(config: Config, seed: int = 0) -> TrainState:
    """Returns what `init` returns, without compilation; all weights are random, so that latents matter."""
    rng, envs = np.random.default_rng(seed), config.ppo.envs
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state_shapes(config))

    def weight(leaf):
        scale = leaf.shape[-1] ** -0.5 if leaf.ndim else 0.0
        return np.asarray(rng.normal(0.1 * (not leaf.ndim), scale, leaf.shape), leaf.dtype)

    agent = jax.tree.map(weight, state.agent)
    buffer = state.buffer and state.buffer._replace(
        open_row=np.arange(envs, dtype=np.int32), next_row=np.int32(envs)
    )
    state = state._replace(
        agent=agent,
        actors=state.actors._replace(env=resets(config.env, envs, jr.key(seed))),
        normalizers=agent.normalizers(),
        scale=ReturnScale.create(envs),
        buffer=buffer,
        key=jr.key(seed),
    )
    return jax.tree.map(jnp.asarray, state)
