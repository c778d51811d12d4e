"""The PyTorch memory equals ours: outputs and gradients, with resets anywhere. Skipped without PyTorch."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger.aggregators import Max
from splagger.errors import SettingError
from splagger.memory import SequenceModel, Transition
from splagger.portable import torch_memory
from splagger.runs.named_arrays import named_leaves

AGENT = Path(__file__).parents[1] / "contract" / "agent.npz"
T, N, D = 9, 3, 5
needs_torch = pytest.mark.skipif(torch_memory.torch is None, reason="PyTorch is not installed")


@pytest.mark.skipif(torch_memory.torch is not None, reason="PyTorch is installed")
def test_without_torch_one_line_says_how_to_install_it():
    with pytest.raises(SettingError, match="PyTorch is not installed; install it with: pip"):
        torch_memory.from_file(AGENT)


@needs_torch
@pytest.mark.parametrize("skip, floor", [(0.5, 0.0), (0.5, -0.2), (1.0, 0.0), (0.0, 0.0)])
def test_outputs_and_gradients_equal_ours(skip, floor):
    torch = torch_memory.torch
    random = np.random.default_rng(0)
    ours = SequenceModel.create(
        jr.key(0), D, width=8, aggregator=Max(floor), skip=skip, output_size=4
    )
    ours = jax.tree.map(
        lambda x: x + 0.1 * random.normal(size=x.shape).astype(np.float32) if x.ndim else x, ours
    )
    xs = random.normal(size=(T, N, D)).astype(np.float32)
    resets = random.uniform(size=(T, N)) < 0.2
    weights = random.normal(size=(T, N, 4)).astype(np.float32)

    def loss(model, xs):
        start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (N, *leaf.shape)), model.start())
        outputs = model.unroll(start, xs, jnp.asarray(resets))[1]
        return jnp.sum(jnp.sin(outputs) * weights), outputs

    grad = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))
    (_, expected), (d_model, d_xs) = grad(ours, jnp.asarray(xs))
    named = {f"0.memory.{name}": array for name, array in named_leaves(ours).items()}
    memory = torch_memory.from_arrays(named, skip, floor)
    inputs = torch.tensor(xs, requires_grad=True)
    state, outputs = memory(memory.start(N), inputs, torch.tensor(resets))
    np.testing.assert_allclose(outputs.detach(), expected, rtol=1e-5, atol=1e-5)
    (torch.sin(outputs) * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(inputs.grad, d_xs, rtol=1e-5, atol=1e-5)
    for name, gradient in named_leaves(d_model).items():
        found = memory.get_parameter(name.removeprefix("encoder.")).grad
        np.testing.assert_allclose(found, gradient, rtol=1e-5, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(memory.first_output().detach(), ours.start().output, atol=1e-5)
    by_step, again = memory.start(N), []
    for x, reset in zip(inputs, torch.tensor(resets), strict=True):
        by_step, y = memory.step(by_step, x, reset)
        again.append(y)
    torch.testing.assert_close(torch.stack(again), outputs)
    torch.testing.assert_close(by_step, state)


@needs_torch
def test_the_memory_of_an_agent_file_equals_the_players():
    torch = torch_memory.torch
    memory, player = torch_memory.from_file(AGENT), splagger.load(AGENT)
    random = np.random.default_rng(1)
    obs = random.normal(size=(5, 5)).astype(np.float32)
    state, step = memory.start(), jax.jit(SequenceModel.step)
    kept = player.agent.start()
    for t in range(4):
        kept, expected = step(
            player.agent.memory,
            kept,
            Transition(*map(jnp.asarray, (obs[t], t, np.float32(t / 2), obs[t + 1]))),
            t == 2,
        )
        action = torch.nn.functional.one_hot(torch.tensor(t), 4).float()
        pair = torch.tensor(obs[t]), torch.tensor(obs[t + 1])
        x = memory.embedding(pair[0], action, torch.tensor(t / 2), pair[1])
        state, output = memory.step(state, x, torch.tensor(t == 2))
        np.testing.assert_allclose(output.detach(), expected, rtol=1e-5, atol=1e-5)


@needs_torch
def test_a_fresh_memory_trains():
    torch = torch_memory.torch
    memory = torch_memory.TorchMemory(D, width=8, output_size=2)
    optimizer = torch.optim.Adam(memory.parameters(), 1e-2)
    xs, resets = torch.ones(T, N, D), torch.zeros(T, N, dtype=torch.bool)
    losses = []
    for _ in range(20):
        loss = (memory(memory.start(N), xs, resets)[1] - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@needs_torch
def test_other_memories_are_refused_in_one_line(tmp_path):
    arrays = dict(np.load(AGENT))
    about = json.loads(str(arrays["description"]))
    about["run"]["method"] |= {"name": "cnp", "encoder": "pointwise"}
    np.savez(tmp_path / "cnp.npz", **(arrays | {"description": np.asarray(json.dumps(about))}))
    with pytest.raises(SettingError, match=r"cnp\.npz: PyTorch memories are a GRU .* not cnp"):
        torch_memory.from_file(tmp_path / "cnp.npz")
    with pytest.raises(SettingError, match="skip must lie in 0 … 1, got 2"):
        torch_memory.TorchMemory(D, skip=2.0)


@needs_torch
def test_the_first_output_is_computed_on_the_device_of_the_module():
    memory = torch_memory.TorchMemory(D, width=8, output_size=4).to("meta")
    assert memory.first_output().device.type == "meta"
