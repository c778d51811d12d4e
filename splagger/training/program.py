"""The compiled program of a whole grid: one vmap over all members, which are divided among the devices."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from splagger import hosts
from splagger.ppo import train
from splagger.ppo.faults import take, unstack
from splagger.ppo.settings import Config, Tunables
from splagger.runs.axes import AXES
from splagger.runs.named_arrays import from_named_leaves, named_leaves
from splagger.runs.run import Point
from splagger.training.compiler import (
    compiler_options,
    in_other_threads,
    release_memory,
    set_up_compiler,
)

States = Any  # a `TrainState` with a leading member axis; a list of them if groups take turns, see `race.join`


class Program(NamedTuple):
    """Functions of the whole grid; leaves have a leading run axis.

    `evaluate` and `block` return metrics by name, one per member. "fault" is a `Fault` or None for each of them.
    A block is some updates and an evaluation. `compile(*names)` compiles some of "init", "evaluate" and "updates" at
    the same time and returns the seconds that this took. Without it, each is compiled when it is first called.
    """

    init: Callable[[], States]
    evaluate: Callable[[States], dict[str, np.ndarray]]
    block: Callable[[States], tuple[States, dict[str, np.ndarray]]]
    compile: Callable[..., float]
    pack: Callable[[States], Any]  # the state to save, without padding
    unpack: Callable[[Any], States]
    example: Any  # shapes and dtypes of the state to save
    bind: "Callable[[Sequence[Point]], Program]"  # the same compiled program for as many other members


class _Parts:
    """Named functions, compiled ahead of time for given arguments."""

    def __init__(self, **functions: tuple[Any, tuple]):
        self.functions = functions
        self.compiled: dict[str, Any] = {}

    def compile(self, *names: str) -> float:
        """Compiles those of `names` that are not compiled yet; returns the seconds that this took."""
        started = time.monotonic()
        missing = [name for name in names if name not in self.compiled]
        if missing:
            # XLA compiles one function while JAX traces the next.
            with ThreadPoolExecutor(len(missing)) as pool:
                lowered = (self._lower(name) for name in missing)
                programs = [pool.submit(in_other_threads(one.compile)) for one in lowered]
            self.compiled |= {n: p.result() for n, p in zip(missing, programs, strict=True)}
            release_memory()  # about half a gigabyte
        return time.monotonic() - started

    def _lower(self, name: str) -> Any:
        function, arguments = self.functions[name]
        return function.lower(*arguments)

    def __call__(self, name: str, *arguments):
        self.compile(name)
        return self.compiled[name](*arguments)


class _Devices:
    """The devices of this process, among which `size` members are divided; the last one is repeated as padding."""

    def __init__(self, size: int):
        devices = jax.local_devices()[:size]
        self.size, self.padding = size, -size % len(devices)
        self.mesh, self.runs = Mesh(np.array(devices), ("run",)), PartitionSpec("run")
        self.sharding = NamedSharding(self.mesh, self.runs)
        self.options = compiler_options()

    def over_runs(self, function: Callable, donate: tuple[int, ...] = ()) -> Any:
        """Maps a function of one member over all of them, and compiles it when it is called."""
        mapped = jax.vmap(function)
        if self.mesh.size > 1:
            mapped = jax.shard_map(
                mapped, mesh=self.mesh, in_specs=self.runs, out_specs=self.runs, check_vma=False
            )
        return jax.jit(mapped, donate_argnums=donate, compiler_options=self.options)

    def arrays(self, points: Sequence[Point]) -> tuple[Tunables, jax.Array]:
        """Returns the tunables and random keys of all members on their devices."""
        return jax.device_put(_arrays([*points, *[points[-1]] * self.padding]), self.sharding)

    def sharded(self, shapes: Any) -> Any:
        """Adds to each shape that it is divided among the devices."""
        return jax.tree.map(
            lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=self.sharding), shapes
        )

    def put(self, saved: Any) -> States:
        """Puts saved members on their devices."""
        index = np.minimum(np.arange(self.size + self.padding), self.size - 1)
        return jax.device_put(jax.tree.map(lambda leaf: leaf[index], saved), self.sharding)

    def unpadded(self, state: States) -> Any:
        return jax.tree.map(lambda leaf: leaf[: self.size], state)

    def to_host(self, metrics: dict[str, Any]) -> dict[str, np.ndarray]:
        """Returns the metrics of all members as NumPy arrays, without padding."""
        found = np.fromiter(unstack(take(metrics))[: self.size], object)
        numbers = {name: np.asarray(values)[: self.size] for name, values in metrics.items()}
        return numbers | {"fault": found}


def compile_grid(config: Config, points: Sequence[Point]) -> Program:
    """Returns one program for all of `points`.

    Several devices get equal shares of the members, and so do several processes. If the members cannot be divided
    evenly, the last one is repeated, and its copies are dropped from all results.
    """
    program = compile_here(config, hosts.share(points))
    return program if hosts.count() == 1 else spread(program, points)


def spread(program: Program, points: Sequence[Point]) -> Program:
    """Returns the program of all members, of which each process trains its share by `program`, see `hosts.share`.

    Metrics and states to save are those of all members, in every process.
    """
    size = len(points)
    rows = np.array(hosts.share(range(size)))
    example = resized(program.example, size)

    def gathered(arrays):
        parts = hosts.gather(arrays)
        return {name: np.concatenate([part[name] for part in parts])[:size] for name in arrays}

    def block(state):
        state, metrics = program.block(state)
        return state, gathered(metrics)

    return program._replace(
        evaluate=lambda state: gathered(program.evaluate(state)),
        block=block,
        pack=lambda state: from_named_leaves(example, gathered(named_leaves(program.pack(state)))),
        unpack=lambda saved: program.unpack(jax.tree.map(lambda leaf: leaf[rows], saved)),
        example=example,
        bind=lambda points: spread(program.bind(hosts.share(points)), points),
    )


def resized(example: Any, size: int) -> Any:
    """Returns the shapes of a state of `size` members, given those of some number of members."""
    one = lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype)  # noqa: E731
    return jax.tree.map(one, example)


def compile_here(config: Config, points: Sequence[Point]) -> Program:
    """Returns the program of those members that this process trains, on its own devices."""
    set_up_compiler()
    devices = _Devices(len(points))
    tunables, keys = devices.arrays(points)
    init = devices.over_runs(lambda tunables, key: train.init(config, tunables, key))
    evaluate = devices.over_runs(lambda state: train.evaluation(config, state))
    updates = devices.over_runs(
        lambda tunables, state: train.updates(config, tunables, state), donate=(1,)
    )
    shapes = jax.eval_shape(init, tunables, keys)
    states = devices.sharded(shapes)
    parts = _Parts(
        init=(init, (tunables, keys)),
        evaluate=(evaluate, (states,)),
        updates=(updates, (tunables, states)),
    )
    return _bind(parts, devices, jax.eval_shape(devices.unpadded, shapes), points)


def _bind(parts: _Parts, devices: _Devices, example: Any, points: Sequence[Point]) -> Program:
    """Returns the compiled functions as the program of these members."""
    tunables, keys = devices.arrays(points)

    def evaluate(state):
        return devices.to_host(parts("evaluate", state))

    def block(state):
        # The evaluation is a program of its own, so that it is compiled once: training begins with one.
        state, means = parts("updates", tunables, state)
        evaluated, trained = evaluate(state), devices.to_host(means)
        found = zip(trained["fault"], evaluated["fault"], strict=True)
        first = np.fromiter((before or after for before, after in found), object)
        return state, trained | evaluated | {"fault": first}

    return Program(
        init=lambda: parts("init", tunables, keys),
        evaluate=evaluate,
        block=block,
        compile=parts.compile,
        pack=devices.unpadded,
        unpack=devices.put,
        example=example,
        bind=lambda points: _bind(parts, devices, example, points),
    )


def _arrays(points: Sequence[Point]) -> tuple[Tunables, jax.Array]:
    """The tunables and random keys of all members, as arrays [runs]."""
    columns = {
        axis.tunable: jnp.array([getattr(p, axis.name) for p in points], jnp.float32)
        for axis in AXES
        if axis.tunable is not None
    }
    return Tunables(**columns), jax.vmap(jr.key)(jnp.array([p.seed for p in points], jnp.uint32))
