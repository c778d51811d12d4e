"""Plain numpy models and losses, written from the specification alone, for parity tests.

Clarity over speed; no batch axis unless a docstring says so. Arguments are float64 numpy arrays
(boolean for flags), and linear weights are laid out [out, in].
"""

import numpy as np

NUM_HEADS = 2


def sigmoid(x):
    """1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2, which never overflows."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def linear(x, weight, bias):
    """weight @ x + bias."""
    return weight @ x + bias


# Aggregators: es [t, D] is the whole prefix e_1..e_t; an empty prefix has the shape [0, D].
def _halves(es):
    """(first half, second half) of the neurons."""
    return es[:, : es.shape[1] // 2], es[:, es.shape[1] // 2 :]


def agg_max(es):
    """max(0, e_1, ..., e_t) per neuron."""
    return np.max(es, axis=0, initial=0.0)


def agg_sum(es):
    """e_1 + ... + e_t per neuron."""
    return np.sum(es, axis=0)


def agg_mean(es):
    """(e_1 + ... + e_t) / t per neuron; 0 for an empty prefix."""
    return agg_sum(es) / max(len(es), 1)


def agg_avgmax(es):
    """concat(mean of the first half of the neurons, max with floor 0 of the second half)."""
    first, second = _halves(es)
    return np.concatenate([agg_mean(first), agg_max(second)])


def _softmax_average(values, logits):
    """sum_i v_i exp(u_i) / sum_i exp(u_i) per neuron; 0 for an empty prefix."""
    if len(values) == 0:
        return np.zeros(values.shape[1])
    weights = np.exp(logits - np.max(logits, axis=0))
    return np.sum(weights * values, axis=0) / np.sum(weights, axis=0)


def agg_softmax(es, temperature):
    """sum_i e_i exp(e_i / temperature) / sum_i exp(e_i / temperature) per neuron."""
    return _softmax_average(es, es / temperature)


def agg_weighted_softmax(es, temperature):
    """sum_i v_i w_i / sum_i w_i with w_i = exp(u_i / temperature); v first half, u second half."""
    values, logits = _halves(es)
    return _softmax_average(values, logits / temperature)


def agg_weighted_mean(es):
    """sum_i v_i softplus(u_i) / max(sum_i softplus(u_i), 0.1), v first half, u second half."""
    values, logits = _halves(es)
    weights = np.logaddexp(0.0, logits)
    return agg_sum(values * weights) / np.maximum(agg_sum(weights), 0.1)


def agg_gaussian_product(es):
    """concat(sum_i mu_i p_i / B, -log B) with p_i = softplus(u_i), B = max(sum_i p_i, 0.1)."""
    means, logits = _halves(es)
    precisions = np.logaddexp(0.0, logits)
    total = np.maximum(agg_sum(precisions), 0.1)
    return np.concatenate([agg_sum(means * precisions) / total, -np.log(total)])


# Recurrent cells. In every unroll, resets[t] true empties the state BEFORE step t is taken.
def gru_step(x, h, w_input, w_hidden, bias, bias_n):
    """n = tanh(W_in x + b_n + r * (W_hn h + bias_n)); h' = (1 - z) * n + z * h; r, z, n stacked."""
    input_r, input_z, input_n = np.split(linear(x, w_input, bias), 3)
    hidden_r, hidden_z, hidden_n = np.split(w_hidden @ h, 3)
    r = sigmoid(input_r + hidden_r)
    z = sigmoid(input_z + hidden_z)
    n = np.tanh(input_n + r * (hidden_n + bias_n))
    return (1.0 - z) * n + z * h


def gru_unroll(xs, resets, h, w_input, w_hidden, bias, bias_n):
    """h_t = gru_step(x_t, 0 if resets[t] else h_{t-1}); returns (all h_t [T, H], last h)."""
    outputs = []
    for x, reset in zip(xs, resets, strict=True):
        h = gru_step(x, np.zeros(len(h)) if reset else h, w_input, w_hidden, bias, bias_n)
        outputs.append(h)
    return np.array(outputs), h


def lstm_step(x, state, w_input, w_hidden, bias):
    """c' = s(f) * c + s(i) * tanh(g); h' = s(o) * tanh(c'); s the sigmoid; i, f, g, o stacked."""
    h, c = state
    i, f, g, o = np.split(linear(x, w_input, bias) + w_hidden @ h, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def lstm_unroll(xs, resets, state, w_input, w_hidden, bias):
    """(h_t, c_t) = lstm_step(x_t, 0 if resets[t] else previous); returns (all h_t, last (h, c))."""
    outputs = []
    for x, reset in zip(xs, resets, strict=True):
        state = (np.zeros(len(state[0])), np.zeros(len(state[1]))) if reset else state
        state = lstm_step(x, state, w_input, w_hidden, bias)
        outputs.append(state[0])
    return np.array(outputs), state


def mingru_unroll(xs, resets, h, w_z, b_z, w_c, b_c):
    """h_t = (1 - z) h_{t-1} + z c with z = s(W_z x + b_z), c = W_c x + b_c; returns (all h_t, last h)."""
    outputs = []
    for x, reset in zip(xs, resets, strict=True):
        z = sigmoid(linear(x, w_z, b_z))
        h = (1.0 - z) * (0.0 if reset else h) + z * linear(x, w_c, b_c)
        outputs.append(h)
    return np.array(outputs), h


def lru_unroll(xs, resets, s, nu, theta, log_gamma, b, c, d, offsets, w_gate, b_gate):
    """s_t = lambda s_{t-1} + gamma (B x + b_0); y = Re(C s_t) + D x + c_0; output (E y)(s(F y)).

    Complex arithmetic: s, B [N, D] and C [H, N] are complex; offsets are the pair (b_0, c_0).
    """
    eigenvalues = np.exp(-np.exp(nu) + 1j * np.exp(theta))
    outputs = []
    for x, reset in zip(xs, resets, strict=True):
        s = eigenvalues * (0.0 if reset else s) + np.exp(log_gamma) * (b @ x + offsets[0])
        y = np.real(c @ s) + d @ x + offsets[1]
        value, gate = np.split(linear(y, w_gate, b_gate), 2)
        outputs.append(value * sigmoid(gate))
    return np.array(outputs), s


def mlstm_unroll(xs, resets, state, params):
    """C_t = f C_{t-1} + i v k^T; n_t = f n_{t-1} + i k; h = o C q / max(|n . q|, 1), head by head.

    params maps "k", "q", "v", "i", "f", "o" to (weight, bias); state is a list of (C, n), one per head.
    """
    heads, outputs = len(state), []
    for x, reset in zip(xs, resets, strict=True):
        y = {name: linear(x, *layer) for name, layer in params.items()}
        split = {name: np.split(y[name], heads) for name in "kqvo"}
        state, parts = list(state), []
        for head, (matrix, normalizer) in enumerate(state):
            key = split["k"][head] / np.sqrt(len(split["k"][head]))
            query, value = split["q"][head], split["v"][head]
            f, i = sigmoid(y["f"][head]) * (not reset), sigmoid(y["i"][head])
            matrix = f * matrix + i * np.outer(value, key)
            normalizer = f * normalizer + i * key
            state[head] = matrix, normalizer
            read = matrix @ query / max(abs(normalizer @ query), 1.0)
            parts.append(sigmoid(split["o"][head]) * read)
        outputs.append(np.concatenate(parts))
    return np.array(outputs), state


def layer_norm(x, scale, offset):
    """scale * (x - mean) / sqrt(population variance + 1e-5) + offset."""
    return scale * (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-5) + offset


def attend(query, keys, values):
    """sum_i softmax_i(q . k_i / sqrt(size)) v_i per head; heads are contiguous slices of size."""
    size = len(query) // NUM_HEADS
    out = np.zeros(len(query))
    for head in range(NUM_HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = np.array([query[part] @ key[part] for key in keys]) / np.sqrt(size)
        for weight, value in zip(np.exp(log_softmax(scores)), values, strict=True):
            out[part] += weight * value[part]
    return out


def transformer_unroll(xs, resets, params):
    """x <- LN1(x + MHA(x)); x <- LN2(x + Linear(x)) per block, causal since the last reset; [T, D].

    params: w_token [16, X], b_token [16]; blocks, a list of dicts with wq, wk, wv, wo [16, 16],
    bq, bk, bv, bo [16], ln1_scale, ln1_offset, ln2_scale, ln2_offset [16], w_ff [16, 16],
    b_ff [16]; w_out [D, 16], b_out [D]. There is no positional encoding and nothing before step 0.
    """
    starts = [max([i for i in range(t + 1) if resets[i]], default=0) for t in range(len(xs))]
    tokens = [linear(x, params["w_token"], params["b_token"]) for x in xs]
    for block in params["blocks"]:
        queries = [linear(token, block["wq"], block["bq"]) for token in tokens]
        keys = [linear(token, block["wk"], block["bk"]) for token in tokens]
        values = [linear(token, block["wv"], block["bv"]) for token in tokens]
        outputs = []
        for t, token in enumerate(tokens):
            seen = slice(starts[t], t + 1)
            mixed = linear(attend(queries[t], keys[seen], values[seen]), block["wo"], block["bo"])
            y = layer_norm(token + mixed, block["ln1_scale"], block["ln1_offset"])
            y = y + linear(y, block["w_ff"], block["b_ff"])
            outputs.append(layer_norm(y, block["ln2_scale"], block["ln2_offset"]))
        tokens = outputs
    return np.array([linear(token, params["w_out"], params["b_out"]) for token in tokens])


def generated_mlp(x, z, layers):
    """tanh MLP, linear last layer: W_l = sum_k z~_k H_l[k], b_l likewise, z~ = concat(z, [1])."""
    extended = np.concatenate([z, [1.0]])
    for index, (weight_head, bias_head) in enumerate(layers):
        weight = sum(factor * weight_head[k] for k, factor in enumerate(extended))
        bias = sum(factor * bias_head[k] for k, factor in enumerate(extended))
        x = linear(x, weight, bias)
        x = np.tanh(x) if index < len(layers) - 1 else x
    return x


def policy_forward(obs, latent, params):
    """actor(h_s; z), critic(h_s; z) with h_s = tanh(Linear(obs)), z = tanh(Linear(latent)).

    obs is already normalized. params: w_state [S, O], b_state [S], w_latent [K, L], b_latent [K];
    actor and critic, lists of (weight head [K+1, out, in], bias head [K+1, out]).
    Returns (actor head outputs, scalar value).
    """
    hidden = np.tanh(linear(obs, params["w_state"], params["b_state"]))
    z = np.tanh(linear(latent, params["w_latent"], params["b_latent"]))
    return generated_mlp(hidden, z, params["actor"]), generated_mlp(hidden, z, params["critic"])[0]


def log_softmax(logits):
    """l - log sum exp(l)."""
    shifted = logits - np.max(logits)
    return shifted - np.log(np.sum(np.exp(shifted)))


def categorical_log_prob(logits, action):
    """log softmax(logits)[action]."""
    return log_softmax(logits)[int(action)]


def categorical_entropy(logits):
    """-sum_a p_a log p_a."""
    return -np.sum(np.exp(log_softmax(logits)) * log_softmax(logits))


def gaussian_log_prob(mean, log_std, action):
    """sum_d -((a - mean) / std)^2 / 2 - log(std) - log(2 pi) / 2, std = max(1e-6, exp(log_std))."""
    std = np.maximum(1e-6, np.exp(log_std))
    return np.sum(-0.5 * ((action - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2.0 * np.pi))


def gaussian_entropy(log_std):
    """sum_d log std + (1 + log(2 pi)) / 2 with std = max(1e-6, exp(log_std))."""
    std = np.maximum(1e-6, np.exp(log_std))
    return np.sum(np.log(std) + 0.5 * (1.0 + np.log(2.0 * np.pi)))


def gae_naive(reward, value, last_value, ended, truncated, discount, decay):
    """A_t = b (r_t + discount m (V_{t+1} + decay A_{t+1}) - V_t); [T] or [T, N]; gives A, A + V."""
    advantage = np.zeros(value.shape)
    next_value, next_advantage = last_value, 0.0
    for t in reversed(range(len(value))):
        m, b = 1.0 - ended[t], 1.0 - truncated[t]
        delta = reward[t] + discount * m * next_value - value[t]
        advantage[t] = b * (delta + discount * decay * m * next_advantage)
        next_value, next_advantage = value[t], advantage[t]
    return advantage, advantage + value


def running_moments_update(mean, var, count, batch):
    """Pooled population moments of (mean, var, count) and batch [n, D]; gives mean, var, count."""
    n, total = len(batch), count + len(batch)
    delta = np.mean(batch, axis=0) - mean
    squares = var * count + np.var(batch, axis=0) * n + delta**2 * count * n / total
    return mean + delta * n / total, squares / total, total


def scaled_rewards_naive(rewards, task_done, discount):
    """clip(r / sqrt(var(G) + 1e-8), +-10), G <- discount G + r, zeroed after the task's end."""
    mean, var, count = 0.0, 1.0, 1e-4
    returns = np.zeros(np.shape(rewards)[1])
    scaled = np.zeros(np.shape(rewards))
    for t in range(len(rewards)):
        returns = discount * returns + rewards[t]
        mean, var, count = running_moments_update(mean, var, count, returns)
        scaled[t] = np.clip(rewards[t] / np.sqrt(var + 1e-8), -10.0, 10.0)
        returns = np.where(task_done[t], 0.0, returns)
    return scaled


def huber(x, y):
    """d^2 / 2 where |d| < 1, else |d| - 1/2, with d = x - y."""
    distance = np.abs(x - y)
    return np.where(distance < 1.0, 0.5 * distance**2, distance - 0.5)


def ppo_loss_naive(
    log_prob, old_log_prob, advantage, value, old_value, target, entropy, clip, value_weight,
    entropy_weight,
):  # fmt: skip
    """L_pi + value_weight L_V - entropy_weight mean(H), [n] arrays; gives (total, L_pi, L_V)."""
    ratio = np.exp(log_prob - old_log_prob)
    clipped_ratio = np.clip(ratio, 1.0 - clip, 1.0 + clip)
    policy_loss = -np.mean(np.minimum(ratio * advantage, clipped_ratio * advantage))
    clipped_value = old_value + np.clip(value - old_value, -clip, clip)
    value_loss = 0.5 * np.mean(np.maximum(huber(value, target), huber(clipped_value, target)))
    total = policy_loss + value_weight * value_loss - entropy_weight * np.mean(entropy)
    return total, policy_loss, value_loss


def gaussian_kl(mean_q, logvar_q, mean_p, logvar_p):
    """sum_d (logvar_p - logvar_q + (var_q + (mean_q - mean_p)^2) / var_p - 1) / 2."""
    ratio = (np.exp(logvar_q) + (mean_q - mean_p) ** 2) / np.exp(logvar_p)
    return 0.5 * np.sum(logvar_p - logvar_q + ratio - 1.0)


def belief_kl_naive(means, logvars, first):
    """KL(q_t || q_{t-1}), to N(0, I) where first[t], 0 at t = 0 if not first; [T, D] -> [T]."""
    out = np.zeros(len(means))
    for t in range(len(means)):
        if first[t]:
            out[t] = gaussian_kl(means[t], logvars[t], 0.0, 0.0)
        elif t > 0:
            out[t] = gaussian_kl(means[t], logvars[t], means[t - 1], logvars[t - 1])
    return out
