"""The axes of a sweep, as rows of data.

To add an axis, add a row here (with `newer=True`), a field in `Tunables`, and use that field in `ppo/train.py`. This table drives grid points, tunables, the command line, digests and the columns of curves. Needs no JAX.
"""

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from splagger.errors import SettingError
from splagger.paper_numbers import PAPER_RATES, PAPER_SEEDS
from splagger.ranges import Rate, Seed, Seeds, Weight, check
from splagger.tables import lookup

Plan = Mapping[str, Any]  # the description of a run as plain data, see `Run.describe`


@dataclass(frozen=True)
class Axis:
    """One quantity in which the members of a run may differ.

    - `name`: the column in curves.csv; `plural` names the values in run.json, in Python and on the command line.
    - `tunable`: the field of `Tunables` that holds the value; None for the seed, which makes the random key.
    - `default`: computes the default values from the run's plan.
    - `help`: the help text on the command line.
    - `kind`: the type of its values, with their range.
    - `setting`: the setting that holds the default.
    - `needs`: whether the run described by a plan depends on the axis.
    - `newer`: the axis is left out of digests at its default, so that runs from before it keep theirs. Their curves
      lack its column, which then holds the default.
    """

    name: str
    plural: str
    tunable: str | None
    default: Callable[[Plan], tuple[float | int, ...]]
    help: str
    kind: Any = Weight
    setting: str | None = None
    needs: Callable[[Plan], bool] = lambda plan: True
    newer: bool = False


def first_temperature(aggregator: Any) -> float | None:
    """Returns the temperature of a described aggregator or of the first one inside it; None if there is none.

    >>> first_temperature({"kind": "Halves", "second": {"kind": "Softmax", "temperature": 0.1}})
    0.1
    """
    if not isinstance(aggregator, Mapping):
        return None
    temperature, is_ours = aggregator.get("temperature"), "code" not in aggregator
    if type(temperature) in (int, float) or (is_ours and temperature is not None):
        return float(
            temperature
        )  # in a class of others, text or several numbers mean something else
    inner = map(first_temperature, aggregator.values())
    return next((found for found in inner if found is not None), None)


AXES = (
    Axis(
        "rate",
        "rates",
        "learning_rate",
        lambda plan: PAPER_RATES,
        "Learning rates; the paper's are 3e-3 1e-3 3e-4 1e-4 3e-5.",
        Rate,
    ),
    Axis(
        "entropy_weight",
        "entropy_weights",
        "entropy_weight",
        lambda plan: (float(plan["ppo"]["entropy"]),),
        "Weights of the entropy bonus.",
        setting="ppo.entropy",
    ),
    Axis(
        "kl_weight",
        "kl_weights",
        "kl_weight",
        lambda plan: (float(plan["ppo"]["kl_weight"]),),
        "Weights of the KL penalty of a stochastic latent (PEARL).",
        setting="ppo.kl_weight",
        needs=lambda plan: plan["method"]["latent"]["kind"] not in ("Deterministic", "Belief"),
    ),
    Axis(
        "temperature",
        "temperatures",
        "temperature",
        lambda plan: (first_temperature(plan["method"].get("aggregator")) or 0.0,),
        "Initial temperatures of softmax aggregators. If one has several, of the first; the others keep their ratio.",
        Rate,
        setting="method.aggregator.temperature",
        needs=lambda plan: (
            first_temperature(plan["method"].get("aggregator")) is not None
            and plan["method"].get("skip", 0) < 1
        ),
    ),
    Axis("seed", "seeds", None, lambda plan: tuple(range(PAPER_SEEDS)), "Random seeds.", Seed),
)
BY_PLURAL: dict[str, Axis] = {axis.plural: axis for axis in AXES}
PLURALS = tuple(BY_PLURAL)
# A race (`splagger.training.race`) stops rates at these fractions of training if they are behind by this margin.
RACE_AT, RACE_MARGIN = (0.1, 0.25, 0.5), 0.2
# All axes but rate and seed: members that differ in one of these are different settings of a method.
SETTINGS = tuple(axis for axis in AXES if axis.name not in ("rate", "seed"))


def grid_of(plan: Plan, given: Mapping[str, Any]) -> tuple[tuple[float | int, ...], ...]:
    """The values of every axis: those given, or the defaults."""
    for plural in given:
        if plural not in BY_PLURAL:
            raise SettingError(_unknown(plural))
    grid = []
    for axis in AXES:
        values = _plain_values(given.get(axis.plural))
        if axis.name == "seed" and isinstance(values, numbers.Real):
            check("seeds", values, Seeds)
            values = range(int(values))
        no_values = values is None or (not isinstance(values, numbers.Real) and len(values) == 0)
        is_required = axis.name in ("rate", "seed")
        default = axis.default(plan)
        if isinstance(values, Sequence):
            check(f"the number of {axis.plural}", len(values), Seeds)
        if no_values and not (is_required and values is not None):
            grid.append(default)
        elif isinstance(values, Sequence) and tuple(values) == default:
            grid.append(default)  # also 0, the temperature of a method without one
        else:
            grid.append(numbers_of(axis.plural, values))
    return tuple(grid)


# The other arguments of `splagger.train`, and what to write instead of some that it does not have.
ARGUMENTS = ("env", "method", "frames", "out", "settings", "force", "show", "save_every")
ARGUMENTS += ("episodes", "race", "snapshot_every", "on_metrics")
INSTEAD = {
    "first_seed": "pass seeds=[2, 3, 4] for seeds from 2 on",
    "vary": "splagger.sweep has it",
    "small": "pass settings=splagger.SMALL",
    "rate": "pass rates=1e-3",
    "seed": "pass seeds=[0]",
    **dict.fromkeys(("lr", "learning_rate", "learning_rates"), "pass rates=[1e-3]"),
}


def _unknown(name: str) -> str:
    """Returns the message about an argument that does not exist."""
    if name in INSTEAD:
        return f"no argument {name!r}: {INSTEAD[name]}"
    try:
        lookup(dict.fromkeys((*PLURALS, *ARGUMENTS)), name, "argument")
    except SettingError as error:
        return f"{error}; settings are written settings={{'ppo.clip': 0.1}}"
    return f"no argument {name!r} here: splagger.train has it"


def check_given_once(axes: Mapping[str, Any], settings: Mapping[str, Any] | None) -> None:
    """Refuses values of an axis beside the setting that holds its default, which would then change nothing."""
    for axis in AXES:
        if axis.setting in (settings or {}) and axes.get(axis.plural) is not None:
            raise SettingError(
                f"{axis.plural} and {axis.setting} are one setting; give only one of them"
            )


def _plain_values(given: Any) -> Any:
    """Converts scalars of NumPy and JAX to numbers, and other iterables than texts to tuples."""
    if getattr(given, "ndim", None) == 0:
        return given.item()
    iterable = isinstance(given, Iterable) and not isinstance(given, str | Sequence)
    return tuple(given) if iterable else given


def numbers_of(plural: str, given: Any) -> tuple[float | int, ...]:
    """Converts one number or several to a tuple of floats (ints for seeds) and checks their range."""
    values = [given] if isinstance(given, numbers.Real) else given
    kind = BY_PLURAL[plural].kind
    try:
        if isinstance(values, str):  # whose characters may be digits
            raise TypeError
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(
            f"{plural} must be a number or a list of numbers, got {given!r}"
        ) from None
    if kind is Seed:
        found = tuple(int(value) if value.is_integer() else value for value in found)
    for value in found:
        check(plural, value, kind)
    return found
