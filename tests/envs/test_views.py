"""Procedural views: region colors, distances, resolutions and loading."""

import numpy as np
import pytest
from PIL import Image

from splagger.envs import views

ALL, TALL, GROUND = slice(0, 10), slice(0, 8), slice(8, 10)
LEFT, MIDDLE, RIGHT = slice(0, 3), slice(3, 7), slice(7, 10)
SKY, DARK, FLOOR = (141, 168, 234), (78, 78, 78), (119, 119, 119)

# view, rows, columns, mean color
REGIONS = [
    ("green", ALL, ALL, (67, 178, 98)),
    ("green", slice(5, 9), MIDDLE, (85, 187, 113)),
    ("green", ALL, slice(9, 10), (48, 160, 75)),
    ("red", ALL, ALL, (110, 16, 6)),
    ("red", slice(0, 1), ALL, (150, 26, 8)),
    ("red", slice(2, 8), slice(2, 8), (92, 12, 5)),
    ("end", ALL, ALL, (17, 15, 25)),
    ("(0,0) iron", slice(0, 1), slice(0, 2), SKY),
    ("(0,0) iron", slice(0, 1), slice(8, 10), SKY),
    ("(0,0) iron", slice(2, 8), slice(0, 2), DARK),
    ("(0,0) iron", slice(2, 8), slice(8, 10), DARK),
    ("(0,0) iron", TALL, MIDDLE, (180, 180, 180)),
    ("(0,0) diamond", TALL, MIDDLE, (89, 180, 175)),
    ("(0,0) iron", TALL, slice(2, 3), (131, 132, 132)),
    ("(0,0) diamond", TALL, slice(7, 8), (71, 132, 129)),
    ("(0,0) iron", GROUND, ALL, (118, 118, 118)),
    ("(0,1) iron", ALL, ALL, (182, 182, 182)),
    ("(0,1) diamond", ALL, ALL, (106, 182, 179)),
    ("(1,1) iron", ALL, LEFT, (130, 130, 130)),
    ("(1,1) diamond", ALL, LEFT, (69, 129, 127)),
    ("(1,1) iron", slice(0, 3), MIDDLE, (103, 99, 97)),
    ("(1,1) iron", slice(3, 8), MIDDLE, (100, 100, 100)),
    ("(1,1) iron", TALL, RIGHT, DARK),
    ("(1,1) iron", GROUND, MIDDLE, FLOOR),
    ("(-1,1) iron", ALL, RIGHT, (130, 130, 130)),
    ("(-1,1) diamond", ALL, RIGHT, (74, 131, 128)),
    ("(-1,1) iron", slice(0, 3), MIDDLE, (98, 104, 106)),
    ("(-1,1) diamond", TALL, LEFT, DARK),
    ("(1,2)", TALL, LEFT, (95, 96, 96)),
    ("(1,2)", TALL, MIDDLE, (111, 105, 101)),
    ("(1,2)", TALL, RIGHT, DARK),
    ("(1,2)", GROUND, ALL, FLOOR),
    ("(-1,2)", TALL, LEFT, DARK),
    ("(-1,2)", TALL, MIDDLE, (104, 116, 119)),
    ("(-1,2)", TALL, RIGHT, (96, 95, 95)),
    ("(1,3)", ALL, ALL, (112, 106, 102)),
    ("(-1,3)", ALL, ALL, (106, 118, 121)),
    ("(0,3)", ALL, ALL, (92, 92, 92)),
    ("(0,3)", TALL, LEFT, (80, 81, 81)),
    ("(0,3)", TALL, MIDDLE, (100, 100, 100)),
]

DISTANCES = [
    ("(1,2)", "(0,3)", 1.47),
    ("(0,3)", "(-1,2)", 2.0),
    ("(1,1) iron", "(1,1) diamond", 2.6),
    ("(-1,1) iron", "(-1,1) diamond", 2.6),
    ("green", "red", 15.1),
]


@pytest.mark.parametrize(("name", "rows", "columns", "color"), REGIONS)
def test_regions_have_the_documented_mean_color(name, rows, columns, color):
    region = views.draw(name)[rows, columns].reshape(-1, 3)
    np.testing.assert_allclose(region.mean(0), color, atol=4)


@pytest.mark.parametrize(("first", "second", "expected"), DISTANCES)
def test_distances_resemble_the_original_images(first, second, expected):
    sheet = views.sheet()
    difference = sheet[views.VIEWS.index(first)] - sheet[views.VIEWS.index(second)]
    assert np.linalg.norm(difference) == pytest.approx(expected, rel=0.15)


def test_all_views_are_distinct_and_the_closest_pair_is_as_expected():
    sheet = views.sheet()
    distances = np.linalg.norm(sheet[:, None] - sheet[None], axis=-1)
    distances[np.diag_indices(len(sheet))] = np.inf
    pair = np.unravel_index(distances.argmin(), distances.shape)
    assert distances.min() >= 1.3
    assert {views.VIEWS[index] for index in pair} == {"(1,2)", "(0,3)"}


def test_drawing_twice_gives_the_same_pixels():
    for name in views.VIEWS:
        np.testing.assert_array_equal(views.draw(name, 20), views.draw(name, 20))


@pytest.mark.parametrize("resolution", [20, 30, 40, 80])
def test_larger_images_average_to_the_small_one(resolution):
    factor = resolution // 10
    for name in views.VIEWS:
        large = views.draw(name, resolution)
        assert large.dtype == np.uint8
        average = large.reshape(10, factor, 10, factor, 3).mean((1, 3))
        np.testing.assert_allclose(average, views.draw(name), atol=1.01)


def test_larger_images_have_detail_inside_the_cells():
    cells = views.draw("(1,3)", 40).reshape(10, 4, 10, 4, 3)
    assert cells.std((1, 3)).mean() > 2


@pytest.mark.parametrize("resolution", [0, -10, 15, 84])
def test_other_resolutions_are_refused_by_value(resolution):
    with pytest.raises(ValueError, match=str(resolution)):
        views.draw("green", resolution)


def test_unknown_views_are_refused_by_name():
    with pytest.raises(ValueError, match="purple"):
        views.draw("purple")


def test_normalize_flips_scales_and_flattens_with_channels_last():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    flat = views.normalize(image)
    assert flat.dtype == np.float32
    assert flat.shape == (12,)
    np.testing.assert_allclose(flat[:3] * 128 + 128, [6, 7, 8])
    np.testing.assert_allclose(views.normalize(np.full((2, 2, 3), 255, np.uint8)), 127 / 128)


def test_sheet_is_in_view_order():
    sheet = views.sheet(20)
    assert sheet.shape == (len(views.VIEWS), 1200)
    assert sheet.dtype == np.float32
    for row, name in zip(sheet, views.VIEWS, strict=True):
        np.testing.assert_array_equal(row, views.normalize(views.draw(name, 20)))


def test_room_kinds_differ_only_in_the_column():
    iron, diamond = views.draw("(1,1) iron"), views.draw("(1,1) diamond")
    np.testing.assert_array_equal(iron[:, 3:], diamond[:, 3:])
    assert (iron[:, :3] != diamond[:, :3]).any(-1).all()
    iron, diamond = views.draw("(0,0) iron"), views.draw("(0,0) diamond")
    np.testing.assert_array_equal(iron[:, [0, 1, 8, 9]], diamond[:, [0, 1, 8, 9]])
    np.testing.assert_array_equal(iron[8:], diamond[8:])


def test_locations_behind_the_column_have_one_view_for_both_kinds():
    for location in ("(1,2)", "(-1,2)", "(1,3)", "(-1,3)", "(0,3)"):
        assert [name for name in views.VIEWS if name.startswith(location)] == [location]
        assert all(patch.diamond is None for patch in views.LAYOUTS[location])


def test_filenames():
    assert views.filename("(0,0) iron") == "0_0_iron"
    assert views.filename("(-1,1) diamond") == "-1_1_diamond"
    assert views.filename("green") == "green"
    assert len({views.filename(name) for name in views.VIEWS}) == len(views.VIEWS)


def write_views(folder, resolution):
    for name in views.VIEWS:
        Image.fromarray(views.draw(name, resolution)).save(folder / f"{views.filename(name)}.png")


def test_load_returns_what_was_written(tmp_path):
    write_views(tmp_path, 20)
    np.testing.assert_array_equal(views.load(tmp_path, 20), views.sheet(20))


def test_load_shrinks_larger_images(tmp_path):
    write_views(tmp_path, 80)
    loaded = views.load(tmp_path)
    assert loaded.shape == views.sheet().shape
    assert loaded.dtype == np.float32
    assert np.abs(loaded - views.sheet()).mean() < 0.03


def test_load_names_a_missing_file(tmp_path):
    write_views(tmp_path, 10)
    (tmp_path / "-1_2.png").unlink()
    with pytest.raises(FileNotFoundError, match="-1_2"):
        views.load(tmp_path)


def test_load_names_an_unreadable_image(tmp_path):
    write_views(tmp_path, 10)
    (tmp_path / "end.png").write_bytes(b"not an image")
    with pytest.raises(ValueError, match=r"end\.png"):
        views.load(tmp_path)
