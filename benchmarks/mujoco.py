"""How fast the robots are, beside Gymnasium's in the same run: `python -m benchmarks.mujoco`.

Writes benchmarks/results/mujoco-<platform>.json: environment steps a second of

  library     MuJoCo's own batch of Cheetahs alone, on all cores: what there is to win
  program     the same through jit, vmap and scan of Cheetah.step: what is left of it
  training    meta-environments as training steps them, resets and new tasks included
  gymnasium   HalfCheetah-v5 in an AsyncVectorEnv: a process each, so 16 of them

all with the same actions in the same order of calls. `overhead_seconds` is what one call costs in the program
beyond its share in the library.
"""

import json
import time
import warnings
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks.parts import seconds
from splagger.envs import Cheetah, MetaEnv
from splagger.envs.mujoco.cheetah import ROBOT
from splagger.envs.mujoco.simulations import library, load, threads
from splagger.experiments.provenance import provenance
from splagger.registry import ENVS

RESULTS = Path(__file__).parent / "results"
SIZES, PROCESSES, STEPS = (16, 240, 4096), 16, 100


def drawn(copies: int, steps: int = STEPS) -> np.ndarray:
    """Actions [steps, copies, 6]."""
    uniform = np.random.default_rng(0).uniform(-1, 1, (steps, copies, 6))
    return uniform.astype(np.float32)


def alone(copies: int) -> float:
    """Seconds a step of MuJoCo's batch."""
    batch = library().batch.Batch(load(ROBOT), copies, threads())
    actions, control = drawn(copies), batch.bind("ctrl")

    def run():
        batch.reset()
        for action in actions:
            control[:] = action
            batch.step(nstep=ROBOT.frame_skip)

    return seconds(run, repeats=3) / STEPS


def program(copies: int) -> float:
    """Seconds a step of as many Cheetahs in a compiled program."""
    env, task, key = Cheetah(horizon=10**6), jnp.float32(1), jr.key(0)

    @jax.jit
    def run(actions):
        state, _ = jax.vmap(lambda _: env.reset(key, task))(jnp.arange(copies))
        step = jax.vmap(lambda state, action: env.step(key, task, state, action))
        return jax.lax.scan(lambda s, a: step(s, a), state, actions)[1].reward.sum()

    return seconds(run, jnp.asarray(drawn(copies)), repeats=3) / STEPS


def training(env: MetaEnv, copies: int) -> float:
    """Seconds a step of as many meta-environments, new episodes and tasks included."""

    @jax.jit
    def run(actions):
        state = jax.vmap(env.reset)(jr.split(jr.key(0), copies))

        def one(state, x):
            action, key = x
            state, out = jax.vmap(env.step)(jr.split(key, copies), state, action)
            return state, out.reward.sum()

        return jax.lax.scan(one, state, (actions, jr.split(jr.key(1), STEPS)))[1].sum()

    return seconds(run, jnp.asarray(drawn(copies)), repeats=3) / STEPS


def theirs(copies: int) -> float:
    """Seconds a step of Gymnasium's environments, one process each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaces without bounds
        kinds = [lambda: gymnasium.make("HalfCheetah-v5")] * copies
        envs = gymnasium.vector.AsyncVectorEnv(kinds, context="forkserver")
        envs.reset(seed=0)
        times = []
        for _ in range(4):
            started = time.perf_counter()
            for action in drawn(copies):
                envs.step(action)
            times.append(time.perf_counter() - started)
        envs.close()
    return float(np.median(times[1:])) / STEPS


def cheetahs(copies: int) -> dict[str, float]:
    """Steps a second of each way to step so many Cheetahs."""
    library_seconds, program_seconds = alone(copies), program(copies)
    return {
        "library": copies / library_seconds,
        "program": copies / program_seconds,
        "training": copies / training(ENVS["cheetah-dir"].meta, copies),
        "overhead_seconds": program_seconds - library_seconds,
    }


def main() -> None:
    walkers = {str(n): n / training(ENVS["walker"].meta, n) for n in SIZES}
    result = {
        "cheetah_steps_per_second": {str(n): cheetahs(n) for n in SIZES},
        "walker_steps_per_second": {n: {"training": rate} for n, rate in walkers.items()},
        "gymnasium_steps_per_second": {str(PROCESSES): PROCESSES / theirs(PROCESSES)},
        "threads": threads(),
        "provenance": provenance("python -m benchmarks.mujoco"),
    }
    path = RESULTS / f"mujoco-{jax.default_backend()}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
