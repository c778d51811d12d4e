"""Any Gymnasium environment is trained by the same loop, and the agent plays in any other loop."""

import tempfile

import gymnasium
import numpy as np

import splagger
from splagger.bridges import from_gymnasium


class GuessTheNumber(gymnasium.Env):
    """Say a number from -5 to 5; seen is whether the secret is above or below. Three guesses an episode."""

    observation_space = gymnasium.spaces.Discrete(3)  # nothing known, above, below
    action_space = gymnasium.spaces.Box(-5, 5, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.secret, self.guesses = options["task"], 0  # the same in every episode of a task
        return 0, {}

    def step(self, guess):
        self.guesses += 1
        miss = self.secret - float(guess[0])
        return (1 if miss > 0 else 2), -abs(miss), self.guesses == 3, False, {}


def draw_secret(rng: np.random.Generator) -> float:
    return rng.uniform(-5, 5)


if __name__ == "__main__":  # so that the command line, too, can import from here
    env = from_gymnasium(GuessTheNumber, task=draw_secret, episodes=2, max_steps=3)
    small = {"network.width_factor": 0.125, "network.state_embedding": 16, "network.hidden": (32,)}
    small |= {"network.latent_embedding": 8, "ppo.steps": 60, "ppo.eval_tasks": 64}
    with tempfile.TemporaryDirectory() as folder:
        curves = splagger.train(
            env, "rnn", rates=[3e-3], seeds=1, frames=40_000, settings=small, out=folder, show=False
        )
        agent = splagger.load(curves.attrs["folder"], env=env)
    curve = curves["return"]
    print(f"six guesses miss by {-curve.iloc[0]:.1f} untrained, by {-curve.iloc[-1]:.1f} trained")

    # In a loop of your own: two episodes of one task, and the agent remembers the first in the second.
    theirs, task = GuessTheNumber(), {"task": 3.0}
    obs, _ = theirs.reset(options=task)
    agent.reset()
    seen = env.flatten(obs)
    for guess in range(6):
        action = agent.act(seen)
        obs, reward, done, _, _ = theirs.step(env.action(action))
        if done and guess < 5:
            obs, _ = theirs.reset(options=task)  # the agent sees the next episode begin
        seen = env.flatten(obs, done)
        agent.observe(action, reward, seen, task_done=guess == 5)
        print(f"guess {guess + 1} misses by {-reward:.2f}")
