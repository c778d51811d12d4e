"""Gymnasium spaces as plain data, and the conversions of observations and actions that they define.

Exported agents contain this data, so that they act without their environment. Only `space_data` needs Gymnasium.
An observation becomes one vector: first the pixels of all images, then all other numbers. Text is left out.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import SettingError
from splagger.images import SMALL_SIDE, Image
from splagger.spaces import ActionSpace, Continuous, Discrete, MultiDiscrete

SpaceData = dict[str, Any]
_NUMBER_TYPES = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)")


class Bounds(NamedTuple):
    """The bounds of a Box, like `gymnasium.spaces.Box`."""

    low: np.ndarray
    high: np.ndarray
    shape: tuple[int, ...]
    dtype: Any


def space_data(space: Any) -> SpaceData | None:
    """Returns a Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them as JSON data; else None.

    Text inside of a Dict or Tuple is left out.
    """
    from gymnasium import spaces

    dtype = {"dtype": str(np.dtype(space.dtype))} if space.dtype is not None else {}
    if isinstance(space, spaces.Box):
        low, high = _compact(space.low), _compact(space.high)
        image = {"image": True} if _is_image(space) else {}
        bounds = {"low": low, "high": high}
        return {"kind": "Box", "shape": list(space.shape), **dtype, **bounds, **image}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "shape": list(space.shape), **dtype}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start), **dtype}
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(getattr(space, "start", 0), space.nvec.shape)
        numbers = {"n": space.nvec.ravel().tolist(), "start": starts.ravel().tolist()}
        return {"kind": "MultiDiscrete", "shape": list(space.nvec.shape), **numbers, **dtype}
    if isinstance(space, spaces.Dict | spaces.Tuple):
        kept = [(key, part) for key, part in _pairs(space) if not _is_text(part)]
        parts = [[key, space_data(part)] for key, part in kept]
        plain = all(isinstance(key, str | int) and part is not None for key, part in parts)
        kind = "Dict" if isinstance(space, spaces.Dict) else "Tuple"
        return {"kind": kind, "parts": parts} if plain and parts else None
    return None


def texts_of(space: Any, name: str = "") -> Iterator[str]:
    """Yields the names of all text inside of a Dict or Tuple."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        for key, part in _pairs(space):
            path = f"{name}.{key}" if name else str(key)
            yield from [path] if _is_text(part) else texts_of(part, path)


def _pairs(space: Any) -> Iterable[tuple[Any, Any]]:
    """The keys and parts of a Dict or Tuple."""
    return space.spaces.items() if hasattr(space.spaces, "items") else enumerate(space.spaces)


def _is_text(space: Any) -> bool:
    """Whether a space holds strings, as `gymnasium.spaces.Text` and MiniGrid's missions do."""
    return space.dtype is not None and np.dtype(space.dtype).kind == "U"


def _is_image(box: Any) -> bool:
    """Whether a Box holds images: bytes in two or three dimensions, of which two have at least 5 pixels."""
    return box.dtype == np.uint8 and len(box.shape) in (2, 3) and sorted(box.shape)[-2] > SMALL_SIDE


def images_of(data: SpaceData, codes: int = 0) -> tuple[Image, ...]:
    """Returns the images in a space, in the order of their pixels in a flattened observation.

    - `codes`: the number of values of their pixels, if those are codes; see `Image`.
    """
    images = (_image(leaf) for leaf in _leaves(data) if leaf.get("image"))
    return tuple(image._replace(codes=codes) for image in images)


def _image(box: SpaceData) -> Image:
    """The channels are the last axis, or the first one if that is at most half as long as the others."""
    shape = [*box["shape"], 1] if len(box["shape"]) == 2 else box["shape"]
    scale = float(bounds_of(box).high.max())
    if len(box["shape"]) == 3 and 2 * shape[0] <= min(shape[1:]):
        return Image(shape[1], shape[2], shape[0], scale, channels_first=True)
    return Image(shape[0], shape[1], shape[2], scale)


def _leaves(data: SpaceData) -> Iterator[SpaceData]:
    """Yields the data of all spaces that have no parts."""
    if "parts" not in data:
        yield data
    for _, part in data.get("parts", ()):
        yield from _leaves(part)


def _compact(bounds: np.ndarray) -> Any:
    """Returns one number if all are equal. Infinities become text, which JSON can hold."""
    numbers = [x if math.isfinite(x) else str(x) for x in bounds.ravel().tolist()]
    return numbers[0] if len(set(numbers)) == 1 else numbers


def flat_size(data: Any) -> int:
    """Returns the size of flattened observations; raises a ValueError if `data` does not describe a space."""
    match data:
        case {"kind": "Box" | "MultiBinary", "shape": [*shape], "dtype": dtype}:
            _check_type(dtype)
            return math.prod(_count(n) for n in shape)
        case {"kind": "Discrete", "n": n, "start": start, "dtype": dtype}:
            _check_type(dtype)
            _check_starts([start])
            return _count(n)
        case {"kind": "MultiDiscrete", "n": [*ns], "start": [*starts], "dtype": dtype}:
            _check_type(dtype)
            _check_starts(starts)
            if len(starts) != len(ns):
                raise ValueError("a MultiDiscrete space needs as many starts as sizes")
            return sum(_count(n) for n in ns)
        case {"kind": "Dict" | "Tuple", "parts": [*parts]}:
            if not all(isinstance(part, list) and len(part) == 2 for part in parts):
                raise ValueError("the parts of a space must be pairs")
            return sum(flat_size(part) for _, part in parts)
    raise ValueError(f"{str(data)[:60]!r} is not a space")


def _check_type(name: Any) -> None:
    if not isinstance(name, str) or not _NUMBER_TYPES.fullmatch(name):
        raise ValueError(f"{str(name)[:60]!r} is not a type of numbers")


def _check_starts(starts: list[Any]) -> None:
    for start in starts:
        if type(start) is not int or abs(start) >= 2**62:
            raise ValueError(f"{str(start)[:60]} is not the start of a space")


def _count(n: Any) -> int:
    if type(n) is not int or n < 0:
        raise ValueError(f"{str(n)[:60]} is not a size")
    return n


def flatten(data: SpaceData, obs: Any) -> np.ndarray:
    """Returns an observation as one vector of float32, like `gymnasium.spaces.flatten`, but with images first."""
    try:
        return flat_vector(data, obs)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise SettingError(
            f"the observation does not fit its space ({type(error).__name__}: {error})"
        ) from None


def flat_vector(data: SpaceData, obs: Any) -> np.ndarray:
    """Returns the same as `flatten`; raises Python's own errors if the observation does not fit."""
    parts = sorted(_parts(data, obs), key=lambda part: not part[0].get("image"))
    return np.concatenate([_flat(leaf, found) for leaf, found in parts])


def _parts(data: SpaceData, obs: Any) -> Iterator[tuple[SpaceData, Any]]:
    """Yields the data and observations of all spaces that have no parts."""
    if "parts" in data:
        for key, part in data["parts"]:
            yield from _parts(part, obs[key])
    else:
        yield data, obs


def _flat(data: SpaceData, obs: Any) -> np.ndarray:
    kind = data["kind"]
    if kind in ("Box", "MultiBinary"):
        given = np.asarray(obs)
        if given.shape != tuple(data["shape"]):
            raise ValueError(f"its shape is {given.shape}, not {tuple(data['shape'])}")
        with np.errstate(invalid="ignore"):
            array = given.astype(data["dtype"])
        if array.dtype.kind != "f" and not np.array_equal(array, given):
            wrong = given[array != given][0]
            raise ValueError(f"{wrong} is not of its type, {data['dtype']}")
        return array.ravel().astype(np.float32)
    if kind == "Discrete":
        return _one_hot(data["n"], obs, data["start"])
    columns = zip(data["n"], np.ravel(obs), data["start"], strict=True)
    return np.concatenate([_one_hot(*column) for column in columns])


def _one_hot(n: int, value: Any, start: int) -> np.ndarray:
    number = np.asarray(value).item()
    index = int(number) - start
    if number != int(number) or not 0 <= index < n:
        raise ValueError(f"{value} is not between {start} and {start + n - 1}")
    return np.eye(1, n, index, dtype=np.float32)[0]


def bounds_of(data: SpaceData) -> Bounds:
    """Returns the bounds of a Box; raises a ValueError if they are wrong."""
    dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])

    def filled(given: Any) -> np.ndarray:
        numbers = np.array([float(x) for x in given] if isinstance(given, list) else float(given))
        shaped = numbers.reshape(shape) if numbers.ndim else np.broadcast_to(numbers, shape)
        return shaped.astype(dtype)

    return Bounds(filled(data["low"]), filled(data["high"]), shape, dtype)


def action_space(data: SpaceData | None) -> ActionSpace | None:
    """Returns our space for these actions, or None if they are not supported."""
    match data:
        case {"kind": "Discrete", "n": n}:
            return Discrete(n)
        case {"kind": "MultiDiscrete", "n": [*sizes]}:
            return MultiDiscrete(tuple(sizes))
        case {"kind": "MultiBinary", "shape": [*shape]}:
            return MultiDiscrete((2,) * math.prod(shape))
        case {"kind": "Box", "shape": [*shape], "dtype": dtype} if str(dtype).startswith("float"):
            return Continuous(math.prod(shape))
    return None


def to_action(data: SpaceData, action: Any) -> Any:
    """Returns an agent's action in the form that a Gymnasium environment takes."""
    if data["kind"] == "Discrete":
        return np.int64(data["start"]) + np.dtype(data["dtype"]).type(action)
    if data["kind"] == "Box":
        return scale(bounds_of(data), np.asarray(action))
    numbers = np.ravel(action) + np.asarray(data.get("start", 0))
    return numbers.astype(data["dtype"]).reshape(data.get("shape", -1))


def scale(box: Any, action: np.ndarray) -> np.ndarray:
    """Maps [-1, 1] to [low, high] and clips; a number with only one bound or none is only clipped."""
    action = action.reshape(box.shape)
    bounded = np.isfinite(box.low) & np.isfinite(box.high)
    low, high = np.where(bounded, box.low, 0.0), np.where(bounded, box.high, 0.0)
    share = (np.clip(action, -1, 1) + 1) / 2
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
        scaled = low + share * width
    # The width of a box can be too large a number although its bounds are not.
    scaled = np.where(np.isfinite(width), scaled, low * (1 - share) + high * share)
    return np.where(bounded, scaled, np.clip(action, box.low, box.high)).astype(box.dtype)
