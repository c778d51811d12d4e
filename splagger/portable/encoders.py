"""The encoders in NumPy, one step at a time."""

import numpy as np

from splagger.portable.arrays import sigmoid


def _gru(arrays, context):
    w, u, b, c = map(arrays.get, ("input_weight", "hidden_weight", "bias", "candidate_bias"))
    width = len(c)

    def step(h, x):
        inputs, hidden = np.dot(w, x) + b, np.dot(u, h)
        gates = sigmoid(inputs[: 2 * width] + hidden[: 2 * width])
        n = np.tanh(inputs[2 * width :] + gates[:width] * (hidden[2 * width :] + c))
        h = n + gates[width:] * (h - n)
        return h, h

    return np.zeros(width, np.float32), step, w.shape[1]


def _lstm(arrays, context):
    w, u, b = map(arrays.get, ("input_weight", "hidden_weight", "bias"))

    def step(state, x):
        i, f, g, o = np.split(np.dot(w, x) + np.dot(u, state[0]) + b, 4)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h, c), h

    zeros = np.zeros(u.shape[1], np.float32)
    return (zeros, zeros), step, w.shape[1]


def _pointwise(arrays, context):
    linear = arrays.linear("linear")
    inputs = arrays.below("linear").get("weight").shape[1]
    return (), lambda state, x: (state, np.tanh(linear(x))), inputs


def _constant(arrays, context):
    value = arrays.get("value")
    return (), lambda state, x: (state, value), 0


def _mingru(arrays, context):
    gates = arrays.linear("gates")
    width = len(arrays.below("gates").get("bias")) // 2

    def step(h, x):
        z, candidate = np.split(gates(x), 2)
        h = sigmoid(-z) * h + sigmoid(z) * candidate
        return h, h

    inputs = arrays.below("gates").get("weight").shape[1]
    return np.zeros(width, np.float32), step, inputs


def _lru(arrays, context):
    """The state is complex here; the arrays hold real and imaginary parts one after the other."""
    nu, theta, log_gamma = map(arrays.get, ("nu", "theta", "log_gamma"))
    read_in, read_out, gate = map(arrays.linear, ("input", "output", "gate"))
    eigenvalues = np.exp(-np.exp(nu) + 1j * np.exp(theta)).astype(np.complex64)

    def step(s, x):
        real, imaginary = np.split(read_in(x), 2)
        s = eigenvalues * s + np.exp(log_gamma) * (real + 1j * imaginary).astype(np.complex64)
        value, opened = np.split(gate(read_out(np.concatenate([s.real, s.imag, x]))), 2)
        return s, value * sigmoid(opened)

    inputs = arrays.below("input").get("weight").shape[1]
    return np.zeros(len(nu), np.complex64), step, inputs


def _mlstm(arrays, context):
    names = ("keys", "queries", "values", "input_gates", "forget_gates", "output_gates")
    keys, queries, values, input_gates, forget_gates, output_gates = map(arrays.linear, names)
    sizes = [len(arrays.below(name).get("bias")) for name in names]
    heads, key_size, value_size = sizes[3], sizes[0] // sizes[3], sizes[2] // sizes[3]

    def step(matrix, x):
        key = keys(x).reshape(heads, 1, key_size) * np.float32(key_size**-0.5)
        column = np.ones((heads, value_size + 1, 1), np.float32)  # the last row is the normalizer
        column[:, :-1, 0] = values(x).reshape(heads, value_size)
        written = sigmoid(input_gates(x))[:, None, None] * column * key
        matrix = sigmoid(forget_gates(x))[:, None, None] * matrix + written
        found = (matrix @ queries(x).reshape(heads, key_size, 1))[..., 0]
        mixed = found[:, :-1] / np.maximum(np.abs(found[:, -1:]), np.float32(1))
        return matrix, sigmoid(output_gates(x)) * mixed.ravel()

    inputs = arrays.below("keys").get("weight").shape[1]
    return np.zeros((heads, value_size + 1, key_size), np.float32), step, inputs


HEADS = 2  # of the Transformer's attention


def _transformer(arrays, context):
    """The state holds the keys and values of each block since the last reset, at most `context` of them."""
    token, output = arrays.linear("token"), arrays.linear("output")
    blocks = []
    while arrays.has(f"blocks.{len(blocks)}.feed.weight"):
        blocks.append(_block(arrays.below(f"blocks.{len(blocks)}"), context))
    size = len(arrays.below("token").get("bias"))
    nothing = np.zeros((0, HEADS, size // HEADS), np.float32)

    def step(states, x):
        x, kept = token(x), []
        for block, state in zip(blocks, states, strict=True):
            state, x = block(state, x)
            kept.append(state)
        return kept, output(x)

    inputs = arrays.below("token").get("weight").shape[1]
    return [(nothing, nothing)] * len(blocks), step, inputs


def _block(arrays, context):
    """LN(x + attention), then LN(x + linear(x)), of the newest token."""
    attention = arrays.below("attention")
    query, value, mix = map(attention.linear, ("query", "value", "output"))
    key, feed = attention.get("key_weight"), arrays.linear("feed")
    norm, feed_norm = map(arrays.layer_norm, ("attention_norm", "feed_norm"))

    def step(state, x):
        new = (part.reshape(1, HEADS, -1) for part in (np.dot(key, x), value(x)))
        keys, values = (np.concatenate(pair)[-context:] for pair in zip(state, new, strict=True))
        logits = (keys * query(x).reshape(HEADS, -1)).sum(-1) * np.float32(keys.shape[-1] ** -0.5)
        weights = np.exp(logits - logits.max(0))
        weights = weights / weights.sum(0)
        x = norm(x + mix((weights[..., None] * values).sum(0).ravel()))
        return (keys, values), feed_norm(x + feed(x))

    return step


# name → build(arrays, context), which returns (first state, step(state, x) → (state, encoding), size of x); only the
# Transformer uses the context, the largest number of steps in a task
ENCODERS = {
    "gru": _gru,
    "lstm": _lstm,
    "lstm-invariant": _lstm,
    "pointwise": _pointwise,
    "constant": _constant,
    "mingru": _mingru,
    "lru": _lru,
    "mlstm": _mlstm,
    "transformer": _transformer,
}
