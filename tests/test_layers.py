"""Imports point one way: each room of the package knows only those above it in `ROOMS`."""

import ast
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "splagger"

# Rooms in the order of their imports: each may import from those before it, and from no other.
ROOMS = (
    "errors",
    "paper_numbers",
    "tables",
    "ranges",
    "files",
    "identity",
    "images",
    "spaces",
    "gymnasium_ids",
    "zoo",
    "portable",
    "nn",
    "vision",
    "aggregators",
    "memory",
    "policy",
    "methods",
    "network",
    "agent",
    "envs",
    "ppo",
    "registry",
    "bridges",
    "runs",
    "status",
    "hosts",
    "training",
    "launchers",
    "agents",
    "analysis",
    "stats",
    "plots",
    "paper",
    "report",
    "inspection",
    "cli",
)
HEAVY = {"tyro", "gymnasium", "mujoco", "matplotlib", "pandas", "rich"}


def files_of(room):
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def modules_imported(path):
    """Dotted names of all modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            if node.module == "splagger":  # from splagger import room
                yield from (f"splagger.{alias.name}" for alias in node.names)
            else:
                yield node.module


def rooms_imported(room):
    for path in files_of(room):
        for module in modules_imported(path):
            if module.split(".")[0] == "splagger":
                yield [*module.split("."), "the package itself"][1]


def loaded_by(code):
    """The modules that are loaded after `code` ran in a new process."""
    code = f"import json, sys; {code}; print(json.dumps(list(sys.modules)))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_every_room_is_listed():
    names = {p.stem for p in PACKAGE.glob("*.py")} | {p.parent.name for p in PACKAGE.glob("*/*.py")}
    assert names - {"__init__", "__main__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room):
    later = set(rooms_imported(room)) - set(ROOMS[: ROOMS.index(room) + 1])
    assert not later, f"splagger.{room} must not import {sorted(later)}"


@pytest.mark.parametrize("room", [p.parent.name for p in sorted(PACKAGE.glob("*/__init__.py"))])
def test_every_room_says_what_it_is_for(room):
    docstring = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text()))
    assert docstring and docstring.splitlines()[0].endswith(".")


@pytest.mark.parametrize("room", [p.parent for p in sorted(PACKAGE.rglob("__init__.py"))[1:]])
def test_rooms_are_not_overcrowded(room):
    assert len(list(room.glob("*.py"))) <= 13


@pytest.mark.parametrize("room", ["nn", "aggregators"])
def test_building_blocks_need_jax_and_equinox_only(room):
    allowed = {"jax", "equinox", "jaxtyping", "splagger"} | sys.stdlib_module_names
    tops = {name.split(".")[0] for path in files_of(room) for name in modules_imported(path)}
    assert tops <= allowed


def test_results_are_read_drawn_and_reported_without_jax():
    rooms = "splagger.runs, splagger.stats, splagger.plots, splagger.paper, splagger.report"
    loaded = loaded_by(f"import {rooms}")
    assert "splagger.report.page" in loaded
    assert not loaded & {"jax", "equinox", "optax"}


def test_simulations_inside_callbacks_do_not_import_jax():
    """JAX waits for the simulations: if they called JAX, both would wait forever."""
    modules = set(modules_imported(PACKAGE / "envs" / "mujoco" / "simulations.py"))
    tops = {name.split(".")[0] for name in modules if not name.startswith("splagger.errors")}
    assert tops <= {"mujoco", "numpy"} | sys.stdlib_module_names


def test_importing_the_library_imports_no_tool():
    """Command line, plots, logs and simulators are loaded only where they are used."""
    loaded = loaded_by("import splagger; splagger.train; splagger.load; splagger.ENVS")
    assert "splagger.ppo.train" in loaded
    assert not loaded & HEAVY


def test_importing_the_package_is_light():
    assert not loaded_by("import splagger") & (HEAVY | {"jax", "numpy"})


@pytest.mark.parametrize("order", ["gymnasium, splagger", "splagger, gymnasium"])
def test_gymnasium_ids_do_not_depend_on_the_order_of_imports(order):
    code = f"import {order}; assert 'splagger/T-LS-v0' not in gymnasium.registry; "
    code += "import splagger.gymnasium_ids; assert 'splagger/T-LS-v0' in gymnasium.registry"
    assert "jax" not in loaded_by(code)


def test_type_checkers_see_the_names_that_are_imported_lazily():
    import splagger

    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    listed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert listed == splagger._PLACES
    assert all(hasattr(splagger, name) for name in listed)
