"""Synthetic run folders and analyses with known true values."""

import csv
import itertools
import json

import numpy as np

from splagger.paper_numbers import PAPER

COLUMNS = ("update", "frames", "rate", "entropy_weight", "kl_weight", "temperature", "seed")
COLUMNS += ("return",)
EVALUATIONS = 41


def learning(final, speed=5.0, start=0.0, noise=0.0):
    """Returns a curve from `start` to `final` whose noise depends on the seed alone."""

    def curve(rate, seed, steps=EVALUATIONS):
        progress = 1 - np.exp(-speed * np.linspace(0, 1, steps))
        wobble = noise * np.random.default_rng(seed).normal(size=steps)
        return start + (final - start) * progress + wobble

    return curve


def frames_between(env):
    """Returns the frames between two evaluations of a run as long as the paper's."""
    return (PAPER[env].frames if env in PAPER else 40_000) // (EVALUATIONS - 1)


def write_run(root, env, method, curve, **changes):
    """Writes a run folder whose agents earn `curve(rate, seed)`; a NaN ends a member's rows, as in training."""
    given = {"rates": (1e-3,), "seeds": (0, 1, 2), "kl_weights": (1e-6,), "temperatures": (0.0,)}
    given |= {"started": "2026-01-01T00:00:00Z", "finished": True, "overrides": {}, "clip": 0.05}
    given |= {"anneal": False}
    given |= {"frames": frames_between(env) * (len(curve(1e-3, 0)) - 1), "episodes": None}
    given |= {"name": "run", "command": f"splagger train {env} {method}", "race": False} | changes
    rows = []
    grid = itertools.product(given["rates"], given["kl_weights"], given["temperatures"])
    for (rate, kl_weight, temperature), seed in itertools.product(grid, given["seeds"]):
        for update, value in enumerate(curve(rate, seed)):
            if np.isnan(value):
                break
            settings = (rate, 0.1, kl_weight, temperature, seed)
            rows.append((update, frames_between(env) * update, *settings, float(value)))
    folder = root / env / method / given["name"]
    folder.mkdir(parents=True)
    with open(folder / "curves.csv", "w", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows([COLUMNS, *sorted(rows)])
    (folder / "run.json").write_text(json.dumps(describe(env, method, given)))
    return folder


def describe(env, method, given):
    """Returns the content of run.json."""
    grids = {k: list(given[k]) for k in ("rates", "seeds", "kl_weights", "temperatures")}
    ppo = {"entropy": 0.1, "kl_weight": 1e-6, "clip": given["clip"]}
    ppo |= {"anneal": True} if given["anneal"] else {}
    aggregator = {"kind": "Max"} | ({"temperature": 0.1} if "softmax" in method else {})
    kind = {"name": method, "aggregator": aggregator}
    arguments = {
        "env": env,
        "method": method,
        "frames": given["frames"],
        "overrides": given["overrides"],
    }
    origin = {"command": given["command"], "commit": "abc123", "device": "1 × device"}
    return {
        "run": {"env": env, "method": kind, "ppo": ppo, "network": {"hidden": [4, 2]}}
        | {"episodes": given["episodes"]}
        | ({"race": True} if given["race"] else {})
        | grids,
        "provenance": origin | {"started": given["started"], "versions": {"jax": "0"}},
        "arguments": arguments | grids,
        "finished": given["finished"],
        "frames": given.get("reached", given["frames"]),
        "seconds": 12.5,
        "frames_per_second": 3200.0,
        "stopped": {},
    }


def write_analysis(root, name, when, curves, seeds=3, dimensions=1, steps=100):
    """Writes an analysis with the values `curves[method](step)`, slightly different for each seed."""
    folder = root / name / when
    folder.mkdir(parents=True)
    with open(folder / "values.csv", "w", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(("method", "seed", "step", "dimension", "value"))
        for method, curve in curves.items():
            for seed, dimension in itertools.product(range(seeds), range(dimensions)):
                factor = 1 + 0.05 * seed + 0.1 * dimension
                for step in range(steps):
                    writer.writerow((method, seed, step, dimension, factor * curve(step)))
    origin = {"command": f"splagger analyse {name}", "commit": "def456", "device": "1 × device"}
    record = {"provenance": origin, "options": {"length": steps, "independent": False}}
    (folder / "analysis.json").write_text(json.dumps(record))
    return folder
