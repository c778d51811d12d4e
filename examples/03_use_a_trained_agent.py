"""Runs a trained agent in a Gymnasium loop; the interface of the agent is NumPy."""

import tempfile

import gymnasium

import splagger

with tempfile.TemporaryDirectory() as folder:
    curves = splagger.train(
        "planning-small", "splagger", rates=[1e-3], seeds=1, frames=20_000, out=folder, show=False
    )
    agent = splagger.load(curves.attrs["folder"])

env = gymnasium.make("splagger.gymnasium_ids:splagger/Planning-v0", name="planning-small")
obs, _ = env.reset(seed=0)
agent.reset()
total, done = 0.0, False
while not done:
    action = agent.act(obs)
    next_obs, reward, terminated, truncated, _ = env.step(action)
    done = terminated or truncated
    agent.observe(action, reward, next_obs, done)
    obs, total = next_obs, total + float(reward)
print(f"return of one meta-episode: {total:.1f}")
