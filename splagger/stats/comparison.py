"""`compare`: methods on any task, with the same statistics as the reproduction of the paper."""

from typing import TYPE_CHECKING, Any

import numpy as np

from splagger.errors import RunError
from splagger.stats.estimates import (
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    over_training,
)
from splagger.stats.evidence import Evidence
from splagger.stats.recorded import RecordedRun, relative
from splagger.stats.returns import REFERENCE
from splagger.stats.selection import Chosen
from splagger.stats.variants import Variant, variants
from splagger.tables import listed

if TYPE_CHECKING:
    import pandas

BEGUN = 0.1  # of the frames of others: an unfinished run with less is not compared


def compare(*roots: Any, reference: str | None = None) -> "pandas.DataFrame":
    """Returns one row per method and settings of the run folders below `roots`, the best first.

    - `training`, `end`: the interquartile mean, at the best rate, of the return over all of training and over its last
      tenth, with 95% bootstrap intervals (`_low`, `_high`).
    - `seeds`, `source`, `diverged`: the number of seeds, whether the rate was chosen on them, and how many diverged;
      these count with their return before training.
    - `settings`: the settings that not all methods share.
    - `probability`: the probability that a seed of this method earns more over training than a seed of `reference`.
    - `is_reference`: whether the others of its task are compared with this row.
    - `frames`, `trained_frames`: frames per run that are compared, and that the longest of its runs was trained for;
      `shared_frames` are those that all of its runs have. `cuts_others`: whether others are cut because this one has
      the fewest.
    - `annealed`: whether the learning rate falls during training. Then a run that is cut does not show what a shorter
      run would have earned.
    - `notes`: runs and curves that do not count, and why.

    Runs of one task are compared over the frames that all of them have, also in the choice of the rate. With a single
    seed there is neither an interval nor a probability. Runs that have only begun, with less than a tenth of the frames
    of others, are left out; the frame's `attrs["left_out"]` names them.

    Raises a RunError if there are no runs, none of `reference`, or several methods of that name.
    """
    import pandas

    runs = Evidence.read_every(*roots).runs
    every = variants(runs)
    trained = _trained(every)
    compared = _at_common_length(trained)
    merit = lambda v: float(interquartile_mean(over_training(compared[v].curves)))  # noqa: E731
    found = sorted(compared, key=lambda v: (v.env, v.task, -merit(v)))
    reference = None if reference is None else _method_called(reference, found)
    rows = []
    for one in found:
        neighbors = [v for v in found if v.env == one.env]
        rivals = [v for v in neighbors if v.task == one.task]
        rows.append(_row(one, neighbors, rivals, _reference(rivals, reference), compared))
    frame = pandas.DataFrame(rows)
    frame.attrs["left_out"] = _left_out(runs, [one for one in every if one not in trained])
    return frame


def _method_called(name: str, found: list[Variant]) -> str:
    """Returns the method of this name or alias, as runs record it: custom ones as "module:name"."""
    methods = {v.method for v in found}
    if name in methods:
        return name
    own = sorted({v.method for v in found if v.plan.get("method", {}).get("name") == name})
    if len(own) > 1:
        raise RunError(f"several methods are called {name!r}: {', '.join(own)}; name one of them")
    if own:
        return own[0]
    from splagger.methods import ALIASES  # needs JAX

    if ALIASES.get(name) in methods:
        return ALIASES[name]
    raise RunError(f"no run of {name!r}; there are {', '.join(sorted(methods))}")


def _trained(found: list[Variant]) -> list[Variant]:
    """Returns the variants that have more than begun, or all of a task where none has.

    A run has only begun if it still trains and has less than a tenth of the frames of another one: the comparison
    would end where it is.
    """
    longest = {one.task: max(o.trained for o in found if o.task == one.task) for one in found}
    return [one for one in found if one.ended or one.trained >= BEGUN * longest[one.task]]


def _left_out(runs: list[RecordedRun], begun: list[Variant]) -> str:
    """Returns which runs are not compared because they have only begun; empty if all are."""
    names = [f"{relative(run.path)} (not evaluated yet)" for run in runs if not run.members]
    names += [
        f"{' '.join([one.method, *one.settings])} on {one.env} ({_so_far(one)})" for one in begun
    ]
    return f"not compared: {listed(names)}" if names else ""


def _so_far(one: Variant) -> str:
    if one.trained == 0:
        return "only evaluated before training"
    return f"unfinished, {one.trained:,} frames"


def _at_common_length(found: list[Variant]) -> dict[Variant, Chosen]:
    """Returns the curves of each variant at its best rate, at the same frames for all variants of a task.

    They end with the shortest. The frames are those of the variant with the fewest evaluations until then: a mean over
    all of its own evaluations would weigh the parts of training differently for each variant.
    """
    grids: dict[str, np.ndarray] = {}
    for task in {one.task for one in found}:
        frames = [one.members.frames for one in found if one.task == task]
        end = min(f[-1] for f in frames)
        grids[task] = min((f[f <= end] for f in frames), key=len)
    return {one: one.chosen(at=grids[one.task]) for one in found}


def _reference(rivals: list[Variant], name: str | None) -> Variant | None:
    """Returns the variant called `name`, None if there is none; without a name, SplAgger or else the best."""
    named = [v for v in rivals if v.method == (name or REFERENCE)]
    if named or name is None:
        return (named or rivals)[0]
    return None


def _row(
    one: Variant,
    neighbors: list[Variant],
    rivals: list[Variant],
    reference: Variant | None,
    compared: dict[Variant, Chosen],
) -> dict[str, Any]:
    chosen = compared[one]
    other = chosen if reference is None else compared[reference]
    training = estimate(interquartile_mean, over_training(chosen.curves))
    end = estimate(interquartile_mean, at_the_end(chosen.curves))
    return {
        "env": one.env,
        "method": one.method,
        "settings": ", ".join(one.distinguishing(neighbors)),
        "frames": int(chosen.frames[-1]),
        "trained_frames": one.trained,
        "shared_frames": int(one.members.frames[-1]),
        "cuts_others": _cuts_others(one, rivals, compared),
        "annealed": one.anneals,
        "rate": chosen.rate,
        "seeds": len(chosen.curves),
        "source": chosen.source,
        "diverged": chosen.diverged,
        "training": training.value,
        "training_low": training.low,
        "training_high": training.high,
        "end": end.value,
        "end_low": end.low,
        "end_high": end.high,
        "reference": reference.method if reference else "",
        "is_reference": one is reference,
        "probability": _probability(chosen, other),
        "notes": "; ".join([*one.notes, *_early(one, chosen)]),
    }


def _cuts_others(one: Variant, rivals: list[Variant], compared: dict[Variant, Chosen]) -> bool:
    is_shortest = one.members.frames[-1] == min(v.members.frames[-1] for v in rivals)
    return bool(is_shortest and any(compared[v].frames[-1] < v.trained for v in rivals))


def _early(one: Variant, chosen: Chosen) -> list[str]:
    is_untrained = bool(chosen.frames[-1] == 0 < one.trained)
    return ["evaluated too seldom: compared before training"] * is_untrained


def _probability(one: Chosen, other: Chosen) -> float | None:
    if one is other or min(len(one.curves), len(other.curves)) < 2:
        return None
    return float(improvement(over_training(one.curves), over_training(other.curves)))
