"""Modules, factories and environments that do not work: one line before any training."""

import sys

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

import splagger
from splagger.bridges import from_gymnasium, resolve, unwrapped_errors
from splagger.bridges.importing import import_object
from splagger.cli import main
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import EnvError, SettingError
from tests.bridges import foreign_envs

MODULES = {
    "bad_syntax": "def broken(:\n    pass\n",
    "bad_import": "import no_such_package_at_all\n",
    "bad_start": "raise RuntimeError('first line\\nsecond line')\n",
    "bad_exit": "import sys\nsys.exit(3)\n",
    "factories": """
import sys
import gymnasium

def raises(): raise ValueError("too small")
def needs(size): return size
def exits(): sys.exit("bye")
def nothing(): return None
class Closed:
    def __getattr__(self, name): raise RuntimeError(name)
closed = Closed()
class Typo:
    arms = 5
    @property
    def spec(self): return self.arm
    def sample_task(self, key): return ()
    reset = step = sample_task
class NoSpaces(gymnasium.Env): pass
class BadSpace(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    @property
    def observation_space(self): raise KeyError("size")
class WrongSpace(NoSpaces):
    observation_space = (3,)
class OldStyle:
    def reset(self): return 0
    def step(self, action): return 0, 0.0, True, {}
""",
}
PLACES = {
    "bad_syntax:x": r"cannot be imported \(SyntaxError: invalid syntax \(bad_syntax\.py, line 1\)\)",
    "bad_import:x": r"cannot be imported \(ModuleNotFoundError: No module named 'no_such.*bad_import\.py:1\)\)",
    "bad_start:x": r"cannot be imported \(RuntimeError: first line \(.*bad_start\.py:1\)\)",
    "bad_exit:x": r"cannot be imported \(SystemExit: 3 \(.*bad_exit\.py:2\)\)",
    "factories:x": r"cannot be found \(module 'factories' has no attribute 'x'\)",
    "factories.inner:x": r"cannot be (found|imported) \(.*No module named 'factories\.inner'",
    "no_such_module:x": r"cannot be found \(No module named 'no_such_module'\)",
}
JAX = {
    "raises": r"cannot be created \(ValueError: too small \(.*factories\.py:5\)\)",
    "needs": r"cannot be created \(TypeError: needs\(\) missing 1 required .*without arguments",
    "exits": r"cannot be created \(SystemExit: bye ",
    "nothing": r"jax:factories:nothing: None is not an environment",
    "Typo": r"its spec raised AttributeError: 'Typo' object has no attribute 'arm' \(.*factories\.py",
    "closed": r"its spec raised RuntimeError: ",
    "OldStyle": r"is not an environment",
}
GYM = {
    "raises": r"cannot be created \(ValueError: too small \(.*factories\.py:5\)\)",
    "needs": r"cannot be created \(TypeError: needs\(\) missing 1 required positional argument",
    "exits": r"cannot be created \(SystemExit: bye ",
    "nothing": r"must return a gymnasium\.Env, got NoneType",
    "OldStyle": r"must return a gymnasium\.Env, got OldStyle",
    "NoSpaces": r"observation_space raised AttributeError",
    "BadSpace": r"observation_space raised KeyError: 'size' \(.*factories\.py:",
    "WrongSpace": r"observation_space must be a Gymnasium space, got \(3,\)",
}
REFUSED = {f"{kind}:{place}": line for kind in ("jax", "gym") for place, line in PLACES.items()}
REFUSED |= {f"jax:factories:{name}": line for name, line in JAX.items()}
REFUSED |= {f"gym:factories:{name}": line for name, line in GYM.items()}
REFUSED["gym:bad_syntax:Env-v0"] = r"cannot be created \(SyntaxError: invalid syntax"


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def line_of(capsys, *args) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(args))
    seen = capsys.readouterr()
    assert end.value.code == 2 and seen.out == ""
    assert seen.err.startswith("splagger: ") and len(seen.err.splitlines()) == 1
    return seen.err


@pytest.mark.parametrize("name", REFUSED)
def test_environments_that_cannot_be_created_are_one_line(name, tmp_path, capsys):
    line = line_of(capsys, "train", name, "rnn", "--out", str(tmp_path / "runs"))
    with pytest.raises(SettingError, match=REFUSED[name]):
        splagger.train(name, "rnn")
    assert name.partition(":")[2].partition(":")[0] in line and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("place", PLACES)
def test_methods_that_cannot_be_imported_are_one_line(place, tmp_path, capsys):
    line = line_of(capsys, "train", "t-ls-small", place, "--out", str(tmp_path / "runs"))
    assert f"method {place} cannot be" in line and not (tmp_path / "runs").exists()
    with pytest.raises(SettingError, match=PLACES[place]):
        import_object(place, "it")


def test_a_place_that_is_not_a_method_is_one_line(capsys):
    line = line_of(capsys, "train", "t-ls-small", "factories:raises")
    assert "factories:raises must be a splagger.Method, got function" in line


class Exits(eqx.Module):
    """A JAX environment that ends the program."""

    spec_is: object = eqx.field(static=True, default=EnvSpec("exits", 1, splagger.Discrete(2), 3))

    @property
    def spec(self):
        return self.spec_is

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return jnp.zeros(()), jnp.zeros(1)

    def step(self, key, task, state, action):
        sys.exit(1)
        return state, Step(jnp.zeros(1), jnp.float32(0), jnp.bool_(True), jnp.bool_(False))


def test_an_environment_that_exits_is_an_error_of_the_environment():
    from tests.bridges import gym_probes

    with pytest.raises(EnvError, match=r"exits: step\(\) raised SystemExit: 1"):
        splagger.train(Exits(), "rnn")
    env = from_gymnasium(gym_probes.Leaves, max_steps=4)
    state = jax.jit(env.reset)(jr.key(0))
    with (
        pytest.raises(EnvError, match=r"Leaves: step\(\) raised SystemExit: 1 .* at step 1"),
        unwrapped_errors(),
    ):
        jax.block_until_ready(jax.jit(env.step)(jr.key(0), state, jnp.int32(0)))


SPECS = [
    ({"obs_size": 1}, "spec must be a splagger.envs.EnvSpec"),
    (EnvSpec("bad", "1", splagger.Discrete(2), 3), "spec.obs_size must be a positive integer"),  # pyright: ignore[reportArgumentType]
    (EnvSpec("bad", 1, splagger.Discrete(2), 0), "spec.horizon must be a positive integer, got 0"),
    (
        EnvSpec("bad", 1, 2, 3),
        "spec.space must be splagger.Discrete, MultiDiscrete or Continuous, got 2",
    ),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize("spec, message", SPECS, ids=str)
def test_a_spec_with_wrong_sizes_is_refused(spec, message):
    with pytest.raises(SettingError, match=message):
        splagger.train(Exits(spec), "rnn")


class Ordinary(gymnasium.Env):
    """An environment of Gymnasium with a method of our protocol, as docs/bring-your-own.md recommends."""

    def sample_task(self, generator):
        return 0


@pytest.mark.parametrize("given", [Ordinary, Ordinary()])
def test_environments_of_gymnasium_are_named_with_the_way_in(given):
    with pytest.raises(
        SettingError,
        match=r"Ordinary is a Gymnasium environment: pass splagger\.from_gymnasium\(Ord",
    ):
        resolve(given)


def test_a_function_is_an_environment_of_gymnasium_that_it_makes():
    row = resolve(foreign_envs.make_stack)
    assert row.meta == from_gymnasium(foreign_envs.make_stack)
    assert resolve("gym:CartPole-v1").meta == from_gymnasium("gym:CartPole-v1")


def test_an_unknown_environment_may_be_one_of_gymnasium():
    with pytest.raises(
        SettingError,
        match=r"no environment 'CartPole-v1'.*; environments of Gymnasium are written gym:CartPole-v1",
    ):
        resolve("CartPole-v1")
    with pytest.raises(SettingError, match="environments of Gymnasium are written gym:ID"):
        resolve("CartPolo-v1")


def test_environments_that_were_made_already_are_refused_with_what_makes_them():
    with pytest.raises(SettingError, match=r"pass splagger.from_gymnasium\('CartPole-v1'\), or a"):
        resolve(gymnasium.make("CartPole-v1"))
    made = gymnasium.make("CartPole-v1").unwrapped
    made.spec = None
    with pytest.raises(SettingError, match=r"pass splagger.from_gymnasium\(CartPoleEnv\), or a"):
        resolve(made)
    with pytest.raises(SettingError, match=r"make_env must be .*; got an object of CartPoleEnv"):
        from_gymnasium(made)
