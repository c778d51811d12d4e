"""Images of environment states: sizes, types, and that changes of the state are visible."""

import itertools

import numpy as np
import pytest

from splagger.envs import pictures, views

KINDS = np.array([0, 1] * 8)


def tmaze(length=20, position=3, signal_cells=((1, 1),), door_up=True, noise=1.0, **options):
    return pictures.tmaze(length, position, signal_cells, door_up, 2, 4, noise, **options)


def planning(size=3, node=0, goal=5, **options):
    return pictures.planning(size, np.arange(size * size), node, goal, 7, 2, **options)


def minemaze(name="(0,0) iron", phase=1, room=0, x=0, y=0, kinds=KINDS, up=True, resolution=10):
    view = views.draw(name, resolution)
    return pictures.minemaze(view, phase, room, len(kinds), x, y, kinds, up, 1, 2, 9)


def check(image, shape):
    assert image.shape == shape
    assert image.dtype == np.uint8
    assert image.min() < 100
    np.testing.assert_array_equal(image[:4], 255)  # a margin


def differ(first, second):
    return bool((first != second).any())


@pytest.mark.parametrize("length", [5, 12, 50, 100])
def test_tmaze_has_one_size_for_all_lengths(length):
    for position in (0, length // 2, length - 1):
        check(tmaze(length, position), (300, 960, 3))


@pytest.mark.parametrize("length", [5, 100])
def test_tmaze_shows_every_step(length):
    below_the_heading = [tmaze(length, position)[60:] for position in range(length)]
    assert all(differ(*pair) for pair in itertools.pairwise(below_the_heading))


def test_tmaze_shows_signal_door_and_noise():
    plain = tmaze()
    changes = [{"signal_cells": ((1, -1),)}, {"signal_cells": ((1, 1), (10, 1))}, {"noise": -1.0}]
    images = [plain, *(tmaze(**change) for change in [*changes, {"door_up": False}])]
    for index, image in enumerate(images):
        assert all(differ(image, other) for other in images[:index])


def test_tmaze_accepts_numpy_values():
    image = tmaze(np.int32(20), np.int32(3), [(np.int32(1), np.float32(1))], np.bool_(True))
    np.testing.assert_array_equal(image, tmaze())


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_planning_has_one_size(size):
    check(planning(size, goal=size), (520, 480, 3))


def test_planning_shows_agent_goal_and_labels():
    assert differ(planning(node=0), planning(node=1))
    assert differ(planning(goal=5), planning(goal=6))
    assert differ(planning(), planning(show_labels=False))


def test_planning_has_x_to_the_right_and_y_upward():
    def blue_center(node):
        image = planning(node=node, show_labels=False).astype(int)
        rows, columns = np.where((image == (0, 114, 178)).all(-1))
        return rows.mean(), columns.mean()

    (row, column), (row_up, column_up), (row_right, column_right) = map(blue_center, (0, 1, 3))
    assert row_up < row - 100
    assert column_up == pytest.approx(column, abs=1)
    assert column_right > column + 100
    assert row_right == pytest.approx(row, abs=1)


@pytest.mark.parametrize("resolution", [10, 40])
@pytest.mark.parametrize(
    ("name", "phase", "room"), [("green", 0, 0), ("(0,3)", 1, 5), ("end", 2, 16)]
)
def test_minemaze_has_one_size_in_all_phases(name, phase, room, resolution):
    check(minemaze(name, phase, room, resolution=resolution), (480, 960, 3))


@pytest.mark.parametrize("rooms", [1, 4, 16, 60])
def test_minemaze_fits_any_number_of_rooms(rooms):
    check(minemaze(room=rooms - 1, kinds=np.ones(rooms, int)), (480, 960, 3))


def test_minemaze_shows_position_room_kind_and_signal():
    plain = minemaze()
    assert differ(plain, minemaze(y=1))
    assert differ(minemaze(x=-1, y=1), minemaze(x=1, y=1))
    assert differ(plain, minemaze(room=2))
    assert differ(plain, minemaze(kinds=1 - KINDS))
    assert differ(plain, minemaze(up=False))


def test_minemaze_enlarges_the_view_without_blurring():
    image = minemaze("red", phase=0)[80:440, 32:392]
    np.testing.assert_array_equal(image[18::36, 18::36], views.draw("red"))
