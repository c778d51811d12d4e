"""Speed of the robots, compared with Gymnasium's: `python -m benchmarks.mujoco`.

Writes benchmarks/results/mujoco-<platform>.json: environment steps per second of

  library           MuJoCo's batch of Cheetahs alone, on all cores: an upper limit
  program           the same simulations through jit, vmap and scan of Cheetah.step
  training          meta-environments as in training, with resets and new tasks
  rollout           the same with actions of SplAgger, 16 environments per run; on a GPU only
  walker_library, walker_training   the same for Walkers; those of the library have different bodies
  gymnasium         HalfCheetah-v5 in an AsyncVectorEnv of 16 processes

All are timed in turns, and the fastest turn of each counts: other load on the machine can only slow a turn down.
`overhead_seconds` is the additional time of a call in the program compared with the library.
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

from splagger.envs import Cheetah, MetaEnv, Walker
from splagger.envs.mujoco import cheetah, walker
from splagger.envs.mujoco.exact import to_float64
from splagger.envs.mujoco.simulations import Robot, Simulations, library, load, threads
from splagger.nn.gpu.number_types import on_gpu
from splagger.ppo.rollout import collect, stages
from splagger.registry import ENVS
from splagger.runs.provenance import provenance
from splagger.runs.run import Run
from splagger.training.program import compile_grid

RESULTS = Path(__file__).parent / "results"
SIZES, PROCESSES, TURNS = (16, 240, 4096), 16, 5


def random_actions(copies: int) -> np.ndarray:
    """Returns actions [steps, copies, 6], with as many steps as take about a second or less."""
    steps = int(np.clip(40_000 // copies, 10, 100))
    uniform = np.random.default_rng(0).uniform(-1, 1, (steps, copies, 6))
    return uniform.astype(np.float32)


def library_alone(env: Cheetah | Walker, robot: Robot, copies: int):
    """Returns a function that steps MuJoCo's batch, from the initial state of `program`."""
    batch = library().batch.Batch(load(robot), copies, threads())
    actions, control = random_actions(copies), batch.bind("ctrl")
    tasks = jax.vmap(env.sample_task)(jr.split(jr.key(0), copies))
    first, _ = jax.vmap(env.reset)(jr.split(jr.key(0), copies), tasks)
    start = to_float64(np.asarray(first.physics))
    if robot.scaled:
        simulations = Simulations(robot, copies, threads())
        simulations.step(start, actions[0], np.asarray(tasks))
        batch, control = simulations.batch, simulations.control

    def run():
        batch.state[:, : start.shape[1]] = start
        for action in actions:
            control[:] = action
            batch.step(nstep=robot.frame_skip)

    return run


def program(copies: int):
    """Returns a compiled program that steps `copies` Cheetahs."""
    env, task, key = Cheetah(horizon=10**6), jnp.float32(1), jr.key(0)
    actions = jnp.asarray(random_actions(copies))

    @jax.jit
    def run(actions):
        state, _ = jax.vmap(lambda _: env.reset(key, task))(jnp.arange(copies))
        step = jax.vmap(lambda state, action: env.step(key, task, state, action))
        return jax.lax.scan(lambda s, a: step(s, a), state, actions)[1].reward.sum()

    return lambda: run(actions)


def training(env: MetaEnv, copies: int):
    """Returns a compiled program that steps `copies` meta-environments, with new episodes and tasks.

    As in training, random numbers are drawn before the loop.
    """
    actions = jnp.asarray(random_actions(copies))

    @jax.jit
    def run(actions):
        state = jax.vmap(env.reset)(jr.split(jr.key(0), copies))
        prepare, advance = stages(env, jax.tree.map(lambda leaf: leaf[0], state))
        keys = jr.split(jr.key(1), (len(actions), copies))
        noise = jax.vmap(jax.vmap(lambda key: prepare(env.sample_noise(key))))(keys)

        def one(state, x):
            state, out = jax.vmap(lambda n, s, a: advance(n, (s, a)))(x[0], state, x[1])
            return state, out.reward.sum()

        return jax.lax.scan(one, state, (noise, actions))[1].sum()

    return lambda: run(actions)


def rollout(name: str, copies: int):
    """Returns a compiled program in which SplAgger acts, with 16 environments per run."""
    run = Run.create(name, "splagger", rates=[1e-3], seeds=copies // 16)
    program = compile_grid(run.config, run.points)
    state = program.init()
    steps = len(random_actions(copies))

    @jax.jit
    @jax.vmap
    def play(state):
        keys = jr.split(state.key, steps)
        return collect(run.config.env, state.agent, state.normalizers, state.actors, keys)[
            1
        ].log_prob.sum()

    return lambda: play(state)


@contextlib.contextmanager
def gymnasiums(copies: int):
    """Yields a function that steps Gymnasium's environments, one process each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about spaces without bounds
        kinds = [lambda: gymnasium.make("HalfCheetah-v5")] * copies
        envs = gymnasium.vector.AsyncVectorEnv(kinds, context="forkserver")
        envs.reset(seed=0)
        actions = random_actions(copies)

        def run():
            for action in actions:
                envs.step(action)

        yield run
        envs.close()


def in_turns(functions: dict, copies: int) -> dict[str, float]:
    """Returns the seconds per step of each function in its fastest turn, after one warm-up turn."""
    fastest = dict.fromkeys(functions, np.inf)
    for turn in range(1 + TURNS):
        for name, run in functions.items():
            started = time.perf_counter()
            jax.block_until_ready(run())
            if turn:
                fastest[name] = min(fastest[name], time.perf_counter() - started)
    return {name: best / len(random_actions(copies)) for name, best in fastest.items()}


def measure(copies: int) -> dict[str, float]:
    """Returns the steps per second of `copies` robots by each method, and the overhead of the program."""
    functions = {
        "library": library_alone(Cheetah(), cheetah.ROBOT, copies),
        "program": program(copies),
        "training": training(ENVS["cheetah-dir"].meta, copies),
        "walker_library": library_alone(Walker(), walker.ROBOT, copies),
        "walker_training": training(ENVS["walker"].meta, copies),
    }
    if on_gpu() and copies == 240:
        functions["rollout"] = rollout("cheetah-dir", copies)
    with contextlib.ExitStack() as stack:
        if copies == PROCESSES:
            functions["gymnasium"] = stack.enter_context(gymnasiums(copies))
        times = in_turns(functions, copies)
    overhead = times["program"] - times["library"]
    return {name: copies / t for name, t in times.items()} | {"overhead_seconds": overhead}


def main() -> None:
    result = {
        "steps_per_second": {str(n): measure(n) for n in SIZES},
        "threads": threads(),
        "provenance": provenance("python -m benchmarks.mujoco"),
    }
    path = RESULTS / f"mujoco-{jax.default_backend()}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
