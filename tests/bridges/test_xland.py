"""XLand-MiniGrid's environments in our meta-episodes: the ruleset is the task, cells are codes.

Most tests use an environment with the same methods; the last ones use the package, if it is installed.
"""

import dataclasses
import functools as ft
import json

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger.bridges import from_xland
from splagger.envs import Env, MetaEnv
from splagger.errors import SettingError
from splagger.identity import digest_of, plain
from splagger.images import Image
from splagger.spaces import Discrete


def pytree(cls):
    """A frozen dataclass with `replace`, as the package's own."""
    cls.replace = dataclasses.replace
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


@pytree
class Params:
    ruleset: int = 0
    max_steps: int = 4


@pytree
class Timestep:
    state: jax.Array
    time: jax.Array
    step_type: jax.Array
    reward: jax.Array
    discount: jax.Array
    observation: dict

    def last(self):
        return self.step_type == 2


class Guess:
    """A room whose goal is one of five actions. An episode ends with the right one, or after four steps."""

    def num_actions(self, params):
        return 5

    def reset(self, params, key):
        return self.timestep(params, jr.randint(key, (), 0, 100), 0, False)

    def step(self, params, timestep, action):
        found = action == params.ruleset
        return self.timestep(params, timestep.state, timestep.time + 1, found)

    def timestep(self, params, state, time, found):
        over = found | (time >= params.max_steps)
        cells = jnp.full((3, 3, 2), time, jnp.uint8)
        return Timestep(
            state=state,
            time=jnp.asarray(time),
            step_type=jnp.where(over, 2, 1),
            reward=jnp.where(found, 1.0, 0.0),
            discount=jnp.where(found, 0.0, 1.0),
            # "direction" precedes "img" in the order of a dictionary's leaves
            observation={"direction": jnp.array([7.0, 8.0]), "img": cells},
        )


@pytree
class Rulesets:
    goals: jax.Array

    def num_rulesets(self):
        return len(self.goals)

    def sample_ruleset(self, key):
        return jr.choice(key, self.goals)


def rulesets(*goals):
    return Rulesets(jnp.array(goals))


def test_it_follows_the_protocol():
    env = from_xland(Guess(), Params(), rulesets(1, 3), "guess")
    assert isinstance(env, Env)
    spec = env.spec
    assert (spec.name, spec.obs_size, spec.space, spec.horizon) == ("guess", 20, Discrete(5), 4)
    assert spec.images == (Image(3, 3, 2, codes=13),)


def test_images_come_first_in_observations():
    _, obs = from_xland(Guess(), Params()).reset(jr.key(0), ())
    np.testing.assert_array_equal(obs, [0.0] * 18 + [7.0, 8.0])


def play(env, actions, key):
    """Steps with their tasks, for fixed actions."""
    state, found = env.reset(key), []
    for index, action in enumerate(actions):
        task = state.task
        state, step = env.step(jr.fold_in(key, index), state, jnp.int32(action))
        found.append((int(task), step))
    return found


def test_a_task_is_a_ruleset_and_a_time_limit_is_no_end():
    env = MetaEnv(from_xland(Guess(), Params(), rulesets(3)), episodes=2)
    steps = [step for _, step in play(env, [0, 3, 1, 1, 1, 1, 3], jr.key(0))]
    assert [float(s.reward) for s in steps] == [0, 1, 0, 0, 0, 0, 1]
    assert [bool(s.terminated) for s in steps] == [0, 1, 0, 0, 0, 0, 1]
    assert [bool(s.truncated) for s in steps] == [0, 0, 0, 0, 0, 1, 0]
    assert [bool(s.task_done) for s in steps] == [0, 0, 0, 0, 0, 1, 0]
    # The last observation of an episode is its own, not the first one of the next.
    assert [float(s.next_obs[0]) for s in steps] == [1, 2, 1, 2, 3, 4, 1]


def test_the_goal_is_found_at_the_last_step_of_an_episode():
    env = MetaEnv(from_xland(Guess(), Params(), rulesets(3)), episodes=1)
    step = play(env, [0, 0, 0, 3], jr.key(0))[-1][1]
    assert step.terminated and not step.truncated


def test_rulesets_change_between_tasks_and_not_within_one():
    env = MetaEnv(from_xland(Guess(), Params(), rulesets(*range(5))), episodes=3)
    steps = play(
        env, [9] * 240, jr.key(1)
    )  # an action that no ruleset rewards: tasks have 12 steps
    goals = [goal for goal, _ in steps]
    assert all(len(set(goals[start : start + 12])) == 1 for start in range(0, 240, 12))
    assert set(goals) == set(range(5))


def test_equal_content_means_an_equal_environment():
    inner = Guess()
    make = lambda params, *goals: from_xland(inner, params, rulesets(*goals))  # noqa: E731
    one = make(Params(), 1, 3)
    assert one == make(Params(), 1, 3) and hash(one) == hash(make(Params(), 1, 3))
    others = make(Params(), 1, 2), make(Params(max_steps=5), 1, 3), from_xland(inner, Params())
    for other in others:
        assert one != other and one.describe() != other.describe()
    assert one.describe() == make(Params(), 1, 3).describe()


class Scaled:
    """A wrapper that multiplies rewards, as those of the package are written."""

    def __init__(self, env, factor, weigh=None):
        self._env, self.factor, self.weigh = env, factor, weigh

    def num_actions(self, params):
        return self._env.num_actions(params)


class Other(Guess):
    pass


def test_wrappers_and_their_settings_are_part_of_the_description():
    """Otherwise a run with another wrapper would return the curves of the first one."""
    describe = lambda inner, *goal: plain(from_xland(inner, Params(*goal)))  # noqa: E731
    functions = [lambda reward, power=power: reward**power for power in (1, 2)]
    inners = (
        Guess(),
        Other(),
        Scaled(Guess(), 1),
        Scaled(Guess(), 2),
        Scaled(Other(), 2),
        Scaled(Scaled(Guess(), 2), 1),
        Scaled(Guess(), jnp.arange(5000)),
        Scaled(Guess(), jnp.arange(5000).at[2500].set(0)),
        *(Scaled(Guess(), 1, weigh) for weigh in functions),
        *(Scaled(Guess(), 1, ft.partial(functions[0], power=power)) for power in (1, 2)),
        Scaled(Guess(), 1, Guess),
        Scaled(Guess(), 1, {"of": [Other()]}),
    )
    found = [describe(inner) for inner in inners]
    assert len({digest_of(one) for one in found}) == len(found)
    assert describe(Scaled(Guess(), 2)) == found[3] and json.loads(json.dumps(found)) == found
    arrays = [jnp.arange(5000).at[2500].set(value) for value in (0, 1)]  # abbreviated as text
    assert len({describe(Guess(), goals)["arrays"] for goals in arrays}) == 2
    loop = Scaled(Guess(), 1)
    loop.weigh = loop
    assert describe(loop)["environment"]["attributes"]["weigh"] == "object 0"


def test_it_trains_and_plays_with_rulesets_that_it_was_not_trained_on(tmp_path):
    meta = lambda *goals: MetaEnv(from_xland(Guess(), Params(), rulesets(*goals)), episodes=2)  # noqa: E731
    env, test_env = meta(1, 3), meta(0, 2)
    small = splagger.SMALL | {"ppo.steps": 8, "ppo.eval_interval": 1, "ppo.eval_tasks": 2}
    grid = {"rates": [1e-3], "seeds": 1, "frames": 1, "out": tmp_path, "show": False}
    curves = splagger.train(env, "splagger", settings=small, **grid)
    assert np.isfinite(curves["return"]).all()
    agent = splagger.load(curves.attrs["folder"], env=env)
    assert agent.with_env(env=test_env).env == test_env != agent.env
    with pytest.raises(SettingError, match=r"env.rulesets cannot be changed; pass another env"):
        agent.with_env(rulesets=rulesets(0, 2))


@pytest.mark.parametrize("given, shown", [("trivial-1m", "'trivial-1m'"), (3, "…")])
def test_what_has_no_rulesets_is_refused_with_what_returns_some(given, shown):
    with pytest.raises(SettingError, match=rf"be like xminigrid\.load_benchmark\({shown}\), got "):
        from_xland(Guess(), Params(), given)


@pytree
class Ruleset:
    goal: tuple[int, ...]


def test_an_environment_without_a_goal_is_refused():
    with pytest.raises(SettingError, match=r"guess has no goal without rulesets: pass those of"):
        from_xland(Guess(), Params(Ruleset((0, 0))), name="guess")
    assert from_xland(Guess(), Params(Ruleset((0, 3)))).name == "xland"


def test_params_without_a_time_limit_are_refused():
    with pytest.raises(SettingError, match="must have max_steps"):
        _ = from_xland(Guess(), Params(max_steps=None)).spec


class TestThePackage:
    """The same with XLand-MiniGrid itself, which the tests of this project do not install."""

    @pytest.fixture(autouse=True)
    def _package(self):
        pytest.importorskip("xminigrid")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("XLand-MiniGrid-R1-9x9", "has no goal without rulesets: write .*trivial"),
            ("XLand-MiniGrid-R1-9x9/none", "'none' is neither a file nor one of trivial"),
            ("MiniGrid-MemoryS8/trivial-21k", "takes no rulesets"),
            ("nothing", "cannot be created .*Unregistered environment"),
        ],
    )
    def test_wrong_names(self, name, message):
        with pytest.raises(SettingError, match=message):
            splagger.bridges.resolve(f"xland:{name}")

    def test_names(self):
        row = splagger.bridges.resolve("xland:MiniGrid-MemoryS8")
        assert (row.name, row.episodes) == ("xland:MiniGrid-MemoryS8", 1)
        assert row.env.spec.images == (Image(3, 3, 2, codes=13),)
        assert row.env.render(*rendered(row.env), 0, 1).shape[2] == 3

    def test_observations_and_rewards_are_those_of_the_package(self):
        import xminigrid
        from xminigrid.wrappers import DirectionObservationWrapper

        inner, params = xminigrid.make("MiniGrid-EmptyRandom-5x5")
        inner = DirectionObservationWrapper(inner)
        env = from_xland(inner, params)
        timestep = inner.reset(params, jr.key(0))
        state, obs = env.reset(jr.key(0), ())
        step_inner, step = jax.jit(lambda t, a: inner.step(params, t, a)), jax.jit(env.step)
        for index in range(60):
            np.testing.assert_array_equal(obs[:-4], timestep.observation["img"].ravel())
            np.testing.assert_array_equal(obs[-4:], timestep.observation["direction"])
            action = jr.randint(jr.key(index), (), 0, 6)
            timestep = step_inner(timestep, action)
            state, out = step(jr.key(index), (), state, action)
            assert out.reward == timestep.reward
            assert (out.terminated | out.truncated) == timestep.last()
            obs = out.obs


def rendered(env):
    task = env.sample_task(jr.key(0))
    return task, env.reset(jr.key(1), task)[0]
