"""Imports point down: each part of the package knows only those below it."""

import ast
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "splagger"
AGENT = {"agent", "aggregators", "methods", "nn", "policy", "sequence", "spaces", "tables"}

# part of splagger/ → the others it may import; what is not named here, nothing named may import
MAY_IMPORT = {
    "tables": set(),
    "spaces": set(),
    "nn": set(),
    "aggregators": {"nn"},
    "sequence": {"nn", "aggregators", "spaces", "tables"},
    "policy": {"nn", "spaces"},
    "methods": {"aggregators", "policy", "sequence", "tables"},
    "agent": {"methods", "nn", "policy", "sequence", "spaces"},
    "envs": {"spaces", "tables"},
    "ppo": AGENT | {"envs"},
    "registry": AGENT | {"envs", "ppo"},
    "interop": AGENT | {"envs", "ppo", "registry"},
    "resolve": AGENT | {"envs", "ppo", "registry"},
    "recorded": set(),
    "figures": {"recorded", "tables"},
    "experiments": AGENT | {"envs", "ppo", "registry", "resolve", "figures", "recorded"},
    "analysis": AGENT | {"envs", "ppo", "registry", "resolve", "experiments", "recorded"},
}
HEAVY = {"tyro", "gymnasium", "mujoco", "matplotlib", "tensorboardX", "pandas", "rich"}


def files_of(part):
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def modules_imported(path):
    """Dotted names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            if node.module == "splagger":  # from splagger import part
                yield from (f"splagger.{alias.name}" for alias in node.names)
            else:
                yield node.module


def parts_imported(part):
    for path in files_of(part):
        for module in modules_imported(path):
            if module.split(".")[0] == "splagger":
                yield [*module.split("."), "the package itself"][1]


EXISTING = [part for part in MAY_IMPORT if any(path.exists() for path in files_of(part))]


@pytest.mark.parametrize("part", EXISTING)
def test_imports_point_down(part):
    above = set(parts_imported(part)) - MAY_IMPORT[part] - {part}
    assert not above, f"splagger.{part} must not import {sorted(above)}"


def test_the_layers_have_no_cycle():
    """Below everything that a part may import is nothing that leads back to it."""

    def below(part, seen=()):
        assert part not in seen, f"{part} may import itself by way of {seen}"
        for lower in MAY_IMPORT[part]:
            below(lower, (*seen, part))

    for part in MAY_IMPORT:
        below(part)


@pytest.mark.parametrize("part", ["nn", "aggregators"])
def test_building_blocks_need_jax_and_equinox_only(part):
    allowed = {"jax", "equinox", "jaxtyping", "splagger"} | sys.stdlib_module_names
    tops = {name.split(".")[0] for path in files_of(part) for name in modules_imported(path)}
    assert tops <= allowed


@pytest.mark.parametrize("part", ["figures", "recorded"])
def test_figures_are_drawn_without_jax(part):
    """What they need of the package, they get from parts that need no jax either."""
    allowed = {"numpy", "pandas", "matplotlib", "splagger"} | sys.stdlib_module_names
    tops = {name.split(".")[0] for path in files_of(part) for name in modules_imported(path)}
    assert tops <= allowed


def test_what_runs_inside_a_callback_does_not_know_jax():
    """JAX waits for the simulations: should they call it, both would wait for ever."""
    modules = set(modules_imported(PACKAGE / "envs" / "mujoco" / "simulations.py"))
    assert {name.split(".")[0] for name in modules} <= {"mujoco", "numpy"} | sys.stdlib_module_names


def test_importing_the_library_imports_no_tool():
    """Command line, plots, logs and simulators are loaded only where they are used."""
    code = "import json, sys, splagger, splagger.ppo; print(json.dumps(list(sys.modules)))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout))
    assert "splagger.ppo" in loaded
    assert not loaded & HEAVY
