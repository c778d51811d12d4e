"""A custom JAX environment: pure functions, with the task as an argument. Here, a bandit with five arms."""

import tempfile

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

import splagger
from splagger.envs import EnvSpec, MetaEnv, Step


class Bandit(eqx.Module):
    """Ten pulls of five arms. Each arm yields 1 with its own probability; the agent observes only the reward."""

    arms: int = eqx.field(static=True, default=5)

    @property
    def spec(self):
        return EnvSpec("bandit", obs_size=1, space=splagger.Discrete(self.arms), horizon=10)

    def sample_task(self, key):
        return jr.uniform(key, (self.arms,)) ** 2  # the probabilities; good arms are rare

    def reset(self, key, task):
        return jnp.int32(0), jnp.zeros(1)  # state: number of pulls

    def step(self, key, task, pulls, action):
        reward = jr.bernoulli(key, task[action]).astype(jnp.float32)
        return pulls + 1, Step(jnp.zeros(1), reward, pulls == 9, jnp.bool_(False))


env = MetaEnv(Bandit(), episodes=1)
small = {"network.width_factor": 0.125, "network.state_embedding": 16, "network.hidden": (32,)}
small |= {"network.latent_embedding": 8, "ppo.steps": 100, "ppo.eval_tasks": 200}
with tempfile.TemporaryDirectory() as folder:
    curves = splagger.train(
        env, "cnp", rates=[3e-3], seeds=1, frames=100_000, settings=small, out=folder, show=False
    )
    agent = splagger.load(curves.attrs["folder"], env=env)  # `load` cannot find it by name
    curve = curves["return"]
print(f"return of ten pulls: {curve.iloc[0]:.2f} untrained, {curve.iloc[-1]:.2f} trained")
print(f"random pulls yield {10 / 3:.2f}; the agent first pulls arm {agent.act(jnp.zeros(1))}")
