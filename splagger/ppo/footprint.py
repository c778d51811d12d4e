"""How much memory one member of a run needs, from the shapes of its arrays. Nothing is computed or compiled."""

import functools as ft
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from splagger.ppo import train
from splagger.ppo.reconstruction import reconstruction_loss
from splagger.ppo.rollout import collect
from splagger.ppo.settings import Config, Tunables

# Bytes that XLA's buffers take per byte that a gradient keeps; measured on CPUs with `memory_analysis`: 1.0 … 1.4.
OVERHEAD = 1.2


@ft.lru_cache(maxsize=64)
def footprint(config: Config) -> int:
    """Returns the bytes that one member needs: its state, and the largest arrays while it learns and is evaluated.

    What a gradient needs is what the forward pass stores for it, the residuals of `jax.vjp`.
    """
    ppo, key = config.ppo, jax.eval_shape(lambda: jr.key(0))
    parts = jax.eval_shape(ft.partial(_parts, config), key)
    size = {name: _bytes(part) for name, part in parts.items()}
    noise = 4 * config.env.horizon * (config.env.space.size + config.network.output_size)
    evaluation = ppo.eval_tasks * (size["actors"] // ppo.envs + noise)
    orders = 2 * 4 * ppo.epochs * ppo.batch
    learning = size["rollout"] + OVERHEAD * max(size["ppo"], size["reconstruction"]) + orders
    return int(size["state"] + 3 * size["agent"] + max(learning, evaluation))


def _parts(config: Config, key) -> dict[str, Any]:
    """The arrays of one update, by what they are for."""
    tunables = Tunables(*(jnp.float32(1.0) for _ in Tunables._fields))
    state = train.init(config, tunables, key)
    keys = jr.split(key, config.ppo.steps)
    actors, rollout = collect(config.env, state.agent, state.normalizers, state.actors, keys)
    _, batch = train.advantages(config.ppo, state, actors, rollout)
    index = jnp.zeros(config.ppo.batch // config.ppo.minibatches, jnp.int32)
    loss = ft.partial(train.ppo_loss, config, tunables, state, rollout, batch, index)
    return {
        "state": state,
        "agent": state.agent,
        "actors": state.actors,
        "rollout": (rollout, batch),
        "ppo": jax.vjp(loss, (state.agent.memory, state.agent.policy), has_aux=True)[1],
        "reconstruction": _reconstruction(config, state, key),
    }


def _reconstruction(config: Config, state: train.TrainState, key):
    if state.buffer is None:
        return None

    def loss(memory, decoder):
        agent = replace(state.agent, memory=memory, decoder=decoder)
        return reconstruction_loss(agent, config.ppo, state.buffer, key)

    return jax.vjp(loss, state.agent.memory, state.agent.decoder)[1]


def _bytes(shapes: Any) -> int:
    leaves = [leaf for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "dtype")]
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
