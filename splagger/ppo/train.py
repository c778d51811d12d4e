"""THE LOOP: rollout → advantages → PPO epochs → reconstruction → replay. Everything here is pure.

    init(config, tunables, key) → TrainState
    update(config, tunables, state) → (TrainState, metrics)      one rollout and the learning from it
    updates(config, tunables, state) → (TrainState, metrics)     `eval_interval` of them
    block(config, tunables, state) → (TrainState, metrics)       the same, then an evaluation
    train(config, tunables, key) → (TrainState, metrics [blocks])

All functions are written for one run; vmap them over `tunables` and `key`. Each update draws its random numbers
from fold_in(key, update), so that an interrupted run continues as if it had never stopped.
"""

import functools as ft
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, Shaped

from splagger.agent import Agent, Normalizers, build, first_steps
from splagger.aggregators import at_least, temperatures
from splagger.memory import Transition
from splagger.ppo import faults, losses
from splagger.ppo.buffer import Buffer, insert
from splagger.ppo.evaluation import play, returns_of
from splagger.ppo.normalizers import ReturnScale, scale_rewards
from splagger.ppo.reconstruction import belief_kl, reconstruction_loss
from splagger.ppo.rollout import ActorState, Rollout, collect, start_actors
from splagger.ppo.settings import Config, PPOConfig, Tunables

Metrics = dict[str, Shaped[Array, "..."]]

# Random streams that no update uses: updates count up from 0.
INIT_STREAM, EVAL_STREAM, NOISE_STREAM, FRESH_STREAM = (2**31 - n for n in (1, 2, 3, 4))

# The norm with which longer gradients are recorded: its square is the largest number of float32.
MAX_NORM = float(np.sqrt(np.finfo(np.float32).max))


class Optimizers(NamedTuple):
    """Adam's moments of each parameter group; the last is for memories trained by reconstruction."""

    encoder: optax.OptState
    policy: optax.OptState
    reconstruction: optax.OptState | None


class TrainState(NamedTuple):
    """Everything that changes during training: a saved state is enough to continue."""

    agent: Agent
    optimizers: Optimizers
    actors: ActorState
    normalizers: Normalizers
    scale: ReturnScale
    buffer: Buffer | None
    key: Key[Array, ""]
    update: Int[Array, ""]


class Batch(NamedTuple):
    """The data of one update, one entry per step; leaves [T · N, …]."""

    obs: Float[Array, "B obs"]
    action: Array
    noise: Float[Array, "B z"]
    log_prob: Float[Array, " B"]
    value: Float[Array, " B"]
    advantage: Float[Array, " B"]
    target: Float[Array, " B"]


def init(config: Config, tunables: Tunables, key: Key[Array, ""]) -> TrainState:
    """Builds an untrained agent in new environments."""
    agent_key, env_key = jr.split(jr.fold_in(key, INIT_STREAM))
    agent = build(agent_key, config.method, config.interface, config.network)
    agent = _set_temperature(agent, tunables.temperature)
    encoder, policy, reconstruction = _optimizers(config.ppo)
    reconstructs = agent.decoder is not None
    return TrainState(
        agent,
        Optimizers(
            encoder.init(agent.memory),
            policy.init(agent.policy),
            reconstruction.init((agent.memory, agent.decoder)) if reconstructs else None,
        ),
        start_actors(config.env, agent, config.ppo.envs, env_key),
        agent.normalizers(),
        ReturnScale.create(config.ppo.envs),
        _empty_buffer(config) if reconstructs else None,
        key,
        jnp.int32(0),
    )


def update(config: Config, tunables: Tunables, state: TrainState) -> tuple[TrainState, Metrics]:
    """Collects one rollout and learns from it."""
    rollout_key, shuffle_key, reconstruct_key = jr.split(jr.fold_in(state.key, state.update), 3)
    memory = state.actors.memory
    with jax.named_scope("rollout"):
        actors, rollout = collect(
            config.env,
            state.agent,
            state.normalizers,
            state.actors,
            jr.split(rollout_key, config.ppo.steps),
        )
    with jax.named_scope("advantages"):
        scale, batch = advantages(config.ppo, state, actors, rollout)
    number = state.update + 1
    env_fault = faults.in_rollout(config.env, rollout, number, state.update)
    state, metrics = ppo_epochs(config, tunables, state, rollout, batch, shuffle_key)
    state, more_metrics = reconstruct(config, state, rollout, reconstruct_key)
    late_fault = faults.in_training(jax.tree.map(lambda m: m[None], more_metrics), number)
    fault = faults.first(env_fault, faults.take(metrics), late_fault)

    # Recompute the memories with the new parameters. The moments are updated last: the epochs must see
    # those of the rollout, so that probability ratios start at 1.
    with jax.named_scope("replay"):
        memory, outputs = state.agent.replay(memory, rollout.transitions, rollout.task_done)
    normalizers = state.normalizers.update(batch.obs, _flat(outputs))
    state = state._replace(
        actors=ActorState(actors.env, memory),
        normalizers=normalizers,
        scale=scale,
        update=number,
    )
    metrics["reward_per_step"] = rollout.transitions.reward.mean()
    return state, metrics | more_metrics | faults.to_metrics(fault)


def advantages(config: PPOConfig, state: TrainState, actors: ActorState, rollout: Rollout):
    """Returns (return scale, batch): values, advantages and value targets of a rollout."""
    agent, normalizers = state.agent, state.normalizers
    inputs = rollout.outputs, rollout.transitions.obs, rollout.noise
    # Values are computed after the rollout, in pieces of a minibatch each: a few large matmuls replace half
    # of the work of every step.
    size = config.minibatches, config.batch // config.minibatches
    pieces = jax.tree.map(lambda x: x.reshape(*size, *x.shape[2:]), inputs)

    value = jax.lax.map(lambda p: agent.value_batch(p[0], p[1], p[2], normalizers), pieces)
    value = value.reshape(rollout.log_prob.shape)
    last_noise = jnp.zeros_like(rollout.noise[0])  # the mean of a stochastic latent
    last_value = agent.value_batch(actors.memory.output, actors.env.obs, last_noise, normalizers)

    scale, reward = scale_rewards(
        state.scale, rollout.transitions.reward, rollout.task_done, config.discount
    )
    truncated = rollout.truncated & config.mask_truncated
    ends = rollout.task_done, truncated
    advantage = losses.gae(reward, value, last_value, *ends, config.discount, config.gae_decay)
    batch = Batch(
        obs=rollout.transitions.obs,
        action=rollout.transitions.action,
        noise=_update_noise(config, state, rollout.noise),
        log_prob=rollout.log_prob,
        value=value,
        advantage=losses.standardize(advantage),
        target=advantage + value,
    )
    return scale, jax.tree.map(_flat, batch)


def _update_noise(config: PPOConfig, state: TrainState, stored):
    """Returns the noise with which the update samples latents."""
    if config.update_noise == "stored":
        return stored
    if config.update_noise == "none":
        return jnp.zeros_like(stored)
    key = jr.fold_in(jr.fold_in(state.key, NOISE_STREAM), state.update)
    return jr.normal(key, stored.shape)


def ppo_epochs(
    config: Config,
    tunables: Tunables,
    state: TrainState,
    rollout: Rollout,
    batch: Batch,
    key: Key[Array, ""],
):
    """Runs epochs of minibatches of single steps. Each minibatch replays the whole rollout with gradient."""
    ppo = config.ppo
    encoder, policy, _ = _optimizers(ppo)
    rate = tunables.learning_rate
    if ppo.anneal:
        rate = rate * (1.0 - state.update / config.updates)

    def minibatch(carry, index):
        agent, optimizers = carry
        loss = ft.partial(ppo_loss, config, tunables, state, rollout, batch, index)
        grads, metrics = jax.grad(loss, has_aux=True)((agent.memory, agent.policy))
        with jax.named_scope("adam"):
            steps, encoder_state = encoder.update(grads[0], optimizers.encoder)
            memory = _descend(agent.memory, steps, rate)
            steps, policy_state = policy.update(grads[1], optimizers.policy)
            agent = replace(agent, memory=memory, policy=_descend(agent.policy, steps, rate))
        metrics["encoder_grad_norm"] = gradient_norm(grads[0])
        metrics["policy_grad_norm"] = gradient_norm(grads[1])
        return (agent, optimizers._replace(encoder=encoder_state, policy=policy_state)), metrics

    orders = jax.vmap(lambda k: jr.permutation(k, ppo.batch))(jr.split(key, ppo.epochs))
    indices = orders.reshape(ppo.epochs * ppo.minibatches, -1)
    (agent, optimizers), metrics = jax.lax.scan(minibatch, (state.agent, state.optimizers), indices)
    first_ratio_error = metrics.pop("ratio_error")[0]
    means = jax.tree.map(lambda m: m.mean(), metrics)
    means["first_ratio_error"] = first_ratio_error
    means["explained_variance"] = losses.explained_variance(batch.value, batch.target)
    means |= faults.to_metrics(faults.in_training(metrics, state.update + 1))
    return state._replace(agent=agent, optimizers=optimizers), means


def ppo_loss(config, tunables, state, rollout, batch, index, params):
    """Returns (loss, metrics) of the steps at `index`; the gradient flows through the whole rollout."""
    ppo = config.ppo
    agent = replace(state.agent, memory=params[0], policy=params[1], decoder=None)
    with jax.named_scope("memory"):
        _, outputs = agent.replay(
            state.actors.memory, rollout.transitions, rollout.task_done, config.env.task_length
        )
    picked = jax.tree.map(lambda x: x[index], batch)

    with jax.named_scope("policy"):
        distribution, value = agent.evaluate_batch(
            _flat(outputs)[index], picked.obs, picked.noise, state.normalizers
        )
    log_prob = jax.vmap(lambda d, a: d.log_prob(a))(distribution, picked.action)
    ratio = jnp.exp(log_prob - picked.log_prob)
    policy_loss = losses.surrogate(ratio, picked.advantage, ppo.clip).mean()
    value_loss = losses.clipped_value_loss(value, picked.value, picked.target, ppo.clip).mean()
    entropy = jax.vmap(lambda d: d.entropy())(distribution).mean()
    first = first_steps(rollout.task_done)
    kl = jax.vmap(ft.partial(belief_kl, agent), in_axes=1)(outputs, first).mean()

    total = policy_loss + ppo.value_weight * value_loss - tunables.entropy_weight * entropy
    total = total + tunables.kl_weight * ppo.kl_terms * kl
    metrics = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": kl,
        "clip_fraction": (jnp.abs(ratio - 1) > ppo.clip).mean(),
        "ratio_error": jnp.abs(ratio - 1).max(),
    }
    return total, metrics


def gradient_norm(grads) -> Float[Array, ""]:
    """Returns ‖grads‖, at most `MAX_NORM` if all gradients are finite.

    Longer gradients have a square that overflows. Clipping sets them to zero, here as in PyTorch: only Adam's momentum
    moves the parameters, and training goes on. Only gradients that are not finite themselves break the parameters.
    """
    norm = optax.tree.norm(grads)
    return jnp.where(jnp.isinf(norm) & faults.all_finite(grads), MAX_NORM, norm)


def reconstruct(config: Config, state: TrainState, rollout: Rollout, key: Key[Array, ""]):
    """Trains the memory to reconstruct past transitions (PEARL-vari); does nothing for other methods."""
    if state.buffer is None or state.agent.decoder is None:
        return state, {"reconstruction_loss": jnp.zeros(())}
    ppo = config.ppo
    optimizer = _optimizers(ppo)[2]
    buffer = insert(state.buffer, rollout.transitions, rollout.task_done)

    def one(carry, key):
        agent, optimizer_state = carry

        def loss(params):
            memory, decoder = params
            return reconstruction_loss(
                replace(agent, memory=memory, decoder=decoder), ppo, buffer, key
            )

        params = agent.memory, agent.decoder
        value, grads = jax.value_and_grad(loss)(params)
        steps, optimizer_state = optimizer.update(grads, optimizer_state)
        memory, decoder = _descend(params, steps, ppo.reconstruction_rate)
        return (replace(agent, memory=memory, decoder=decoder), optimizer_state), value

    carry = state.agent, state.optimizers.reconstruction
    keys = jr.split(key, ppo.reconstruction_steps)
    (agent, reconstruction), value = jax.lax.scan(one, carry, keys)
    optimizers = state.optimizers._replace(reconstruction=reconstruction)
    state = state._replace(agent=agent, optimizers=optimizers, buffer=buffer)
    return state, {"reconstruction_loss": value.mean()}


def evaluation(config: Config, state: TrainState) -> Metrics:
    """Evaluates on new tasks; returns the return per episode and meta-episode. All methods and rates get the same tasks."""
    key = jr.fold_in(jr.fold_in(state.key, EVAL_STREAM), state.update)
    tasks = config.ppo.eval_tasks
    with jax.named_scope("evaluation"):
        rollout = play(config.env, state.agent, state.normalizers, tasks, key)
    returns = returns_of(config.env, rollout).mean(axis=0)
    episodes = {f"return_episode_{k + 1}": r for k, r in enumerate(returns)}
    fault = faults.in_meta_episodes(config.env, rollout, state.update)
    return {"return": returns.sum(), **episodes, **faults.to_metrics(fault)}


def updates(config: Config, tunables: Tunables, state: TrainState) -> tuple[TrainState, Metrics]:
    """Runs `eval_interval` updates; returns their mean metrics."""
    one = lambda state, _: update(config, tunables, state)  # noqa: E731
    state, metrics = jax.lax.scan(one, state, length=config.ppo.eval_interval)
    training_fault = faults.earliest(faults.take(metrics))
    means = jax.tree.map(lambda m: m.mean(), metrics)
    fault = faults.first(training_fault, faults.in_parameters(state.agent, state.update))
    return state, means | faults.to_metrics(fault)


def block(config: Config, tunables: Tunables, state: TrainState) -> tuple[TrainState, Metrics]:
    """Runs `eval_interval` updates and one evaluation; returns the updates' mean metrics with the returns."""
    state, means = updates(config, tunables, state)
    evaluated = evaluation(config, state)
    fault = faults.first(faults.take(means), faults.take(evaluated))
    return state, means | evaluated | faults.to_metrics(fault)


@ft.partial(jax.jit, static_argnums=0)
def train(config: Config, tunables: Tunables, key: Key[Array, ""]) -> tuple[TrainState, Metrics]:
    """Trains one agent from start to end in one program."""
    state = init(config, tunables, key)
    one = lambda state, _: block(config, tunables, state)  # noqa: E731
    return jax.lax.scan(one, state, length=config.updates // config.ppo.eval_interval)


def _optimizers(config: PPOConfig):
    """Returns optimizers with a learning rate of 1; `_descend` applies the actual rate."""

    def clipped_adam(epsilon):
        clip = optax.clip_by_global_norm(config.max_grad_norm)
        return optax.chain(clip, optax.scale_by_adam(eps=epsilon))

    return (
        clipped_adam(config.encoder_epsilon),
        clipped_adam(config.policy_epsilon),
        optax.scale_by_adam(eps=1e-8),
    )


def _descend(params, steps, rate):
    return jax.tree.map(lambda p, s: p - rate * s, params, steps)


def _flat(x: Shaped[Array, "T N ..."]) -> Shaped[Array, "B ..."]:
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _set_temperature(agent: Agent, temperature) -> Agent:
    """Sets the initial temperature of an aggregator that has one; if it has several, of the first, and scales the others."""
    getters = temperatures(agent.memory.aggregation.aggregator)
    where = lambda agent: [get(agent.memory.aggregation.aggregator) for get in getters]  # noqa: E731
    built = [at_least(one) for one in where(agent)]
    if not built:
        return agent
    first = at_least(jnp.asarray(temperature, jnp.float32))
    return eqx.tree_at(where, agent, [first * (one / built[0]) for one in built])


def _empty_buffer(config: Config) -> Buffer:
    """Allocates `ppo.buffer` trajectories, but not more than the run can produce."""
    ppo, env = config.ppo, config.env
    obs = jnp.zeros(env.obs_size)
    example = Transition(obs, env.space.zero(), jnp.zeros(()), obs)
    expected = 2 * config.updates * ppo.batch // env.horizon
    # A row must not be reused while its task continues, even if every other task ends at once.
    least = 2 * ppo.envs * (1 + max(ppo.steps, env.horizon) // env.episodes)
    rows = max(min(ppo.buffer, expected), least, ppo.trajectories)
    return Buffer.create(rows, env.horizon, ppo.envs, example)
