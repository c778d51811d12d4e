"""Speed of single parts, each compared with its plain alternative: `python -m benchmarks.parts`.

Writes benchmarks/results/parts-<platform>.json. Times are medians of repeated calls. Only ratios are comparable
between machines: both sides of each were measured in the same process.
"""

import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.envs import MetaEnv
from splagger.nn import GRU
from splagger.policy import HyperPolicy
from splagger.registry import ENVS
from splagger.runs.provenance import provenance
from splagger.spaces import Discrete

RESULTS = Path(__file__).parent / "results"


def seconds(function, *args, repeats: int = 5) -> float:
    """Returns the median seconds of a compiled call, after one warm-up call."""
    jax.block_until_ready(function(*args))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(function(*args))
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def gru(envs: int = 16, steps: int = 700) -> dict[str, float]:
    """Times forward and backward passes over a rollout: `unroll_batch`, and autodiff through a scan of steps."""
    cell = GRU.create(jr.key(0), 80, 256)
    xs = jr.normal(jr.key(1), (steps, envs, 80))
    resets = jr.bernoulli(jr.key(2), 0.01, (steps, envs))
    start = jnp.zeros((envs, 256))

    def ours(cell, xs):
        return jnp.square(cell.unroll_batch(start, xs, resets)[1]).mean()

    def plain(cell, xs):
        one = lambda h, x: jax.vmap(cell.step)(h, *x)  # noqa: E731
        return jnp.square(jax.lax.scan(one, start, (xs, resets))[1]).mean()

    timed = {
        name: seconds(jax.jit(jax.grad(f, argnums=(0, 1))), cell, xs)
        for name, f in (("ours_seconds", ours), ("autodiff_seconds", plain))
    }
    return timed | {"speedup": timed["autodiff_seconds"] / timed["ours_seconds"]}


def hypernetwork(samples: int = 2800) -> dict[str, float]:
    """Times forward and backward passes of a minibatch: `policies`, and weights generated for every sample."""
    policy = HyperPolicy.create(jr.key(0), 5, 24, Discrete(4))
    latents = jnp.tanh(jr.normal(jr.key(1), (samples, 25)))
    xs = jr.normal(jr.key(2), (samples, 256))
    result = {}
    forms = {
        "fused": lambda hyper, latents, xs: hyper.policies(latents)(xs),
        "generated": jax.vmap(lambda hyper, z, x: hyper.generate(z)(x), in_axes=(None, 0, 0)),
    }
    for label, form in forms.items():

        def loss(hyper, latents, xs, form=form):
            numbers, values = form(hyper, latents, xs)
            return jnp.square(numbers).mean() + jnp.square(values).mean()

        compiled = jax.jit(jax.grad(loss)).lower(policy.hypernetwork, latents, xs).compile()
        result[f"{label}_memory_mb"] = compiled.memory_analysis().temp_size_in_bytes / 1e6
        repeats = 5 if label == "fused" else 3
        result[f"{label}_seconds"] = seconds(
            compiled, policy.hypernetwork, latents, xs, repeats=repeats
        )
    result["speedup"] = result["generated_seconds"] / result["fused_seconds"]
    return result


def environment(name: str, copies: int, steps: int = 100) -> float:
    """Returns the steps per second of `copies` environments with random actions, including resets."""
    row = ENVS[name]
    env: MetaEnv = row.meta

    @jax.jit
    def run(key):
        state = jax.vmap(env.reset)(jr.split(key, copies))

        def one(state, key):
            action_key, step_key = jr.split(key)
            actions = jr.randint(action_key, (copies,), 0, env.space.size)
            state, out = jax.vmap(env.step)(jr.split(step_key, copies), state, actions)
            return state, out.reward.sum()

        return jax.lax.scan(one, state, jr.split(key, steps))[1].sum()

    return copies * steps / seconds(run, jr.key(0), repeats=3)


def main() -> None:
    mazes = [row for row in ENVS.values() if isinstance(row.env.spec.space, Discrete)]
    names = [row.name for row in mazes if not row.small]  # for robots, see benchmarks.mujoco
    result = {
        "gru": gru(),
        "hypernetwork": hypernetwork(),
        "environment_steps_per_second": {
            name: {str(n): environment(name, n) for n in (16, 1024, 65536)} for name in names
        },
        "provenance": provenance("python -m benchmarks.parts"),
    }
    path = RESULTS / f"parts-{jax.default_backend()}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
