"""How cost grows with runs, environments and length: `python -m benchmarks.growth [runs] [envs] [length]`.

Writes benchmarks/results/growth-<what>-<platform>.json and a picture of it beside.

  runs     agents in one program: training frames a second, compilation, memory
  envs     environments of one agent, its minibatches growing with them
  length   a sequence through an aggregator: all prefixes by one associative scan, and step by step

Every row of runs and envs is what `splagger bench` measures, with its command.
"""

import json
import sys

import jax
import jax.numpy as jnp
import jax.random as jr

from benchmarks.parts import RESULTS, seconds
from splagger.aggregators import Max, absorb, prefixes
from splagger.experiments.bench import measure
from splagger.experiments.provenance import provenance

ON_CPU = jax.default_backend() == "cpu"
RUNS = (1, 2, 4) if ON_CPU else (1, 15, 45, 135)
ENVS = (16, 32, 64) if ON_CPU else (16, 64, 256, 1024)
LENGTHS = (100, 300, 1_000, 3_000, 10_000)
WIDTH, SEQUENCES = 128, 16


def runs() -> list[dict]:
    return [measure("t-ls", "splagger", count, 2) for count in RUNS]


def envs() -> list[dict]:
    rows = [measure("t-ls", "splagger", 1, 2, {"ppo.envs": count}) for count in ENVS]
    return [{"envs": count, **row} for count, row in zip(ENVS, rows, strict=True)]


def length() -> list[dict]:
    """Seconds forward and backward, for a maximum over so many steps."""
    maximum = Max()

    def by_scan(es, resets):
        return jax.vmap(maximum.read)(prefixes(maximum, maximum.empty(es[0]), es, resets))

    def by_steps(es, resets):
        def one(aggregate, x):
            aggregate = absorb(maximum, aggregate, *x)
            return aggregate, maximum.read(aggregate)

        return jax.lax.scan(one, maximum.empty(es[0]), (es, resets))[1]

    def timed(way, steps):
        loss = lambda es, resets: jnp.square(jax.vmap(way)(es, resets)).sum()  # noqa: E731
        es = jr.normal(jr.key(0), (SEQUENCES, steps, WIDTH))
        return seconds(jax.jit(jax.grad(loss)), es, jr.bernoulli(jr.key(1), 0.01, es.shape[:2]))

    return [
        {
            "steps": steps,
            "scan_seconds": timed(by_scan, steps),
            "step_seconds": timed(by_steps, steps),
        }
        for steps in LENGTHS
    ]


# what → (function, the number that grows, {what is drawn: its label})
PARTS = {
    "runs": (runs, "runs", {"frames_per_second": "training frames/s"}),
    "envs": (envs, "envs", {"frames_per_second": "training frames/s"}),
    "length": (
        length,
        "steps",
        {"scan_seconds": "associative scan", "step_seconds": "step by step"},
    ),
}


def draw(name: str, rows: list[dict], path) -> None:
    """Lines over the number that grows, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from splagger.figures.draw import STYLE

    _, x, lines = PARTS[name]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(4.2, 3), layout="constrained")
        for key, label in lines.items():
            axes.loglog([r[x] for r in rows], [r[key] for r in rows], marker="o", label=label)
        axes.set(xlabel=x, ylabel="seconds" if len(lines) > 1 else next(iter(lines.values())))
        if len(lines) > 1:
            axes.legend(frameon=False)
        figure.savefig(path, dpi=200)
        plt.close(figure)


if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        rows = PARTS[name][0]()
        path = RESULTS / f"growth-{name}-{jax.default_backend()}.json"
        record = {"rows": rows, "provenance": provenance(f"python -m benchmarks.growth {name}")}
        path.write_text(json.dumps(record, indent=1) + "\n")
        draw(name, rows, path.with_suffix(".png"))
        print(path)
