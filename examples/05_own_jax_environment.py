"""An environment in JAX is four pure functions; the task is an argument. Here a bandit with five arms."""

import tempfile

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

import splagger
from splagger.envs import EnvSpec, MetaEnv, Step


class Bandit(eqx.Module):
    """Ten pulls of five arms, each of which pays 1 with a chance of its own. Nothing is seen but the reward."""

    arms: int = eqx.field(static=True, default=5)

    @property
    def spec(self):
        return EnvSpec("bandit", obs_size=1, space=splagger.Discrete(self.arms), horizon=10)

    def sample_task(self, key):
        return jr.uniform(key, (self.arms,)) ** 2  # the chances; good arms are rare

    def reset(self, key, task):
        return jnp.int32(0), jnp.zeros(1)  # state: pulls so far

    def step(self, key, task, pulls, action):
        paid = jr.bernoulli(key, task[action]).astype(jnp.float32)
        return pulls + 1, Step(jnp.zeros(1), paid, pulls == 9, jnp.bool_(False))


env = MetaEnv(Bandit(), episodes=1)
small = {"network.width_factor": 0.125, "network.state_embedding": 16, "network.hidden": (32,)}
small |= {"network.latent_embedding": 8, "ppo.steps": 100, "ppo.eval_tasks": 200}
with tempfile.TemporaryDirectory() as folder:
    curves = splagger.train(
        env, "cnp", rates=[3e-3], seeds=1, frames=100_000, settings=small, out=folder, show=False
    )
    agent = splagger.load(curves.attrs["folder"], env=env)  # in no table, so it is given
    curve = curves["return"]
print(f"ten pulls bring {curve.iloc[0]:.2f} untrained, {curve.iloc[-1]:.2f} trained")
print(f"chance pays {10 / 3:.2f}; the first arm it tries is {agent.act(jnp.zeros(1))}")
