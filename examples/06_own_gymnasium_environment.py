"""A custom Gymnasium environment: `splagger.train` trains on it, and the agent acts in your own loop."""

import tempfile

import gymnasium
import numpy as np

import splagger
from splagger import from_gymnasium


class GuessTheNumber(gymnasium.Env):
    """Guess a number from -5 to 5 and observe whether it is higher or lower. Three guesses per episode."""

    observation_space = gymnasium.spaces.Discrete(3)  # no guess yet, higher, lower
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


if __name__ == "__main__":  # so that the command line can import this file
    env = from_gymnasium(GuessTheNumber, task=draw_secret, episodes=2, max_steps=3)
    small = {"network.width_factor": 0.125, "network.state_embedding": 16, "network.hidden": (32,)}
    small |= {"network.latent_embedding": 8, "ppo.steps": 60, "ppo.eval_tasks": 64}
    with tempfile.TemporaryDirectory() as folder:
        curves = splagger.train(
            env, "rnn", rates=[3e-3], seeds=1, frames=40_000, settings=small, out=folder, show=False
        )
        agent = splagger.load(curves.attrs["folder"], env=env)
    curve = curves["return"]
    print(f"error of six guesses: {-curve.iloc[0]:.1f} untrained, {-curve.iloc[-1]:.1f} trained")

    # Your own loop: two episodes of one task. The agent remembers the first episode in the second.
    game, guess, done = agent.wrap(GuessTheNumber()), 0, False
    obs, _ = game.reset(options={"task": 3.0})
    agent.reset()
    while not done:
        action = agent.act(obs)
        obs, reward, terminated, truncated, _ = game.step(action)
        done = terminated or truncated
        agent.observe(action, reward, obs, task_done=done)
        guess += 1
        print(f"error of guess {guess}: {-reward:.2f}")
