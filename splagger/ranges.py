"""Ranges of settings, as types. Dataclasses, the parser of settings and the command line share them.

`epochs: Count` means `Annotated[int, Range(1, …)]`. `check_fields` tests all fields of a dataclass, and `check`
tests one value. Numbers without a stated range must be finite.
"""

import dataclasses
import functools as ft
import math
import numbers
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

from splagger.errors import SettingError

# Numbers are traced as float32 and int32: smaller ones would be rounded to 0, larger ones to infinity.
FLOAT_MIN, FLOAT_MAX, INT_MAX = 1.1754944e-38, 3.4028235e38, 2**31 - 1


@runtime_checkable
class Rule(Protocol):
    """What values of a type must satisfy, as metadata of `Annotated`."""

    def problem(self, value: Any) -> str | None:
        """Returns what the value must do or be ("be at least 1"); None if it does."""
        ...


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`. `says` describes them in messages.

    >>> Range(1, 10, "be at least 1").problem(0), Range(1, 10, "be at least 1").problem(11)
    ('be at least 1', 'be at most 10')
    """

    low: float | int
    high: float | int
    says: str
    closed: bool = False  # `says` names the upper end, too
    whole: bool = False  # `says` also excludes fractions

    def problem(self, value: Any) -> str | None:
        return self._problem(value) if isinstance(value, numbers.Real) else "be a number"

    def _problem(self, value: Any) -> str | None:
        if self.high < value < math.inf and not self.closed:
            return f"be at most {_figure(self.high)}"
        if not self.low <= value <= self.high:  # also NaN
            return self.says
        if self.whole and value != int(value):
            return self.says
        if isinstance(value, float) and 0 < abs(value) < FLOAT_MIN:
            return f"be 0 or at least {FLOAT_MIN:g} in size"
        return None


class Whole:
    """Numbers without a fraction."""

    def problem(self, value: Any) -> str | None:
        return None if isinstance(value, numbers.Integral) else "be a whole number"


class WholeAboveOne:
    """Parts of one, or whole numbers."""

    def problem(self, value: Any) -> str | None:
        return None if value <= 1 or value == int(value) else "be a whole number or less than 1"


def _figure(number: float | int) -> str:
    return f"{int(number):,}" if number < 1e16 else f"{number:g}"


MILLION, BILLION = 10**6, 10**9
# One row per kind of setting. Upper ends are far beyond what is useful: they catch typing errors, and numbers
# that the program would round or overflow.
Count = Annotated[int, Range(1, MILLION, "be at least 1")]
Moderate = Annotated[int, Range(1, 10_000, "be at least 1")]
Capacity = Annotated[int, Range(1, BILLION, "be at least 1")]
Size = Annotated[int, Range(1, MILLION, "be positive")]
Steps = Annotated[int, Range(1, MILLION, "be a positive integer")]
Integer = Annotated[int, Range(-(2**63), 2**63 - 1, "be a whole number", whole=True)]
Several = Annotated[int, Range(2, MILLION, "be at least 2")]
Limit = Annotated[int, Range(1, MILLION, "be at least 1, or none")]
Episodes = Annotated[int, Range(1, 1000, "be at least 1")]  # each has a column in the curves
Workers = Annotated[int, Range(0, 1024, "be at least 0")]
Amount = Annotated[float, Range(0, FLOAT_MAX, "be a finite number ≥ 0")]
Positive = Annotated[float, Range(FLOAT_MIN, FLOAT_MAX, "be positive")]
Finite = Annotated[float, Range(-FLOAT_MAX, FLOAT_MAX, "be a finite number")]
Fraction = Annotated[float, Range(0, 1, "be between 0 and 1", closed=True)]
Factor = Annotated[Amount, Range(0, 1, "lie in 0 … 1", closed=True)]
Side = Annotated[int, Range(2, 1000, "be at least 2")]
Pixels = Annotated[int, Range(1, 1000, "be a positive integer")]
# Beyond a spread of 10, bodies differ by factors of thousands.
Spread = Annotated[float, Range(0, 10, "be between 0 and 10", closed=True)]
# Of sweeps and commands:
Frames = Annotated[float, Range(1, 1e12, "be positive")]
FramesSoFar = Annotated[float, Range(0, 1e12, "be at least 0")]
Rate = Annotated[float, Range(FLOAT_MIN, FLOAT_MAX, "be finite numbers > 0")]
Weight = Annotated[float, Range(0, FLOAT_MAX, "be finite numbers ≥ 0")]
Seed = Annotated[
    int, Range(0, 2**32 - 1, "be whole numbers from 0 to 2³² - 1", closed=True, whole=True)
]
TaskSeed = Annotated[int, Range(0, INT_MAX, "be between 0 and 2³¹ - 1", closed=True)]
Seconds = Annotated[float, Range(0, 1e9, "be a finite number of seconds ≥ 0")]
Seeds = Annotated[int, Range(0, 100_000, "be at least 1")]
FreshSeeds = Annotated[int, Range(0, 100_000, "be 0 or more")]
Members = Annotated[int, Range(1, 100_000, "be at least 1")]
Jobs = Annotated[int, Range(1, 1024, "be at least 1")]
# Ray shares one GPU between experiments, but not several.
Gpus = Annotated[float, Range(0, 1024, "be at least 0"), WholeAboveOne()]
Cores = Annotated[int, Range(1, 4096, "be at least 1")]
Hours = Annotated[float, Range(0.1, 8784, "be at least 0.1")]

# Of numbers whose type states no range.
_UNSTATED = {
    float: Range(-FLOAT_MAX, FLOAT_MAX, "be a finite number"),
    int: Range(-(2**63), 2**63 - 1, "be a number of 64 bits", closed=True),
}


def read_number(text: str) -> float:
    """Converts the text of a number; raises a ValueError if it is not a number, or too small for one.

    >>> read_number("1_000e-3")
    1.0
    """
    number = float(text)
    if number == 0 and any(digit in text.lower().partition("e")[0] for digit in "123456789"):
        raise ValueError(f"{text} is too small")
    return number


def check(name: str, value: Any, kind: Any) -> None:
    """Raises a SettingError with `name` if the value, or one inside it, breaks a rule of its type.

    >>> check("ppo.epochs", 0, Count)
    Traceback (most recent call last):
    splagger.errors.SettingError: ppo.epochs must be at least 1, got 0
    """
    for part, rule in _rules(value, kind):
        problem = rule.problem(part)
        if problem:
            raise SettingError(f"{name} must {problem}, got {part}")


def as_flag(name: str, value: Any) -> bool:
    """Returns a truth value; raises a SettingError for an array of several."""
    try:
        return bool(value)
    except ValueError:
        raise SettingError(f"{name} must be True or False, got {value!r:.80}") from None


def check_fields(owner: Any, prefix: str) -> None:
    """Checks all fields of a dataclass; `prefix` comes before their names in messages."""
    hints = type_hints(type(owner))
    for field in dataclasses.fields(owner):
        check(f"{prefix}{field.name}", getattr(owner, field.name), hints[field.name])


@ft.cache
def type_hints(kind: type) -> dict[str, Any]:
    """Returns the types of a class's fields with their ranges."""
    return typing.get_type_hints(kind, include_extras=True)


def setting_types(owner: Any) -> dict[str, Any]:
    """Returns the types of all settings of an object, which are the public fields of a dataclass.

    Where the annotations of a user's class cannot be evaluated, such as names that only type checkers import, these are
    the types of the present values.
    """
    if not dataclasses.is_dataclass(owner):
        return {}
    fields = [f.name for f in dataclasses.fields(owner) if f.init and not f.name.startswith("_")]
    try:
        hints = type_hints(type(owner))
    except Exception:
        hints = {}
    return {name: hints.get(name, type(getattr(owner, name))) for name in fields}


def _member(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Returns the type of a union to which a value belongs; the first one but None if it is none of them.

    >>> _member("far", (int, str, type(None))), _member(3, (float, type(None)))
    (<class 'str'>, <class 'float'>)
    """
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    return next((kind for kind in kinds if isinstance(value, _bare(kind))), kinds[0])


def _bare(kind: Any) -> type:
    """Returns the class of a type without its range and its parameters."""
    kind = typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind
    kind = typing.get_origin(kind) or kind
    return kind if isinstance(kind, type) else object


@ft.cache
def _stated(kind: Any) -> tuple[Rule, ...]:
    """Returns the rules of an annotated type."""
    return tuple(rule for rule in kind.__metadata__ if isinstance(rule, Rule))


def _rules(value: Any, kind: Any) -> Iterator[tuple[Any, Rule]]:
    """Yields every part of a value with every rule that it must satisfy."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        stated = _stated(kind)
        yield from ((value, rule) for rule in stated)
        if stated and options[0] is int:
            yield value, Whole()
        if not stated:
            yield from _rules(value, options[0])
    elif origin in (types.UnionType, typing.Union):
        if value is not None:
            yield from _rules(value, _member(value, options))
    elif origin is tuple:
        kinds = options[:1] * len(value) if options[-1:] == (...,) else options
        for item, part in zip(value, kinds, strict=True):
            yield from _rules(item, part)
    elif hasattr(kind, "_fields"):  # a named tuple
        for name, item in zip(kind._fields, value, strict=True):
            yield from _rules(item, type_hints(kind)[name])
    elif kind in _UNSTATED and isinstance(value, int | float) and not isinstance(value, bool):
        yield value, _UNSTATED[kind]
