"""How fast the robots are, beside Gymnasium's in the same run: `python -m benchmarks.mujoco`.

Writes benchmarks/results/mujoco-<platform>.json: environment steps a second of

  library     MuJoCo's own batch of Cheetahs alone, on all cores: what there is to win
  program     the same simulations through jit, vmap and scan of Cheetah.step: what is left of it
  training    meta-environments as training steps them, resets and new tasks included
  gymnasium   HalfCheetah-v5 in an AsyncVectorEnv: a process each, so 16 of them

The ways to step are timed in turns, and each by its fastest turn: what else the machine does only adds to it.
`overhead_seconds` is what a call costs in the program beyond what it costs in the library.
"""

import contextlib
import json
import time
import warnings
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.envs import Cheetah, MetaEnv
from splagger.envs.mujoco.cheetah import ROBOT
from splagger.envs.mujoco.exact import to_float64
from splagger.envs.mujoco.simulations import library, load, threads
from splagger.registry import ENVS
from splagger.runs.provenance import provenance

RESULTS = Path(__file__).parent / "results"
SIZES, PROCESSES, TURNS = (16, 240, 4096), 16, 5


def drawn(copies: int) -> np.ndarray:
    """Actions [steps, copies, 6]: as many steps as take a second or less."""
    steps = int(np.clip(40_000 // copies, 10, 100))
    uniform = np.random.default_rng(0).uniform(-1, 1, (steps, copies, 6))
    return uniform.astype(np.float32)


def library_alone(copies: int):
    """MuJoCo's batch, from the state in which `program` begins."""
    batch = library().batch.Batch(load(ROBOT), copies, threads())
    actions, control = drawn(copies), batch.bind("ctrl")
    first, _ = Cheetah().reset(jr.key(0), jnp.float32(1))
    start = to_float64(np.asarray(first.physics))

    def run():
        batch.state[:, : len(start)] = start
        for action in actions:
            control[:] = action
            batch.step(nstep=ROBOT.frame_skip)

    return run


def program(copies: int):
    """As many Cheetahs in a compiled program."""
    env, task, key = Cheetah(horizon=10**6), jnp.float32(1), jr.key(0)
    actions = jnp.asarray(drawn(copies))

    @jax.jit
    def run(actions):
        state, _ = jax.vmap(lambda _: env.reset(key, task))(jnp.arange(copies))
        step = jax.vmap(lambda state, action: env.step(key, task, state, action))
        return jax.lax.scan(lambda s, a: step(s, a), state, actions)[1].reward.sum()

    return lambda: run(actions)


def training(env: MetaEnv, copies: int):
    """As many meta-environments, new episodes and tasks included."""
    actions = jnp.asarray(drawn(copies))

    @jax.jit
    def run(actions):
        state = jax.vmap(env.reset)(jr.split(jr.key(0), copies))

        def one(state, x):
            action, key = x
            state, out = jax.vmap(env.step)(jr.split(key, copies), state, action)
            return state, out.reward.sum()

        keys = jr.split(jr.key(1), len(actions))
        return jax.lax.scan(one, state, (actions, keys))[1].sum()

    return lambda: run(actions)


@contextlib.contextmanager
def gymnasiums(copies: int):
    """Gymnasium's environments, one process each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaces without bounds
        kinds = [lambda: gymnasium.make("HalfCheetah-v5")] * copies
        envs = gymnasium.vector.AsyncVectorEnv(kinds, context="forkserver")
        envs.reset(seed=0)
        actions = drawn(copies)

        def run():
            for action in actions:
                envs.step(action)

        yield run
        envs.close()


def in_turns(ways: dict, copies: int) -> dict[str, float]:
    """Seconds a step of each way, by its fastest turn after one to warm up."""
    fastest = dict.fromkeys(ways, np.inf)
    for turn in range(1 + TURNS):
        for name, run in ways.items():
            started = time.perf_counter()
            jax.block_until_ready(run())
            if turn:
                fastest[name] = min(fastest[name], time.perf_counter() - started)
    return {name: best / len(drawn(copies)) for name, best in fastest.items()}


def measured(copies: int) -> dict[str, float]:
    """Steps a second of each way to step so many robots."""
    ways = {
        "library": library_alone(copies),
        "program": program(copies),
        "training": training(ENVS["cheetah-dir"].meta, copies),
        "walker_training": training(ENVS["walker"].meta, copies),
    }
    with contextlib.ExitStack() as stack:
        if copies == PROCESSES:
            ways["gymnasium"] = stack.enter_context(gymnasiums(copies))
        times = in_turns(ways, copies)
    overhead = times["program"] - times["library"]
    return {name: copies / t for name, t in times.items()} | {"overhead_seconds": overhead}


def main() -> None:
    result = {
        "steps_per_second": {str(n): measured(n) for n in SIZES},
        "threads": threads(),
        "provenance": provenance("python -m benchmarks.mujoco"),
    }
    path = RESULTS / f"mujoco-{jax.default_backend()}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
