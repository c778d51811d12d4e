"""A causal Transformer without positional encoding, whose memory is one meta-episode."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.errors import SettingError
from splagger.nn.encoder import AbstractEncoder
from splagger.nn.initializers import uniform_fan_in, xavier_uniform
from splagger.nn.layers import LayerNorm, Linear


class Cache(NamedTuple):
    """The tokens since the last reset: a ring buffer of `context` tokens per block."""

    tokens: Float[Array, "blocks context token"]
    count: Int[Array, ""]


class Attention(eqx.Module):
    """Multi-head attention. Keys have no bias, because softmax is invariant to it.

    Queries, keys and values start as one Xavier matrix [3n, n], with weights from U(±√(6/4n)); all biases start at 0.
    """

    query: Linear
    key_weight: Float[Array, "token token"]
    value: Linear
    output: Linear
    heads: int = eqx.field(static=True)

    @classmethod
    def create(cls, key: Key[Array, ""], size: int, heads: int) -> "Attention":
        q, k, v, o = jr.split(key, 4)
        xavier = lambda key: xavier_uniform(key, (size, size), 3 * size)  # noqa: E731
        unbiased = lambda weight: Linear(weight, jnp.zeros(size))  # noqa: E731
        output = unbiased(uniform_fan_in(o, (size, size), size))
        return cls(unbiased(xavier(q)), xavier(k), unbiased(xavier(v)), output, heads)

    def __call__(self, query: Float[Array, " n"], tokens: Float[Array, "S n"], visible):
        """Attends from one token to the `visible` ones [S] among `tokens`."""
        q = self.query(query).reshape(self.heads, -1)
        k = (tokens @ self.key_weight.T).reshape(len(tokens), self.heads, -1)
        v = jax.vmap(self.value)(tokens).reshape(len(tokens), self.heads, -1)
        logits = jnp.einsum("hd,shd->hs", q, k) * q.shape[-1] ** -0.5
        weights = jax.nn.softmax(jnp.where(visible, logits, jnp.finfo(logits.dtype).min), axis=-1)
        return self.output(jnp.einsum("hs,shd->hd", weights, v).reshape(-1))


class Block(eqx.Module):
    """A post-norm block: x ← LN(x + attention); x ← LN(x + linear(x))."""

    attention: Attention
    attention_norm: LayerNorm
    feed: Linear
    feed_norm: LayerNorm

    @classmethod
    def create(cls, key: Key[Array, ""], size: int, heads: int) -> "Block":
        attention_key, feed_key = jr.split(key)
        attention = Attention.create(attention_key, size, heads)
        feed = Linear.create(feed_key, size, size)
        return cls(attention, LayerNorm.create(size), feed, LayerNorm.create(size))

    def __call__(self, token, tokens, visible):
        token = self.attention_norm(token + self.attention(token, tokens, visible))
        return self.feed_norm(token + self.feed(token))


class Transformer(AbstractEncoder):
    """Attention over the inputs since the last reset, or the newest `context` of them.

    Unlike those of all other encoders, its state grows with the context: it takes O(context) numbers and
    O(context) work per step.

    >>> transformer = Transformer.create(jr.key(0), 5, 32, context=10)
    >>> transformer.unroll(transformer.start(), jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 32)
    """

    token: Linear
    blocks: tuple[Block, ...]
    output: Linear
    context: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, key: Key[Array, ""], inputs: int, width: int, context: int, size: int = 16
    ) -> "Transformer":
        if context < 1:
            raise SettingError(f"a Transformer's context must be at least 1 step, got {context}")
        token, output, *blocks = jr.split(key, 4)
        return cls(
            Linear.create(token, inputs, size),
            tuple(Block.create(k, size, heads=2) for k in blocks),
            Linear.create(output, size, width),
            context,
        )

    @property
    def input_size(self) -> int:
        return self.token.weight.shape[1]

    def start(self) -> Cache:
        size = self.token.bias.shape[0]
        return Cache(jnp.zeros((len(self.blocks), self.context, size)), jnp.int32(0))

    def step(self, state: Cache, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Writes the new token into each block's ring and attends to the ring."""
        count = jnp.where(reset, 0, state.count)
        visible = jnp.arange(self.context) <= count  # the whole ring once it is full
        token, rings = self.token(x), []
        for block, ring in zip(self.blocks, state.tokens, strict=True):
            ring = jnp.where(reset, jnp.zeros_like(ring), ring)
            rings.append(ring.at[count % self.context].set(token))
            token = block(token, rings[-1], visible)
        return Cache(jnp.stack(rings), count + 1), self.output(token)

    def unroll(self, state: Cache, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """Attends to the ring and to the sequence's past together, under one mask."""
        ages, segments = self._layout(state, resets)
        steps = self.context + jnp.arange(len(xs))
        same = segments[steps][:, None] == segments[None, :]
        age = ages[steps][:, None] - ages[None, :]
        visible = same & (age >= 0) & (age < self.context)
        tokens, rings = jax.vmap(self.token)(xs), []
        for block, ring in zip(self.blocks, state.tokens, strict=True):
            all_tokens = jnp.concatenate([ring, tokens])
            rings.append(self._last_ring(all_tokens, ages, segments))
            tokens = jax.vmap(block, in_axes=(0, None, 0))(tokens, all_tokens, visible)
        return Cache(jnp.stack(rings), ages[-1] + 1), jax.vmap(self.output)(tokens)

    def _layout(self, state, resets):
        """Returns (position since the reset, segment) of the ring's slots, followed by those of the T steps.

        Unwritten slots are in segment -1, which contains no step.
        """
        slots = jnp.arange(self.context)
        newest = state.count - 1
        slot_age = newest - (newest - slots) % self.context
        slot_segment = jnp.where((slot_age >= 0) & (state.count > 0), 0, -1)

        def advance(count, reset):
            count = jnp.where(reset, 0, count)
            return count + 1, count

        _, step_age = jax.lax.scan(advance, state.count, resets)
        segments = jnp.concatenate([slot_segment, jnp.cumsum(resets)])
        return jnp.concatenate([slot_age, step_age]), segments

    def _last_ring(self, tokens, ages, segments):
        """Returns the ring after the last step: the newest `context` tokens of the last segment."""
        kept = (segments == segments[-1]) & (ages > ages[-1] - self.context)
        slots = jnp.where(kept, ages % self.context, self.context)  # out of range: dropped
        empty = jnp.zeros((self.context, tokens.shape[1]))
        return empty.at[slots].set(tokens, mode="drop")
