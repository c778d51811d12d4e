"""Many similar pictures in little space: each frame is a grid of tiles, and equal tiles are stored once."""

import base64
import io
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

TILE = 32  # pixels along the side of a tile
COLUMNS = 32  # tiles in a row of a sheet
PER_SHEET = 2048  # tiles; browsers on phones limit the size of one image
BUDGET = 1_200_000  # bytes of all sheets together
PHOTO_WIDTHS = (480, 360, 240, 160)


class Pictures(NamedTuple):
    """Sheets of tiles, and the tiles of every frame, row by row."""

    sheets: list[str]  # as data URIs
    tile: tuple[int, int]  # width and height
    columns: int  # tiles in a row of a sheet
    per_sheet: int
    size: tuple[int, int]  # width and height of a frame
    frames: Int[np.ndarray, "F tiles"]


NO_PICTURES = Pictures([], (TILE, TILE), COLUMNS, PER_SHEET, (0, 0), np.zeros((0, 0), int))


def pack(frames: list[np.ndarray]) -> Pictures:
    """Returns frames [H, W, 3] of equal size as pictures.

    Drawings are stored without loss. Photographs, whose tiles all differ, are made smaller and compressed until they
    fit into `BUDGET`.
    """
    drawn = _as_tiles(np.stack(frames))
    if _bytes(drawn.sheets) <= BUDGET:
        return drawn
    smaller = [_as_photos(frames, width) for width in PHOTO_WIDTHS]
    return next((p for p in smaller if _bytes(p.sheets) <= BUDGET), smaller[-1])


def _as_tiles(frames: UInt8[np.ndarray, "F H W 3"]) -> Pictures:
    count, height, width, _ = frames.shape
    rows, columns = -(-height // TILE), -(-width // TILE)
    margins = (0, 0), (0, rows * TILE - height), (0, columns * TILE - width), (0, 0)
    grid = np.pad(frames, margins, mode="edge").reshape(count, rows, TILE, columns, TILE, 3)
    tiles = grid.swapaxes(2, 3).reshape(-1, TILE, TILE, 3)
    numbers: dict[bytes, int] = {}
    ids = [numbers.setdefault(tile.tobytes(), len(numbers)) for tile in tiles]
    if len(numbers) > 16 * PER_SHEET:  # photographs
        return Pictures(["-" * (BUDGET + 1)], (TILE, TILE), 1, 1, (width, height), np.zeros((0, 0)))
    unique = [np.frombuffer(data, np.uint8).reshape(TILE, TILE, 3) for data in numbers]
    sheets = [_sheet(unique[i : i + PER_SHEET]) for i in range(0, len(unique), PER_SHEET)]
    found = np.array(ids).reshape(count, -1)
    return Pictures(sheets, (TILE, TILE), COLUMNS, PER_SHEET, (width, height), found)


def _as_photos(frames: list[np.ndarray], width: int) -> Pictures:
    from PIL import Image

    width = min(width, frames[0].shape[1])
    height = round(frames[0].shape[0] * width / frames[0].shape[1])
    small = [Image.fromarray(frame).resize((width, height)) for frame in frames]
    per_sheet = max(1, 4_000_000 // (width * height))
    columns = max(1, 2000 // width)
    sheets = []
    for first in range(0, len(small), per_sheet):
        part = small[first : first + per_sheet]
        sheet = Image.new("RGB", (columns * width, -(-len(part) // columns) * height), "white")
        for index, picture in enumerate(part):
            sheet.paste(picture, (index % columns * width, index // columns * height))
        sheets.append(_uri(sheet, "webp", quality=60))
    numbers = np.arange(len(frames))[:, None]
    return Pictures(sheets, (width, height), columns, per_sheet, (width, height), numbers)


def _sheet(tiles: list[np.ndarray]) -> str:
    from PIL import Image

    rows = -(-len(tiles) // COLUMNS)
    blank = [np.full_like(tiles[0], 255)] * (rows * COLUMNS - len(tiles))
    grid = np.stack([*tiles, *blank]).reshape(rows, COLUMNS, TILE, TILE, 3)
    image = grid.swapaxes(1, 2).reshape(rows * TILE, COLUMNS * TILE, 3)
    return _uri(Image.fromarray(image), "png", optimize=True)


def _uri(image: Any, kind: str, **options: Any) -> str:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(data.getvalue()).decode()}"


def _bytes(sheets: list[str]) -> int:
    return sum(map(len, sheets))
