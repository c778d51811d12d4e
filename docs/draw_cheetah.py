"""Draws the paths of trained Cheetah agents in both tasks: `python docs/draw_cheetah.py RUN`.

RUN is the run folder of `splagger train cheetah-dir-small splagger --rates 1e-3 --seeds 3 --frames 1500000`. Writes
docs/images/cheetah-both-ways.png, and the returns to results/cheetah-dir-small/both-ways.json.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import splagger
from splagger.envs.mujoco.physics import pose
from splagger.plots.draw import STYLE
from splagger.runs.provenance import provenance

ROOT = Path(__file__).parent.parent
EPISODES = 8
TASKS = {-1.0: ("backward", "#D55E00"), 1.0: ("forward", "#0072B2")}


def run(player, direction: float):
    """Plays episodes of one task; returns (positions [episodes, steps], returns [episodes])."""
    env, task = player.env.env, jnp.float32(direction)
    step = jax.jit(env.step)

    def episode(seed):
        state, obs = env.reset(jr.key(seed), task)
        player.reset()
        positions, total = [], 0.0
        for _ in range(env.horizon):
            action = player.act(obs)
            state, out = step(jr.key(0), task, state, jnp.asarray(action))
            player.observe(action, float(out.reward), out.obs)
            obs, total = out.obs, total + float(out.reward)
            positions.append(float(pose(state)[0][0]))
        return positions, total

    positions, totals = zip(*map(episode, range(EPISODES)), strict=True)
    return np.array(positions), np.array(totals)


def main(folder: str) -> None:
    seeds = json.loads((Path(folder) / "run.json").read_text())["arguments"]["seeds"]
    returns: dict[str, list[list[float]]] = {name: [] for name, _ in TASKS.values()}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
        for seed in seeds:
            player = splagger.load(folder, seed=seed)
            for direction, (name, color) in TASKS.items():
                positions, totals = run(player, direction)
                time = 0.05 * np.arange(1, positions.shape[1] + 1)
                axes.plot(time, positions.T, color=color, linewidth=0.8, alpha=0.7)
                returns[name].append(totals.tolist())
        for direction, (name, color) in TASKS.items():
            axes.annotate(f"task: {name}", (0.1, 9 * direction), color=color, weight="bold")
        axes.set(xlabel="seconds", ylabel="place along x (meters)", title="Cheetah-Dir")
        axes.margins(x=0)
        figure.savefig(ROOT / "docs" / "images" / "cheetah-both-ways.png", dpi=200)
    record = {
        "returns": returns,  # direction → seeds → episodes
        "mean": {name: float(np.mean(values)) for name, values in returns.items()},
        "least_mean_of_a_seed": {n: float(np.mean(v, axis=1).min()) for n, v in returns.items()},
        "provenance": provenance("python docs/draw_cheetah.py RUN"),
    }
    path = ROOT / "results" / "cheetah-dir-small" / "both-ways.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(record["mean"], record["least_mean_of_a_seed"])


if __name__ == "__main__":
    main(sys.argv[1])
