"""How long training takes on a CPU, before anything is compiled: right within a factor of two or three.

A frame costs one step of the environment and the arithmetic of the network. The latter follows from the sizes of the
arrays; the speed of this machine is measured with a matmul, which takes a few milliseconds.
"""

import functools as ft
import time

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import build
from splagger.ppo.settings import Config
from splagger.vision import Vision

EFFICIENCY = 0.5  # of a matmul's speed that training reaches
OVERHEAD = 50e-6  # seconds per frame that no matmul takes: small operations, and the bookkeeping of environments


def estimated_seconds(config: Config, members: int, step_seconds: float = 0.0) -> float | int:
    """Returns the seconds that all members of a run need, without the compilation.

    - `step_seconds`: those of one step of the environment, which Gymnasium environments take one after another.
    """
    ppo = config.ppo
    frames = config.updates * ppo.batch
    evaluations = 1 + config.updates // ppo.eval_interval
    evaluated = evaluations * ppo.eval_tasks * config.env.horizon
    acting, learning = _work(config)
    outside = (frames + evaluated) * (step_seconds + OVERHEAD)
    inside = ((frames + evaluated) * acting + frames * learning) / (EFFICIENCY * matmul_speed())
    return members * (outside + inside)


def _work(config: Config) -> tuple[float | int, float | int]:
    """Returns the operations of acting and of learning, per frame.

    Every array of an agent is multiplied once per step, but for the layers of images, which are used at many positions.
    A gradient takes twice as long as what it is of. Each minibatch replays the memory of a whole rollout.
    """
    ppo = config.ppo
    agent = jax.eval_shape(
        lambda: build(jr.key(0), config.method, config.interface, config.network)
    )
    memory = _size(agent.memory) + 2 * _vision_size(agent.memory)  # of s and of s'
    policy = _size(agent.policy) + _vision_size(agent.policy)
    replays = 1 + 3 * ppo.epochs * ppo.minibatches
    learning = replays * memory + (0.5 + 3 * ppo.epochs) * policy
    return 2 * (memory + policy / 2), 2 * learning


def _size(tree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _vision_size(tree) -> int:
    """The multiplications of all layers of images in a tree."""
    is_vision = lambda node: isinstance(node, Vision)  # noqa: E731
    found = [node for node in jax.tree.leaves(tree, is_leaf=is_vision) if is_vision(node)]
    return sum(network.multiplications for vision in found for network in vision.networks)


@ft.cache
def matmul_speed() -> float:
    """Returns the floating-point operations per second of a matmul of medium size on this machine."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(256, 256)), jnp.float32)
    product = jax.jit(lambda x: x @ x)
    product(x).block_until_ready()
    times = []
    for _ in range(5):
        started = time.perf_counter()
        product(x).block_until_ready()
        times.append(time.perf_counter() - started)
    return 2 * 256**3 / min(times)
