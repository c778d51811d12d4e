"""Compiler options: they compile here, and every tile is valid."""

import re

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from splagger.nn.gpu import cuda, generated_layers_hopper, gru_hopper, split_max
from splagger.training import compiler


def test_options_of_this_machine_compile(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")
    options = compiler.compiler_options()
    assert float(jax.jit(lambda x: x + 1, compiler_options=options)(1.0)) == 2.0


def test_options_that_xla_does_not_know_are_left_out():
    assert compiler._known({"xla_of_some_other_year": True}) == {}
    assert compiler._known({"xla_backend_optimization_level": 1}) != {}


def test_flags_of_the_user_take_precedence(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert compiler.compiler_options()["xla_backend_optimization_level"] == 1
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to= --xla_backend_optimization_level=3")
    rest = compiler._known({"xla_cpu_use_fusion_emitters": False})  # removed in JAX 0.11
    assert compiler.compiler_options() == rest


def test_hopper_gets_the_tiles(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "__version_info__", (0, 11, 2))
    monkeypatch.setattr(compiler, "_known", lambda options: options)
    monkeypatch.setattr(cuda, "is_hopper", lambda: True)
    assert compiler.compiler_options()["xla_gpu_gemm_autotuner_override_file"] == str(
        compiler.TILES
    )
    monkeypatch.setattr(cuda, "is_hopper", lambda: False)
    assert compiler.compiler_options() == {}


def test_every_tile_is_complete():
    """XLA would refuse the whole file if one number were missing."""
    lines = [line for line in compiler.TILES.read_text().splitlines() if not line.startswith("#")]
    names = "block_m", "block_n", "block_k", "num_stages", "num_warps", "num_ctas"
    pattern = r"config \{ " + " ".join(rf"{name}: (\d+)" for name in names) + r" \}"
    tiles = [re.fullmatch(pattern, line) for line in lines]
    assert tiles and all(tiles)
    for tile in tiles:
        rows, columns, depth, stages, *_ = map(int, tile.groups())
        assert all(n & (n - 1) == 0 for n in (rows, columns, depth))
        assert (rows + columns) * depth * 4 * stages <= 227 * 1024  # a Hopper's shared memory


def test_the_kernel_for_random_numbers_is_used_on_gpus_only(monkeypatch):
    name = "jax_threefry_gpu_kernel_lowering"
    before = getattr(jax.config, name)
    try:
        monkeypatch.setattr(compiler, "on_gpu", lambda: False)
        compiler.set_up_compiler()
        assert getattr(jax.config, name) == before
        draws = jax.jit(lambda key: jr.normal(key, (5,)))(jr.key(0))
        monkeypatch.setattr(compiler, "on_gpu", lambda: True)
        compiler.set_up_compiler()
        assert getattr(jax.config, name)
        again = jax.jit(lambda key: jr.normal(key, (5,)))(jr.key(0))
        assert jnp.array_equal(draws, again)  # on a CPU nothing changes
    finally:
        jax.config.update(name, before)


@pytest.mark.parametrize(
    "gpu, switch, expected", [(True, "on", 3), (True, "off", 0), (False, "on", 0)]
)
def test_cuda_kernels_are_compiled_on_gpus_if_switched_on(gpu, switch, expected, monkeypatch):
    compiled = []
    for module in (gru_hopper, generated_layers_hopper, split_max):
        monkeypatch.setattr(module, "available", lambda module=module: compiled.append(module))
    monkeypatch.setenv("SPLAGGER_KERNELS", switch)
    for module in (compiler, compiler.cuda):
        monkeypatch.setattr(module, "on_gpu", lambda: gpu)
    name = "jax_threefry_gpu_kernel_lowering"
    before = getattr(jax.config, name)
    try:
        compiler.set_up_compiler()
    finally:
        jax.config.update(name, before)
    assert len(compiled) == expected
