"""Files of strangers: no command runs what they name, exports act without their environment, and `trust` allows both."""

import itertools
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger import METHODS
from splagger.agent import build
from splagger.agents.interface import SavedInterface
from splagger.agents.rebuild import rebuild
from splagger.aggregators import Max
from splagger.bridges import from_gymnasium
from splagger.bridges.gym.gym_env import GymEnv, layout
from splagger.cli import main
from splagger.errors import RunError, SettingError, UserError
from splagger.files import agent_file
from splagger.identity import plain
from splagger.methods import Method
from splagger.runs.folder import RunFolder
from splagger.runs.run import Run
from tests.bridges import gym_probes
from tests.contract.make import AGENT, RUN, SMALL, actions_of

(FOLDER,) = RUN.glob("*/*/*/")
SIZES = {k: v for k, v in SMALL.items() if not k.startswith("env.")}
CANARY = """
import os, pathlib
pathlib.Path(os.environ["CANARY"]).write_text("imported")
def make(**given):
    pathlib.Path(os.environ["CANARY"]).write_text("called")
method = make
"""


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that appears if the module `canary_module` is imported, which every path below leads to."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "canary_module.py").write_text(CANARY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    return tmp_path / "canary"


def changed(arguments: Mapping, changes: Mapping) -> dict:
    """Returns arguments with some values replaced; overrides are added to those that other environments have too."""
    kept = {k: v for k, v in arguments["overrides"].items() if "env" not in changes or k in SIZES}
    overrides = {**kept, **changes.get("overrides", {})}
    return {**arguments, **changes, "overrides": overrides}


def hostile_folder(path, changes):
    """A run folder whose record is valid in every respect, also its digest, but for these arguments."""
    folder = RunFolder(shutil.copytree(FOLDER, path))
    record = folder.record()
    folder.write_record(replace(record, arguments=changed(record.arguments, changes)))
    return path


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The description and the arrays of an agent file."""
    path = tmp_path_factory.mktemp("exported") / "agent.npz"
    splagger.save_agent(splagger.load(AGENT), path)
    with agent_file.open_agent(path) as file:
        about = {k: v for k, v in file.description.items() if k != "format"}
        return about, file.arrays()


def hostile_file(path, exported, changes, **others):
    """An agent file with a valid digest but these arguments."""
    about, arrays = exported
    about = {**about, "arguments": changed(about["arguments"], changes), **others}
    agent_file.write_agent(path, about, arrays)
    return path


def old_file(path, exported, changes):
    """An agent file of format 1, which has neither digest nor interface."""
    about = {k: v for k, v in exported[0].items() if k != "interface"}
    about["arguments"] = changed(about["arguments"], changes)
    np.savez_compressed(path, description=np.asarray(json.dumps(about)), **exported[1])
    return path


KWARGS = '{"command": "true"}'
# What a file may ask for, and how the one line names it.
ROUTES = {
    "function": (
        {"env": "gym:canary_module:make", "overrides": {"env.kwargs": KWARGS}},
        f"import 'canary_module' and call 'canary_module:make' with '{KWARGS}'",
    ),
    "id": (
        {"env": "gym:canary_module:Env-v0"},
        "import 'canary_module' and create the Gymnasium environment 'Env-v0'",
    ),
    "registered": ({"env": "gym:CartPole-v1"}, "create the Gymnasium environment 'CartPole-v1'"),
    "jax": ({"env": "jax:canary_module:make"}, "import 'canary_module' and call"),
    "gymnax": ({"env": "gymnax:canary_module"}, "create the gymnax environment 'canary_module'"),
    "method": ({"method": "canary_module:method"}, "import 'canary_module' for the method"),
    "task": (
        {"env": "gym:CartPole-v1", "overrides": {"env.task": "canary_module:make"}},
        "set env.task to 'canary_module:make'",
    ),
    "source": (
        {"env": "gym:CartPole-v1", "overrides": {"env.source": "canary_module:make"}},
        "set env.source to 'canary_module:make'",
    ),
    "images": (
        {"env": "mc-ls-small", "overrides": {"env.images": "/tmp/pictures"}},
        "set env.images to '/tmp/pictures'",
    ),
    "escapes": ({"env": "gym:\x1b[31m\nx:y"}, r"import '\x1b[31m\nx' and call"),
}


@pytest.mark.parametrize("route", [r for r in ROUTES if r != "escapes"])
def test_a_run_folder_runs_nothing_that_it_names(route, canary, tmp_path):
    changes, named = ROUTES[route]
    folder = hostile_folder(tmp_path / "run", changes)
    with pytest.raises(RunError) as error:
        splagger.load(folder)
    assert named in str(error.value) and "pass trust=True (--trust" in str(error.value)
    assert str(error.value).isprintable() and not canary.exists()


def test_names_with_control_characters_are_refused(tmp_path):
    for name in ("gym:\x1b[31mx", "two\nlines", "\ud800"):
        folder = hostile_folder(tmp_path / str(ord(name[0])), {"env": name})
        with pytest.raises(RunError, match="it lacks 'arguments' with env and method"):
            splagger.curves(folder)


@pytest.mark.parametrize("route", [r for r in ROUTES if r != "method"])
def test_an_agent_file_acts_without_its_environment_and_runs_nothing(
    route, canary, exported, tmp_path
):
    changes, named = ROUTES[route]
    player = splagger.load(hostile_file(tmp_path / "agent.npz", exported, changes))
    assert actions_of(player) == actions_of(splagger.load(AGENT))
    for use in (
        lambda: splagger.evaluate(player, 2),
        lambda: splagger.watch(player, tmp_path / "agent.gif"),
        lambda: splagger.analysis.analyze("memory", player, tmp_path / "analysis"),
    ):
        with pytest.raises(RunError, match="needs the agent's environment, but") as error:
            use()
        assert named in str(error.value)
    with pytest.raises(SettingError, match="a player without a run cannot be saved"):
        splagger.save_agent(player, tmp_path / "again.npz")
    with pytest.raises(RunError, match="it would"):
        splagger.load(old_file(tmp_path / "old.npz", exported, changes))
    assert not canary.exists()


def test_the_method_of_an_agent_file_is_rebuilt_instead_of_imported(canary, exported, tmp_path):
    changes, named = ROUTES["method"]
    player = splagger.load(hostile_file(tmp_path / "agent.npz", exported, changes))
    assert player.run is not None and player.run.arguments()["method"] == changes["method"]
    assert actions_of(player) == actions_of(splagger.load(AGENT))
    plan = exported[0]["run"]
    method = {**plan["method"], "aggregator": {"kind": "Custom", "code": "0123456789"}}
    path = hostile_file(tmp_path / "other.npz", exported, changes, run={**plan, "method": method})
    with pytest.raises(RunError, match=named):
        splagger.load(path)
    assert not canary.exists()


READERS = (
    "evaluate {run} --tasks 2",
    "evaluate {run} --tasks 2 --every-seed",
    "watch {run} -o {out}.gif",
    "export {run} -o {out}.npz",
    "inspect {run} -o {out}.html",
    "analyse memory --run {run} --out {out}",
    "analyse all --every-seed --run {run} --out {out}",
)


@pytest.mark.parametrize("kind", [hostile_folder, old_file])
@pytest.mark.parametrize("command", READERS)
def test_commands_that_need_an_agent_refuse_in_one_line(
    command, kind, canary, exported, tmp_path, capsys
):
    made = (tmp_path / "run", ROUTES["function"][0])
    run = kind(*made) if kind is hostile_folder else kind(tmp_path / "a.npz", exported, made[1])
    line = refused(command.format(run=run, out=tmp_path / "out"), capsys)
    assert ROUTES["function"][1] in line and not canary.exists()


def test_commands_that_only_read_results_run_nothing(canary, tmp_path, capsys):
    run = hostile_folder(tmp_path / "runs" / "run", ROUTES["function"][0])
    for command in (f"plot {run} -o {tmp_path}/x.png", f"compare {run}"):
        main(command.split())
    (tmp_path / "analyses").mkdir()
    analyses = f"--analyses {tmp_path}/analyses"
    main(f"figure memory/t-ls --runs {tmp_path}/runs {analyses} --out {tmp_path}/figures".split())
    main(f"reproduce memory/t-ls --plan --out {tmp_path}/runs {analyses}".split())
    assert len(splagger.curves(run))
    capsys.readouterr()
    assert not canary.exists()


def test_training_in_a_hostile_folder_runs_nothing(canary, tmp_path):
    """The folder has the digest of an honest run, and its record names something else."""
    path = tmp_path / FOLDER.relative_to(RUN)
    path.parent.mkdir(parents=True)
    hostile_folder(path, ROUTES["function"][0] | {"method": "canary_module:method"})
    splagger.train(
        "t-ls-small", "splagger", [1e-2], 2, 640, out=tmp_path, settings=SMALL, show=False
    )
    assert not canary.exists()


def test_trust_runs_what_the_file_names(canary, exported, tmp_path, capsys):
    changes = ROUTES["function"][0]
    folder = hostile_folder(tmp_path / "run", changes)
    with pytest.raises(RunError, match=r"make must return a gymnasium\.Env, got NoneType"):
        splagger.load(folder, trust=True)
    assert canary.read_text() == "called"
    line = refused(f"evaluate {folder} --trust", capsys)
    assert "must return a gymnasium.Env, got NoneType" in line


def test_an_environment_of_the_caller_does_not_take_code_from_the_file(canary, tmp_path):
    def load(env, **overrides):
        changes = {"env": "gym:CartPole-v1", "overrides": {"env.max_steps": 9, **overrides}}
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return splagger.load(hostile_folder(tmp_path / "run", changes), env=env)

    for env in ("gym:CartPole-v1", from_gymnasium("CartPole-v1")):
        for name in ("env.task", "env.source"):
            with pytest.raises(RunError, match=f"set {name} to 'canary_module:make'"):
                load(env, **{name: "canary_module:make"})
        with pytest.raises(RunError, match=r"set env\.kwargs to"):
            load(env, **{"env.kwargs": KWARGS})
    same = from_gymnasium("CartPole-v1", task="tests.bridges.gym_probes:draw_task", max_steps=9)
    with pytest.raises(RunError, match="was made with other definitions of 'gym:CartPole-v1'"):
        load(same, **{"env.task": "tests.bridges.gym_probes:draw_task"})  # the task is the caller's
    assert not canary.exists()


@pytest.fixture(scope="module")
def gym_player():
    """An untrained agent of an environment that observes a dictionary and acts in a box."""
    env = from_gymnasium(gym_probes.Everything, max_steps=4, episodes=2)
    run = Run.create(env, "rnn", rates=[1e-3], seeds=1, overrides=SIZES)
    example = lambda: build(jr.key(0), run.method, run.config.interface, run.row.network)  # noqa: E731
    random = np.random.default_rng(0)
    draw = lambda leaf: jnp.asarray(random.normal(size=leaf.shape), leaf.dtype)  # noqa: E731
    agent = jax.tree.map(draw, jax.eval_shape(example))
    return splagger.Player(agent, agent.normalizers(), env, run.points[0], run=run)


def test_an_exported_gymnasium_agent_acts_as_before(gym_player, tmp_path, monkeypatch):
    path = tmp_path / "agent.npz"
    splagger.save_agent(gym_player, path)
    monkeypatch.setattr(GymEnv, "make", lambda self: pytest.fail("the environment was created"))
    layout.cache_clear()
    player = splagger.load(path)
    monkeypatch.undo()
    assert isinstance(player.env, SavedInterface)
    assert (player.env.space, player.env.horizon) == (splagger.Continuous(2), 8)
    obs = gym_probes.Everything().observe()
    for done in (False, True):
        np.testing.assert_array_equal(
            player.env.flatten(obs, done), gym_player.env.flatten(obs, done)
        )
    flat = player.env.flatten(obs)
    for _ in range(3):
        ours, theirs = player.act(flat), gym_player.act(flat)
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(player.env.action(ours), gym_player.env.action(theirs))
        assert gym_probes.Everything().action_space.contains(player.env.action(ours))
        for one in (player, gym_player):
            one.observe(ours, 1.0, flat)
    with pytest.raises(SettingError, match="does not fit its space"):
        player.env.flatten({"box": 3})
    trusted = splagger.load(path, trust=True)
    assert trusted.run is not None and trusted.run.digest == gym_player.run.digest
    assert trusted.env == gym_player.env
    assert splagger.load(path, env=gym_player.env).env == gym_player.env


def test_an_agent_of_an_unregistered_environment_acts_too(exported, tmp_path):
    player = splagger.load(hostile_file(tmp_path / "a.npz", exported, {"env": "script"}))
    assert actions_of(player) == actions_of(splagger.load(AGENT))
    with pytest.raises(RunError, match="the environment 'script', which is not known here; pass"):
        splagger.evaluate(player, 2)


def test_every_method_is_rebuilt_from_its_description():
    for method in METHODS.values():
        assert rebuild(json.loads(json.dumps(plain(method))), Method) == method


class Custom(Max):
    """An aggregator that this package does not have."""


WRONG = (None, [], {}, {"kind": "Method"}, {"kind": ["Method"]}, {"kind": "Network"})
WRONG += ({"width": "9"}, {"width": True}, {"aggregator": 3}, {"code": "x"}, {"more": 1})
WRONG += ({"aggregator": {"kind": "AbstractAggregator"}}, {"aggregator": {"kind": "Method"}})
WRONG += ({"aggregator": plain(Custom())}, {"latent": plain(Max())}, {"skip": 7})


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_nothing_else_is_rebuilt(change):
    whole = not isinstance(change, dict) or "kind" in change or not change
    described = change if whole else {**plain(METHODS["splagger"]), **change}
    with pytest.raises(ValueError, match=r"describes no Method|skip must"):
        rebuild(described, Method)


# Fields of the description, and values of other types and sizes.
VALUES = (None, True, -1, 10**12, 10**400, np.nan, "x", [[]], {})
FIELDS = ("arguments", "run", "point", "interface", "arguments.seeds", "arguments.frames")
FIELDS += ("arguments.episodes", "arguments.overrides", "run.method", "point.rate", "point.seed")
FIELDS += ("interface.obs_size", "interface.space", "interface.horizon", "interface.observations")


@pytest.mark.parametrize("field", FIELDS)
def test_wrong_fields_are_refused_in_one_line(field, exported, tmp_path):
    group, _, name = field.partition(".")
    envs = itertools.cycle(("t-ls-small", "gym:CartPole-v1"))
    for env, value in zip(envs, VALUES, strict=False):
        about = json.loads(json.dumps(exported[0]))
        about["arguments"]["env"] = env
        if name:
            about[group][name] = value
        else:
            about[group] = value
        agent_file.write_agent(tmp_path / "a.npz", about, exported[1])
        assert in_one_line(lambda: splagger.load(tmp_path / "a.npz"))


def in_one_line(function) -> bool:
    """Returns whether a function succeeds, or raises a user error with one short line."""
    try:
        function()
    except UserError as error:
        return str(error).isprintable() and len(str(error)) < 1000
    return True


def test_a_grid_that_is_too_large_is_refused_at_once(exported, tmp_path):
    axes = {"rates": list(range(1, 2000)), "seeds": list(range(2000))}
    with pytest.raises(RunError, match="it has 3,998,000 members"):
        splagger.load(hostile_file(tmp_path / "a.npz", exported, axes))
    with pytest.raises(RunError, match="it has 1,000,000,000 members"):
        splagger.load(hostile_folder(tmp_path / "run", {"seeds": 10**9}))


def refused(command: str, capsys) -> str:
    """Returns the one line that is printed for a mistake."""
    with pytest.raises(SystemExit) as end:
        main(command.split())
    seen = capsys.readouterr()
    assert end.value.code == 2 and seen.out == ""
    assert seen.err.startswith("splagger: ") and len(seen.err.splitlines()) == 1
    return seen.err
