"""gymnax environments in our meta-episodes: the last observation of an episode is kept."""

import dataclasses
import functools as ft
import json
import operator
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.bridges import GymnaxEnv, from_gymnax
from splagger.bridges.by_value import ByValue
from splagger.bridges.importing import label_of
from splagger.envs import Env, EnvSpec, MetaEnv
from splagger.errors import SettingError
from splagger.identity import agrees, digest_of, plain
from splagger.identity.describe import NEWER_PARTS
from splagger.runs.run import Run
from splagger.spaces import Continuous, Discrete


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Params:
    speed: float = 2.0
    max_steps_in_episode: int = 3


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    position: float
    time: int


class Runner:
    """A runner whose episode ends beyond position 4. As in gymnax before 1.0, `done` includes the time limit."""

    name, default_params = "Runner-v0", Params()

    def observation_space(self, params):
        return SimpleNamespace(shape=(1, 2))

    def action_space(self, params):
        return SimpleNamespace(n=2)

    def reset_env(self, key, params):
        return self.see(State(0.0, 0)), State(0.0, 0)

    def step_env(self, key, state, action, params):
        state = State(state.position + params.speed * action, state.time + 1)
        return self.see(state), state, state.position, self.over(state, params), {}

    def over(self, state, params):
        return (state.position > 4) | (state.time >= params.max_steps_in_episode)

    def see(self, state):
        return jnp.array([[state.position, state.time]], jnp.float32)

    def step(self, *_):
        raise AssertionError("step() resets automatically")

    reset = step


class Newer(Runner):
    """As in gymnax since 1.0: `is_truncated` reports the time limit."""

    def over(self, state, params):
        return state.position > 4

    def is_truncated(self, state, params):
        return state.time >= params.max_steps_in_episode


class Thrower(Runner):
    """A runner with actions from 0 to 10 that observes one of three regions."""

    def action_space(self, params):
        return SimpleNamespace(low=0.0, high=10.0, shape=())

    def observation_space(self, params):
        return SimpleNamespace(n=3)

    def see(self, state):
        return jnp.int32(state.position > 4)


def play(env, actions):
    state, outs = env.reset(jr.key(0)), []
    step = jax.jit(env.step)
    for t, action in enumerate(actions):
        state, out = step(jr.key(t), state, jnp.asarray(action))
        outs.append(jax.device_get((state.obs, out)))
    return outs


def test_parameters_may_be_arrays():
    """They are part of the compiled program, so environments are equal where all of their values are."""
    one, same, other = (
        from_gymnax(Runner(), Params(speed=jnp.array(speed))) for speed in (2.0, 2.0, 3.0)
    )
    assert hash(one) != hash(other) and one.parameters != other.parameters
    assert hash(one.parameters) == hash(same.parameters) and one.parameters == same.parameters
    assert play(MetaEnv(one, 2), [1])[0][1].next_obs.tolist() == [2, 1, 0]


def test_what_the_name_does_not_say_is_part_of_the_description():
    """Constructor arguments, wrappers and lambdas."""

    class Named(Runner):
        def __init__(self, bits=1):
            self.bits = bits

    def describe(env, task=None):
        return plain(from_gymnax(env, task=task))

    Named.__module__ = "gymnax.environments"
    assert describe(Named()) == describe(Named(1))
    assert "environment" not in describe(Named())  # as in runs of earlier versions
    assert describe(Named(2))["environment"]["attributes"]["bits"] == 2
    power = 2
    tasks = [lambda key, params: params, lambda key, params: (params, power), ft.partial(max)]
    found = [describe(Named()), describe(Named(2)), describe(Runner()), describe(Newer())]
    found += [describe(Named(), task) for task in tasks]
    power = 3
    found += [describe(Named(), tasks[1])]
    assert len({digest_of(one) for one in found}) == len(found)


class Holding(Runner):
    """A runner with an attribute."""

    def __init__(self, held):
        self.held = held


class Slots:
    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size

    def sample(self, key, params):
        return params


PAIRS = (
    ({1, 2}, {3}),
    (range(2), range(5)),
    (b"1", b"2"),
    (slice(1), slice(2)),
    (operator.add, operator.mul),
    (np.add, np.multiply),
    (Slots(1), Slots(2)),
    (Slots(1).sample, Slots(2).sample),
    (np.array([None, 1], object), np.array([None, 2], object)),
    (jr.key(0), jr.key(1)),
    (np, jnp),
    (3 + 1j, 3 + 2j),
)


@pytest.mark.parametrize("one, other", PAIRS, ids=lambda value: type(value).__name__)
def test_every_attribute_is_part_of_the_description(one, other):
    found = [digest_of(plain(from_gymnax(Holding(held)))) for held in (one, other, one)]
    assert found[0] == found[2] != found[1]


def test_the_object_of_a_task_is_part_of_the_description():
    tasks = Slots(1).sample, Slots(2).sample, Slots(1).sample
    found = [digest_of(plain(from_gymnax(Runner(), task=task))) for task in tasks]
    assert found[0] == found[2] != found[1]


def test_a_task_of_a_script_or_notebook_is_described_by_its_code():
    def named(body):
        space = {"__name__": "__main__"}
        exec(f"def task(key, params):\n    return {body}", space)
        return plain(from_gymnax(Runner(), task=space["task"]))

    assert digest_of(named("params")) == digest_of(named("params")) != digest_of(named("key"))
    of_a_module = plain(from_gymnax(Runner(), task=sampled_by_name))
    assert "task_code" not in of_a_module  # as in runs of earlier versions


def sampled_by_name(key, params):
    return params


def test_variables_around_a_task_may_be_modules_or_have_no_value():
    def make():
        def task(key, params):
            return jnp.asarray(later), jr.key(0)

        module = jax
        found = plain(from_gymnax(Runner(), task=lambda key, params: module.numpy.sin(task)))
        later = 3
        return found, later

    assert json.dumps(make())


def test_what_an_environment_computes_and_keeps_is_not_described():
    class Lazy(Runner):
        @ft.cached_property
        def table(self):
            return np.arange(3)

    env = Lazy()
    before = plain(from_gymnax(env))
    assert env.table.size == 3 and plain(from_gymnax(env)) == before


def test_long_arrays_among_the_parameters_are_described_by_a_digest():
    tables = [np.where(np.arange(2000) == 1000, value, 0.0) for value in (1, 2)]
    found = [plain(from_gymnax(Runner(), Params(speed=table))) for table in tables]
    assert digest_of(found[0]) != digest_of(found[1]) and found[0]["params"] == found[1]["params"]
    equal = plain(from_gymnax(Runner(), Params(speed=tables[0].copy())))
    assert digest_of(equal) == digest_of(found[0])
    older = {k: v for k, v in found[0].items() if k not in NEWER_PARTS}
    assert agrees({"environment": found[0]}, {"environment": older})


def test_a_record_from_before_bridges_described_objects_agrees():
    found = {"environment": plain(from_gymnax(Runner(), task=lambda key, params: params))}
    older = {k: v for k, v in found["environment"].items() if k not in NEWER_PARTS}
    assert len(older) + 2 == len(found["environment"])
    assert agrees(found, found) and agrees(found, {"environment": older})
    assert not agrees(found, {"environment": older | {"environment": "another"}})
    assert not agrees(found, {"environment": older | {"name": "another"}})


@pytest.mark.parametrize("kind", [Runner, Newer])
def test_last_observations_are_kept_and_time_limits_truncate(kind):
    adapted = from_gymnax(kind())
    assert isinstance(adapted, Env)
    assert adapted.spec == EnvSpec("gymnax:Runner-v0", 2, Discrete(2), 3)
    env = MetaEnv(adapted, episodes=2)
    outs = play(env, [0, 1, 0, 1, 1, 1])
    observed = [out.next_obs.tolist() for _, out in outs]
    assert observed == [[0, 1, 0], [2, 2, 0], [2, 3, 1], [2, 1, 0], [4, 2, 0], [6, 3, 1]]
    # The last step ends the task and reaches the limit; only newer releases distinguish the two.
    ended = kind is Newer
    assert [bool(out.truncated) for _, out in outs] == [False, False, True, False, False, not ended]
    assert [bool(out.terminated) for _, out in outs] == [False] * 5 + [ended]
    assert [bool(out.task_done) for _, out in outs] == [False] * 5 + [True]
    assert [obs.tolist() for obs, _ in outs][2] == [0, 0, 1]
    fast = MetaEnv(from_gymnax(kind(), Params(speed=5.0)), episodes=2)
    _, out = play(fast, [1])[0]
    assert out.terminated and not out.truncated and out.next_obs.tolist() == [5, 1, 1]


def test_parameters_are_the_task():
    def sample(key, params):
        return dataclasses.replace(params, speed=jr.uniform(key))

    env = MetaEnv(from_gymnax(Newer(), task=sample), episodes=2)
    outs = play(env, [1] * 12)
    speeds = np.array([out.next_obs[0] for _, out in outs[::3]])
    assert speeds[0] == speeds[1] != speeds[2] == speeds[3]


def test_continuous_actions_are_scaled_and_discrete_observations_are_one_hot():
    env = from_gymnax(Thrower())
    assert env.spec.space == Continuous(1) and env.spec.obs_size == 3
    task = env.sample_task(jr.key(0))
    state, obs = env.reset(jr.key(0), task)
    _, out = env.step(jr.key(0), task, state, jnp.array([0.0]))
    assert (out.reward, out.obs.tolist(), obs.tolist()) == (10.0, [0, 1, 0], [1, 0, 0])


class Wrapper:
    """Passes everything on to an environment inside it, as gymnax's wrappers do."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class ByStep(Wrapper):
    def step(self, key, state, action, params):
        obs, state, reward, *rest = self.inner.step(key, state, action, params)
        return obs, state, 100 * reward, *rest


class ByReset(Runner):
    def reset(self, key, params):
        return self.reset_env(key, params)


class ByStepEnv(Wrapper):
    """Its steps are played: it has a `step_env` of its own."""

    def step_env(self, key, state, action, params):
        obs, state, reward, *rest = self.inner.step_env(key, state, action, params)
        return obs, state, 100 * reward, *rest


@pytest.mark.parametrize("env", [ByStep(Runner()), ByReset()])
def test_what_changes_only_steps_that_reset_automatically_is_refused(env):
    """It would be played as if it changed nothing."""
    message = rf"{type(env).__name__} changes the step .*: override step_env and reset_env in a sub"
    with pytest.raises(SettingError, match=message):
        from_gymnax(env)


@pytest.mark.parametrize(
    "given, shown", [("Runner-v0", "'Runner-v0'"), ((Runner(), Params()), "…"), (Runner, "…")]
)
def test_what_is_no_environment_is_refused_with_what_makes_one(given, shown):
    with pytest.raises(SettingError, match=rf"write from_gymnax\(\*gymnax\.make\({shown}"):
        from_gymnax(given)


def test_a_wrapper_with_steps_of_its_own_is_played():
    _, out = play(MetaEnv(from_gymnax(ByStepEnv(Runner())), 1), [1])[0]
    assert out.reward == 200


def test_an_environment_without_a_time_limit_is_refused():
    with pytest.raises(ValueError, match="Runner-v0: params must have max_steps_in_episode"):
        _ = from_gymnax(Runner(), params=SimpleNamespace(speed=1.0)).spec


def test_subclasses_of_bridges_and_meta_environments_are_other_experiments():
    class Shaped(GymnaxEnv):
        def step(self, key, task, state, action):
            state, step = super().step(key, task, state, action)
            return state, step._replace(reward=step.reward * 100)

    class Doubled(MetaEnv):
        def advance(self, noise, state, action):
            new, step = super().advance(noise, state, action)
            return new, step._replace(reward=step.reward * 100)

    inner, params = Runner(), ByValue(Params())
    envs = MetaEnv(GymnaxEnv(inner, params), 1), MetaEnv(Shaped(inner, params), 1)
    envs += (Doubled(GymnaxEnv(inner, params), 1),)
    runs = [Run.create(env, "rnn", rates=1e-3, seeds=1) for env in envs]
    assert len({run.digest for run in runs}) == 3
    assert "meta" not in runs[0].describe() and runs[2].describe()["meta"]["kind"] == "Doubled"


@pytest.mark.parametrize("name", ["Factory.make", "wrapped"])
def test_a_function_of_a_script_needs_a_name_that_leads_to_it(monkeypatch, name):
    """A method of an object, or a decorated function, has the name of another one."""

    def make():
        return Runner()

    class Factory:
        def make(self):
            return Runner()

    Factory.make.__qualname__, Factory.make.__module__ = "Factory.make", "__main__"
    make.__qualname__, make.__module__ = "make", "__main__"
    wrapped = ft.wraps(make)(lambda: Runner())
    script = SimpleNamespace(make=make, Factory=Factory, __file__="/here/script.py")
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert label_of("make_env", make) == "script:make"
    with pytest.raises(SettingError, match="has no name that distinguishes its runs"):
        label_of("make_env", {"Factory.make": Factory().make, "wrapped": wrapped}[name])


def test_objects_that_are_nested_too_deeply_are_refused():
    node = None
    for _ in range(5000):
        node = SimpleNamespace(next=node)
    with pytest.raises(SettingError, match="an object in GymnaxEnv cannot be described"):
        Run.create(from_gymnax(Holding(node)), "rnn")


def test_class_methods_and_functions_that_are_defined_again_have_names(monkeypatch):
    class Factory:
        @classmethod
        def create(cls):
            return Runner()

    def make():
        return Runner()

    def make_again():
        return Runner()

    Factory.create.__func__.__qualname__ = "Factory.create"
    Factory.create.__func__.__module__ = make.__module__ = "__main__"
    make.__qualname__ = make_again.__qualname__ = "make"
    script = SimpleNamespace(make=make_again, Factory=Factory, __file__="/here/script.py")
    monkeypatch.setitem(sys.modules, "__main__", script)
    assert label_of("make_env", Factory.create) == "script:Factory.create"
    assert label_of("make_env", make) == "script:make"


def test_a_wrapper_that_changes_nothing_is_played():
    class Through:
        def __init__(self, env):
            self._env = env

        def __getattr__(self, name):
            return getattr(self._env, name)

    env = MetaEnv(from_gymnax(Through(Runner()), Params()), 2)
    assert play(env, [1])[0][1].next_obs.tolist() == [2, 1, 0]


def test_names_that_end_like_sets_are_described_by_their_text():
    class Offset(Params):
        pass

    jax.tree_util.register_dataclass(Offset, ["speed", "max_steps_in_episode"], [])
    assert isinstance(plain(from_gymnax(Runner(), Offset()))["params"], str)
