"""The encoders in NumPy, one step at a time."""

import numpy as np

from splagger.portable.arrays import sigmoid


def _gru(arrays):
    w, u, b, c = map(arrays.get, ("input_weight", "hidden_weight", "bias", "candidate_bias"))
    width = len(c)

    def step(h, x):
        inputs, hidden = w @ x + b, u @ h
        gates = sigmoid(inputs[: 2 * width] + hidden[: 2 * width])
        n = np.tanh(inputs[2 * width :] + gates[:width] * (hidden[2 * width :] + c))
        h = n + gates[width:] * (h - n)
        return h, h

    return np.zeros(width, np.float32), step, w.shape[1]


def _lstm(arrays):
    w, u, b = map(arrays.get, ("input_weight", "hidden_weight", "bias"))

    def step(state, x):
        i, f, g, o = np.split(w @ x + u @ state[0] + b, 4)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h, c), h

    zeros = np.zeros(u.shape[1], np.float32)
    return (zeros, zeros), step, w.shape[1]


def _pointwise(arrays):
    linear = arrays.linear("linear")
    inputs = arrays.below("linear").get("weight").shape[1]
    return (), lambda state, x: (state, np.tanh(linear(x))), inputs


def _constant(arrays):
    value = arrays.get("value")
    return (), lambda state, x: (state, value), 0


# name → build(arrays), which returns (first state, step(state, x) → (state, encoding), size of x)
ENCODERS = {
    "gru": _gru,
    "lstm": _lstm,
    "lstm-invariant": _lstm,
    "pointwise": _pointwise,
    "constant": _constant,
}
