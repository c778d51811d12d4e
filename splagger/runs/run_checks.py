"""What a run must satisfy, checked before anything is compiled or written."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from splagger.aggregators import check_aggregator, check_parameters, temperatures
from splagger.bridges import trial
from splagger.envs import MetaEnv, check_env
from splagger.errors import SettingError
from splagger.identity import consists_of_ours, plain
from splagger.methods import METHODS
from splagger.network import check_fit
from splagger.ppo.settings import MAX_UPDATES
from splagger.ranges import Members, check
from splagger.registry import ENVS
from splagger.runs.axes import AXES
from splagger.runs.settings import override

if TYPE_CHECKING:
    from splagger.runs.run import Run


def check_run(run: "Run") -> None:
    """Raises a SettingError for a run that cannot be trained."""
    _check_grid(run)
    if run.race and len(run.rates) < 2:
        raise SettingError("a race needs at least two rates")
    if run.config.updates > MAX_UPDATES:
        raise SettingError(
            f"frames={run.frames:,} are {run.config.updates:,} updates; a run can have at most {MAX_UPDATES:,}"
        )
    if run.method.skip < 1:
        aggregator = run.method.aggregator  # the tests of this package cover its own
        (check_parameters if consists_of_ours(aggregator) else check_aggregator)(aggregator)
    check_fit(run.method, run.row.network)
    _check_environment(run)


def check_not_mistaken(run: "Run") -> None:
    """Refuses a method or environment that has the name of a registered one, and differs in more than its settings."""
    named = METHODS.get(run.method.name, run.method), ENVS.get(run.row.name, run.row)
    method, row = (run.method, named[1]) if run.method_path else named
    groups = ("method.", method, run.method), ("env.", row.env, run.row.env)
    for group, registered, given in groups:
        settings = {k: v for k, v in run.overrides if k.startswith(group)}
        try:
            new_row, new_method = override(row, method, settings)
        except SettingError:  # settings of another class
            is_other = True
        else:
            new = new_method if group == "method." else new_row.env
            is_other = registered is not given and plain(new) != plain(given)
        if is_other:
            name = run.method.name if group == "method." else run.row.name
            raise SettingError(
                f"{name!r} is the name of a registered {'method' if group == 'method.' else 'environment'}, from which "
                "this one differs in more than numbers: tables would take one for the other. Give it a name of its own"
            )


def check_varied(run: "Run", names: Iterable[str]) -> None:
    """Refuses settings to vary that the method does not use: all values would give the same agents."""
    plan, named = run.describe(), set(names)
    for axis in AXES:
        if axis.setting in named and not axis.needs(plan):
            raise SettingError(f"method {run.method.name!r} does not use {axis.setting}")


def _check_grid(run: "Run") -> None:
    """Refuses axes without values, with equal ones, or that the method does not use: all members would be the same agent."""
    plan = run.describe()
    for axis in AXES:
        values = run.values(axis.plural)
        if not values:
            raise SettingError(f"a run needs at least one {axis.name.replace('_', ' ')}")
        if len(set(values)) < len(values):
            raise SettingError("a value of rates, seeds or another axis is listed twice")
        is_used = axis.needs(plan) and (
            axis.name != "temperature" or temperatures(run.method.aggregator)
        )
        if not is_used and values != axis.default(plan):
            raise SettingError(f"method {run.method.name!r} does not use {axis.plural}")
    check("the number of runs (rates × seeds × …)", run.size, Members)


def _check_environment(run: "Run") -> None:
    """Raises for anything that cannot be described, hashed or traced."""
    name, meta, env = run.row.name, run.row.meta, run.row.env
    if meta.horizon < 1:
        raise SettingError(f"{name}: its horizon must be at least 1 step")
    try:
        hash(run.config)
        run.digest  # noqa: B018
    except TypeError as error:
        if not (dataclasses.is_dataclass(env) or hasattr(env, "describe")):
            raise SettingError(
                f"{name}: make {type(env).__name__} an equinox.Module or a frozen dataclass, so that its settings are known"
            ) from None
        raise SettingError(
            f"{name}: settings of an environment and a method must be plain numbers, strings and tuples ({error})"
        ) from None
    trial(meta)
    if isinstance(meta, MetaEnv):
        check_env(meta.env)
