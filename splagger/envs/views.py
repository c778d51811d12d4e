"""Procedural images of MC-LS: every first-person view, drawn on a layout of 10 × 10 cells.

Each view is a list of patches (rectangles of cells with a mean color, grain and ore). Patches are
painted on one fixed canvas of 4 × 4 texels per cell, and every resolution is an area average of
that canvas, so a larger image shows the same scene with more detail.
"""

import math
import pathlib
import zlib
from typing import NamedTuple

import numpy as np

from splagger.errors import SettingError

CELLS = 10
TEXELS = 4  # canvas texels along one side of a cell
VIEWS: tuple[str, ...] = (
    *("green", "red", "end", "(0,0) iron", "(0,0) diamond", "(0,1) iron", "(0,1) diamond"),
    *("(1,1) iron", "(1,1) diamond", "(-1,1) iron", "(-1,1) diamond"),
    *("(1,2)", "(-1,2)", "(1,3)", "(-1,3)", "(0,3)"),
)


class Patch(NamedTuple):
    """A rectangle of cells and its texture; `diamond` replaces `color` in diamond rooms."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    color: tuple[float, float, float]
    diamond: tuple[float, float, float] | None = None
    grain: float = 4.5  # spread of the gray noise
    bands: float = 0.0  # spread between rows
    ore: tuple[tuple[float, float, float], ...] = ()  # tints, each added to some of the cells
    share: float = 0.25  # fraction of the cells that carry ore


ALL, TALL, LEFT, MIDDLE, RIGHT = (0, CELLS), (0, 8), (0, 3), (3, 7), (7, CELLS)
DARK, STONE, IRON, SIDE = (77, 77, 77), (100, 100, 100), (181, 181, 181), (130, 130, 130)
SKY, HAZE = (141, 168, 234), (105, 117, 145)  # haze: the sky fades into the wall
EMBER, MOSS = (150, 26, 8), (48, 160, 75)
FLOOR = Patch((8, CELLS), ALL, (120, 120, 120))  # under all other patches

LAYOUTS: dict[str, tuple[Patch, ...]] = {
    "green": (
        Patch(ALL, ALL, (63, 180, 97), grain=7),
        Patch((0, 5), (0, 5), (76, 183, 108), grain=7),
        Patch((5, 9), (3, 7), (85, 187, 113)),
        Patch(ALL, (9, 10), MOSS),
        Patch((9, 10), ALL, MOSS),
    ),
    "red": (
        Patch(ALL, ALL, (106, 15, 6), grain=1.5, ore=((30, 6, 2),), share=0.12),
        Patch((2, 8), (2, 8), (92, 12, 5), grain=1.5, ore=((30, 6, 2),), share=0.06),
        Patch((0, 1), ALL, EMBER, grain=2),
        Patch((1, 6), (0, 1), EMBER, grain=2),
        Patch((3, 8), (9, 10), EMBER, grain=2),
    ),
    "end": (Patch(ALL, ALL, (17, 15, 25), grain=1, ore=((30, 21, 40),), share=0.15),),
    "(0,0)": (
        Patch(TALL, ALL, DARK),
        Patch((3, 5), (0, 2), DARK, ore=((-5, 15, 20),)),
        Patch((3, 5), (8, 10), DARK, ore=((18, 9, 3),)),
        Patch((0, 1), ALL, SKY, grain=1),
        Patch((1, 2), ALL, HAZE, grain=3),
        Patch(TALL, (2, 8), (131, 132, 132), (71, 132, 129)),
        Patch(TALL, MIDDLE, IRON, (89, 180, 175), bands=3),
    ),
    "(0,1)": (Patch(ALL, ALL, IRON, (106, 182, 179), grain=3, bands=5),),
    "(1,1)": (
        Patch(ALL, LEFT, SIDE, (69, 129, 127)),
        Patch(TALL, MIDDLE, STONE),
        Patch((0, 3), MIDDLE, (103, 99, 97), ore=((14, 5, 1),)),
        Patch(TALL, RIGHT, DARK),
    ),
    "(-1,1)": (
        Patch(ALL, RIGHT, SIDE, (74, 131, 128)),
        Patch(TALL, MIDDLE, STONE),
        Patch((0, 3), MIDDLE, (98, 104, 106), ore=((-4, 14, 20),)),
        Patch(TALL, LEFT, DARK),
    ),
    "(1,2)": (
        Patch(TALL, LEFT, (95, 96, 96)),
        Patch(TALL, MIDDLE, (111, 105, 101), ore=((24, 12, 4),)),
        Patch(TALL, RIGHT, DARK),
    ),
    "(-1,2)": (
        Patch(TALL, LEFT, DARK),
        Patch(TALL, MIDDLE, (104, 116, 119), ore=((-4, 36, 44), (28, 38, 44))),
        Patch(TALL, RIGHT, (96, 95, 95)),
    ),
    "(1,3)": (Patch(ALL, ALL, (112, 106, 102), ore=((58, 34, 16),)),),
    "(-1,3)": (Patch(ALL, ALL, (106, 118, 121), ore=((-15, 72, 88), (80, 88, 95))),),
    "(0,3)": (
        Patch(TALL, ALL, (80, 81, 81)),
        Patch((0, 4), LEFT, (80, 82, 83), ore=((-6, 14, 19),)),
        Patch((0, 4), RIGHT, (83, 81, 80), ore=((19, 10, 3),)),
        Patch(TALL, MIDDLE, STONE),
    ),
}


def _fill(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Returns the values, each repeated so that together they fill `shape` texels."""
    return np.kron(values, np.ones((shape[0] // values.shape[0], shape[1] // values.shape[1])))


def _texture(patch: Patch, kind: str, random: np.random.RandomState) -> np.ndarray:
    """Returns a patch's texels, float [rows, columns, 3], with exactly the patch's mean color."""
    cells = (patch.rows[1] - patch.rows[0], patch.columns[1] - patch.columns[0])
    shape = (cells[0] * TEXELS, cells[1] * TEXELS)
    sizes = (cells, (shape[0], shape[1] // 2), (cells[0], 1))
    blocks, streaks, bands = (_fill(random.uniform(-1.7, 1.7, size), shape) for size in sizes)
    gray = patch.grain * (blocks + streaks) + patch.bands * bands
    color = patch.diamond if kind == "diamond" and patch.diamond else patch.color
    # Diamond varies in hue, not only in brightness.
    texels = gray[..., None] * ((2, 1, 1) if color is patch.diamond else (1, 1, 1))
    # Ore prefers cells next to each other, so it reads as veins rather than as noise.
    field = random.uniform(size=cells)
    order = np.argsort(-(field + np.roll(field, 1, axis=1)), axis=None)
    chips = 1.25 * (random.uniform(size=shape) > 0.2)
    for index, tint in enumerate(patch.ore):
        mask = np.zeros(cells)
        mask.flat[order[: round(patch.share * mask.size)][index :: len(patch.ore)]] = 1
        texels = texels + (_fill(mask, shape) * chips)[..., None] * tint
    return texels - texels.mean((0, 1)) + color


def _check_resolution(resolution: int) -> None:
    if resolution <= 0 or resolution % CELLS:
        raise SettingError(f"resolution must be a positive multiple of {CELLS}, got {resolution}")


def draw(name: str, resolution: int = CELLS) -> np.ndarray:
    """Returns one view as uint8 [resolution, resolution, 3], row 0 at the top; deterministic."""
    _check_resolution(resolution)
    if name not in VIEWS:
        raise SettingError(f"unknown view {name!r}, expected one of {VIEWS}")
    location, _, kind = name.partition(" ")
    # RandomState's stream is the same in all NumPy versions. Both sides share one seed, so that their ore
    # lies in the same cells and the two kinds of a room differ only in the column.
    random = np.random.RandomState(zlib.crc32(location.replace("-", "").encode()))
    size, common = CELLS * TEXELS, math.lcm(CELLS * TEXELS, resolution)
    canvas = np.zeros((size, size, 3))
    for patch in (FLOOR, *LAYOUTS[location]):
        (top, bottom), (left, right) = np.multiply(TEXELS, (patch.rows, patch.columns))
        canvas[top:bottom, left:right] = _texture(patch, kind, random)
    fine = np.kron(canvas.clip(0, 255), np.ones((common // size, common // size, 1)))
    blocks = fine.reshape(resolution, common // resolution, resolution, common // resolution, 3)
    return blocks.mean((1, 3)).round().astype(np.uint8)


def normalize(image: np.ndarray) -> np.ndarray:
    """Returns the image as an observation: flipped upside down, in [-1, 1), float32, flat."""
    return ((image[::-1].astype(np.float32) - 128) / 128).ravel()


def denormalize(flat: np.ndarray) -> np.ndarray:
    """Returns the image (uint8, upright) of a normalized observation."""
    pixels = np.asarray(flat).reshape(-1, 3)
    side = round(len(pixels) ** 0.5)
    return np.rint(pixels * 128 + 128).astype(np.uint8).reshape(side, side, 3)[::-1]


def sheet(resolution: int = CELLS) -> np.ndarray:
    """Returns all normalized views in `VIEWS` order, float32 [views, resolution**2 * 3]."""
    return np.stack([normalize(draw(name, resolution)) for name in VIEWS])


def filename(name: str) -> str:
    """Returns the file stem of a view: "(-1,1) diamond" becomes "-1_1_diamond"."""
    return name.translate(str.maketrans({"(": None, ")": None, ",": "_", " ": "_"}))


def load(folder: str | pathlib.Path, resolution: int = CELLS) -> np.ndarray:
    """Returns all views like `sheet`, from a folder with one image file `filename(name)` per view."""
    from PIL import Image

    _check_resolution(resolution)
    images = []
    for name in VIEWS:
        paths = sorted(pathlib.Path(folder).glob(f"{filename(name)}.*"))
        if not paths:
            raise FileNotFoundError(f"no image {filename(name)}.* for view {name!r} in {folder}")
        try:
            image = Image.open(paths[0]).convert("RGB")
        except (OSError, SyntaxError) as error:
            raise SettingError(f"cannot read {paths[0]} as an image") from error
        small = image.resize((resolution, resolution), Image.Resampling.LANCZOS)
        images.append(normalize(np.asarray(small)))
    return np.stack(images)
