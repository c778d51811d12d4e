"""Spaces as plain data: they flatten observations and convert actions as Gymnasium does."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from splagger.bridges.gym.gym_env import GymEnv, _actions
from splagger.bridges.gym.space_data import bounds_of, flat_size, flatten, space_data, to_action
from splagger.errors import SettingError

IMAGE = spaces.Box(0, 255, (2, 3, 1), np.uint8)
MANY = spaces.MultiDiscrete([2, 3, 4], start=[0, -1, 5])
OBSERVATIONS = (
    spaces.Box(-np.inf, np.inf, (3,)),
    spaces.Box(np.array([-1.0, 0]), np.array([1, np.inf]), dtype=np.float64),
    IMAGE,
    spaces.Discrete(5, start=-2),
    MANY,
    spaces.MultiBinary((2, 2)),
    spaces.Dict({"b": spaces.Discrete(3), "a": IMAGE, "c": spaces.Dict({"d": MANY})}),
    spaces.Tuple([spaces.Discrete(2), spaces.Tuple([spaces.MultiBinary(3), IMAGE])]),
)


def stored(space):
    """The data of a space after a trip through JSON as every program reads it."""
    return json.loads(json.dumps(space_data(space), allow_nan=False))


@pytest.mark.parametrize("space", OBSERVATIONS, ids=str)
def test_observations_are_flattened_as_by_gymnasium(space):
    data = stored(space)
    assert flat_size(data) == spaces.flatdim(space)
    space.seed(0)
    for obs in (space.sample() for _ in range(20)):
        expected = np.asarray(spaces.flatten(space, obs), np.float32)
        np.testing.assert_array_equal(flatten(data, obs), expected, strict=True)


BOXES = [
    spaces.Box(-2, 2, (3,)),
    spaces.Box(np.float32([[0, -4]]), np.float32([[10, np.inf]])),
    spaces.Box(-np.inf, np.inf, (2, 1), np.float64),
]


@pytest.mark.parametrize("space", BOXES, ids=str)
def test_actions_in_a_box_are_scaled_as_during_training(space):
    _, convert = _actions(GymEnv("test"), space)
    for action in np.random.default_rng(0).normal(size=(20, space.shape[0] * space.shape[-1])):
        action = action[: np.prod(space.shape)].astype(np.float32)
        expected, found = convert(action), to_action(stored(space), action)
        np.testing.assert_array_equal(found, expected, strict=True)
        assert space.contains(found)


def test_numbered_actions_keep_their_start_and_type():
    space = spaces.Discrete(3, start=-1)
    _, convert = _actions(GymEnv("test"), space)
    for action in range(3):
        found = to_action(stored(space), action)
        assert found == convert(np.int32(action)) and space.contains(found)


def test_other_spaces_have_no_data():
    for space in (spaces.Text(3), spaces.Sequence(spaces.Discrete(2))):
        assert space_data(space) is None
        assert space_data(spaces.Dict({"a": space})) is None


WRONG = [
    (spaces.Discrete(3), 3),
    (spaces.Discrete(3), None),
    (IMAGE, np.zeros((2, 3))),
    (MANY, [0, 0]),
    (spaces.Dict({"a": IMAGE}), {}),
    (spaces.Tuple([IMAGE]), []),
    (spaces.Discrete(3), -1),
    (spaces.Discrete(3), 0.5),
    (spaces.MultiDiscrete([3, 3]), [-1, 2]),
    (spaces.Box(0, 255, (1,), np.uint8), [0.7]),
    (spaces.Box(-9, 9, (2,), np.int64), [np.nan, 1]),
]


@pytest.mark.parametrize("space, obs", WRONG, ids=str)
def test_observations_that_do_not_fit_are_refused(space, obs):
    with pytest.raises(SettingError, match="the observation does not fit its space"):
        flatten(stored(space), obs)


LIES = [None, 3, [], {}, {"kind": "Box"}, {"kind": "Text", "n": 3}]
LIES += [{"kind": "Box", "shape": [2, -1], "dtype": "float32"}]
LIES += [{"kind": "Box", "shape": [2], "dtype": "object"}, {"kind": "Box", "shape": 2}]
LIES += [{"kind": "Discrete", "n": "3", "start": 0, "dtype": "int64"}]
LIES += [{"kind": "Discrete", "n": True, "start": 0, "dtype": "int64"}]
LIES += [{"kind": "Discrete", "n": 3, "start": 2**70, "dtype": "int64"}]
LIES += [{"kind": "MultiDiscrete", "n": [3], "start": [], "dtype": "int64"}]
LIES += [{"kind": "Dict", "parts": [3]}, {"kind": "Dict", "parts": [["a", None]]}]


@pytest.mark.parametrize("data", LIES, ids=str)
def test_data_that_is_not_a_space_is_refused(data):
    with pytest.raises(ValueError, match=r"is not|must be|needs as many"):
        flat_size(data)


def test_bounds_of_another_shape_are_refused():
    data = {"kind": "Box", "shape": [2], "dtype": "float32", "low": [0, 0, 0], "high": "inf"}
    with pytest.raises(ValueError, match="reshape"):
        bounds_of(data)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_boxes_too_wide_for_their_type_have_finite_actions(dtype):
    """high - low is infinite, although low and high are not."""
    high = np.finfo(dtype).max
    box = spaces.Box(-high, high, (3,), dtype)
    actions = to_action(stored(box), np.array([-1, 0, 1], np.float32))
    np.testing.assert_array_equal(actions, np.array([-high, 0, high], dtype))
