"""Growth of cost with runs, environments and sequence length: `python -m benchmarks.growth [runs] [envs] [length]`.

Writes benchmarks/results/growth-<what>-<platform>.json and a plot as .png.

  runs     agents in one program: training frames per second, memory
  envs     environments of one agent; its minibatches grow with them
  length   a sequence through an aggregator: all prefixes by one associative scan, and step by step

Every row of runs and envs is a measurement of `splagger bench`, with its command. It runs in a separate process,
since the peak memory of a process is that of its largest program.
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr

from benchmarks.parts import RESULTS, seconds
from splagger.aggregators import Max, absorb, prefixes
from splagger.runs.provenance import provenance
from splagger.training.bench import measure

WIDTH, SEQUENCES = 128, 16


def in_new_process(function, *args):
    """Calls `function` in a new process and returns its result."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def runs(count: int) -> dict:
    return measure("t-ls", "splagger", count, 2)


def envs(count: int) -> dict:
    return {"envs": count, **measure("t-ls", "splagger", 1, 2, {"ppo.envs": count})}


def length(steps: int) -> dict:
    """Returns the seconds of a forward and backward pass through a maximum over `steps` steps."""
    maximum = Max()

    def by_scan(es, resets):
        return jax.vmap(maximum.read)(prefixes(maximum, maximum.empty(es[0]), es, resets))

    def by_steps(es, resets):
        def one(aggregate, x):
            aggregate = absorb(maximum, aggregate, *x)
            return aggregate, maximum.read(aggregate)

        return jax.lax.scan(one, maximum.empty(es[0]), (es, resets))[1]

    def timed(function):
        loss = lambda es, resets: jnp.square(jax.vmap(function)(es, resets)).sum()  # noqa: E731
        es = jr.normal(jr.key(0), (SEQUENCES, steps, WIDTH))
        return seconds(jax.jit(jax.grad(loss)), es, jr.bernoulli(jr.key(1), 0.01, es.shape[:2]))

    return {"steps": steps, "scan_seconds": timed(by_scan), "step_seconds": timed(by_steps)}


class Part(NamedTuple):
    """One benchmark: the function that measures a row, the sizes on CPU and GPU, and the lines of each panel."""

    row: object
    key: str
    label: str
    on_cpu: tuple[int, ...]
    on_gpu: tuple[int, ...]
    panels: dict[str, dict[str, str]]  # label of a panel's y axis → {key of a row: label of a line}


TRAINING = {
    "training frames per second": {"frames_per_second": ""},
    "GPU memory (GB)": {"peak_device_memory_gb": ""},
}
LENGTHS = (100, 300, 1_000, 3_000, 10_000)
PARTS = {
    "runs": Part(runs, "runs", "runs in one program", (1, 2, 4), (1, 15, 45, 135), TRAINING),
    "envs": Part(
        envs, "envs", "environments of one run", (16, 32, 64), (16, 64, 256, 1024), TRAINING
    ),
    "length": Part(
        length,
        "steps",
        "steps",
        LENGTHS,
        LENGTHS,
        {"seconds": {"scan_seconds": "associative scan", "step_seconds": "step by step"}},
    ),
}


def draw(part: Part, rows: list[dict], path) -> None:
    """Draws one log-log panel per measured quantity over the size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter, LogLocator

    from splagger.plots.draw import STYLE

    panels = {
        axis: lines
        for axis, lines in part.panels.items()
        if all(row.get(key) for key in lines for row in rows)
    }
    sizes, large = [row[part.key] for row in rows], EngFormatter(sep="")
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            1, len(panels), figsize=(3.6 * len(panels), 2.8), layout="constrained", squeeze=False
        )
        for axes, (axis, lines) in zip(grid[0], panels.items(), strict=True):
            for key, label in lines.items():
                axes.loglog(sizes, [row[key] for row in rows], marker="o", label=label)
            axes.set(xlabel=part.label, ylabel=axis)
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda y, _: large(y) if y >= 1000 else f"{y:g}")
            axes.minorticks_off()
            if len(lines) > 1:
                axes.legend(frameon=False)
        figure.savefig(path, dpi=200)
        plt.close(figure)


def main(names) -> None:
    platform = in_new_process(jax.default_backend)
    for name in names:
        part = PARTS[name]
        sizes = part.on_cpu if platform == "cpu" else part.on_gpu
        rows = [in_new_process(part.row, size) for size in sizes]
        path = RESULTS / f"growth-{name}-{platform}.json"
        origin = in_new_process(provenance, f"python -m benchmarks.growth {name}")
        path.write_text(json.dumps({"rows": rows, "provenance": origin}, indent=1) + "\n")
        draw(part, rows, path.with_suffix(".png"))
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:] or PARTS)
