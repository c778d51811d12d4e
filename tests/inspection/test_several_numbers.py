"""The page of an agent whose action consists of several numbers: one divided bar per number."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.agent import Interface, build
from splagger.agents import Player
from splagger.envs import MetaEnv
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.inspection import inspect
from splagger.inspection.counterfactuals import _distance, _modes
from splagger.memory import EmbeddingSizes
from splagger.methods import METHODS
from splagger.network import Network
from splagger.runs.run import Point
from splagger.spaces import MultiDiscrete
from tests import browser
from tests.inspection.test_page import data_of, numbers

SIZES = (2, 3, 4)
SMALL = Network(EmbeddingSizes(5, 3, 2), 6, 7, 4, (8,), width_factor=0.0625)


class Dials(eqx.Module):
    """Three dials, of which each must be turned to the number of the task."""

    spec = EnvSpec("Dials", 4, MultiDiscrete(SIZES), 6)

    def sample_task(self, key):
        return jr.randint(key, (3,), 0, jnp.array(SIZES))

    def reset(self, key, task):
        return jnp.int32(0), jr.normal(key, (4,))

    def step(self, key, task, time, action):
        right = jnp.mean(jnp.asarray(action == task, jnp.float32))
        end = time == 5
        return time + 1, Step(jr.normal(key, (4,)), right, jnp.zeros((), bool), end)

    def render(self, task, state, episode=0, episodes=1):
        return np.full((48, 48, 3), 40 * int(state), np.uint8)


@pytest.fixture(scope="module")
def player():
    """An untrained agent with random parameters."""
    env, random = MetaEnv(Dials(), 1), np.random.default_rng(0)
    interface = Interface(env.obs_size, env.space, env.horizon)
    example = lambda: build(jr.key(0), METHODS["splagger"], interface, SMALL)  # noqa: E731
    drawn = lambda leaf: jnp.asarray(0.6 * random.normal(size=leaf.shape), jnp.float32)  # noqa: E731
    agent = jax.tree.map(drawn, jax.eval_shape(example))
    return Player(agent, agent.normalizers(), env, Point(1e-3, 0.1, 0.0, 1.0, 0))


@pytest.fixture(scope="module")
def written(player, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "dials.html"
    return path, inspect(player, path, worth=False)[0]


def test_the_data_have_the_sizes_and_the_probabilities_of_every_value(written):
    path, found = written
    (shown,) = data_of(path)["agents"]
    assert shown["sizes"] == [2, 3, 4]
    assert shown["actions"] == ["number 0", "number 1", "number 2"]
    probabilities = numbers(shown["arrays"]["probabilities"])
    np.testing.assert_array_equal(probabilities, found.probabilities)
    parts = np.split(probabilities, [2, 5], axis=1)
    for part, taken in zip(parts, found.action.T, strict=True):
        np.testing.assert_allclose(part.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(part.argmax(axis=1), taken)


def test_distances_are_those_of_independent_numbers(written):
    """δ = 1 - Πᵢ(1 - δᵢ), and an action changes if one of its numbers does."""
    _, found = written
    random, ends = np.random.default_rng(0), np.array([2, 5])
    draws = [random.dirichlet(np.ones(size), size=6) for size in SIZES]
    other = found._replace(probabilities=np.concatenate(draws, axis=1))
    parts = [np.split(trace.probabilities, ends, axis=1) for trace in (found, other)]
    for t, distance in enumerate(_distance(found, other, ends)):
        kept = [1 - abs(p[t] - q[t]).sum() / 2 for p, q in zip(*parts, strict=True)]
        assert distance == pytest.approx(1 - kept[0] * kept[1] * kept[2], abs=1e-6)
    np.testing.assert_array_equal(_modes(other, ends)[2], draws[2].argmax(axis=1))
    assert not _distance(found, found, ends).any()


@pytest.mark.slow
def test_interventions_are_played(player, tmp_path):
    inspect(player, tmp_path / "page.html")
    (shown,) = data_of(tmp_path / "page.html")["agents"]
    assert [outcome["name"] for outcome in shown["outcomes"]] == [
        "order shuffled",
        "aggregate frozen",
        "bypass frozen",
        "memory emptied at step 3",
        "memory of another task at step 3",
    ]
    for outcome in shown["outcomes"]:
        distance = numbers(outcome["distance"])
        assert 0 <= outcome["changed"] <= 1 and len(distance) == 6
        assert distance.min() >= 0 and distance.max() <= 1 + 1e-6


def test_a_page_without_pictures_needs_no_render(player, tmp_path, monkeypatch):
    monkeypatch.delattr(Dials, "render")
    with pytest.raises(SettingError, match=r"Dials cannot be drawn: .* --no-pictures"):
        inspect(player, tmp_path / "page.html", worth=False)
    (found,) = inspect(player, tmp_path / "page.html", worth=False, draw=False)
    data = data_of(tmp_path / "page.html")
    assert data["pictures"]["sheets"] == [] and found.frames == []
    if browser.installed() is None:
        pytest.skip(browser.ABSENT)
    chromium = browser.Browser(tmp_path / "profile")
    try:
        chromium.open((tmp_path / "page.html").as_uri())
        assert chromium.evaluate("go(2); document.querySelectorAll('.picture').length") == 0
        assert chromium.seen("Runtime.exceptionThrown") == []
        assert chromium.evaluate("document.querySelectorAll('.divided').length") == 3
    finally:
        chromium.close()


def test_a_browser_shows_one_divided_bar_per_number(written, tmp_path):
    if browser.installed() is None:
        pytest.skip(browser.ABSENT)
    path, found = written
    chromium = browser.Browser(tmp_path)
    try:
        chromium.open(path.as_uri())
        chromium.evaluate("go(3); 1")
        assert chromium.seen("Runtime.exceptionThrown") == []
        widths = (
            "[...document.querySelectorAll('.divided i')].map(part => parseFloat(part.style.width))"
        )
        np.testing.assert_allclose(
            chromium.evaluate(widths), 100 * found.probabilities[3], atol=0.01
        )
        taken = "[...document.querySelectorAll('.divided i.taken')].map(part => +part.textContent)"
        assert chromium.evaluate(taken) == found.action[3].tolist()
        action = chromium.evaluate("document.querySelectorAll('.facts dd')[3].textContent")
        assert action == ", ".join(map(str, found.action[3]))
    finally:
        chromium.close()
