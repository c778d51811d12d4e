"""Checks of a command's options before it runs: ranges, paths, and options that are given twice."""

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from splagger.errors import RunError, SettingError
from splagger.ranges import (
    Episodes,
    Frames,
    FramesSoFar,
    Jobs,
    Seconds,
    check,
    read_number,
    type_hints,
)
from splagger.tables import lookup


class WritableFolder:
    """The rule of a folder that is written; it need not exist."""

    def problem(self, value: Path) -> str | None:
        return "be a folder, not a file" if value.is_file() else None


@dataclass(frozen=True)
class WritableFile:
    """The rule of a file that is written; its name must end with one of `endings`, if there are any."""

    endings: tuple[str, ...] = ()

    def problem(self, value: Path) -> str | None:
        if value.is_dir():
            return "be a file, not a folder"
        if self.endings and value.suffix.lower() not in self.endings:
            return f"end with {' or '.join(self.endings)}"
        return None if value.parent.is_dir() else "be in an existing folder"


def frames_of(words: list[str]) -> float:
    """Converts a number of frames, which may end in k or M as tables write it.

    >>> frames_of(["1.5M"]), frames_of(["20k"]), frames_of(["3e6"])
    (1500000.0, 20000.0, 3000000.0)
    >>> frames_of(["8.12M"])  # 8119999.999999999 without rounding
    8120000.0
    """
    text = words[0]
    factor = {"k": 1e3, "m": 1e6}.get(text[-1:].lower(), 1.0)
    try:
        return round(read_number(text[:-1] if factor > 1 else text) * factor, 3)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a number of frames, such as 200000, 2e5 or 1.5M"
        ) from None


_FRAMES = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="FRAMES",
    instance_from_str=frames_of,
    is_instance=lambda value: value is None or isinstance(value, int | float),
    str_from_instance=lambda value: [f"{value:g}" if value is not None else "None"],
)


def written(metavar: str, several: bool = False) -> Any:
    """Returns how an option is written in help texts, which name its default where it is not obvious."""
    words = f"{metavar} [{metavar} ...]" if several else metavar
    return tyro.conf.arg(metavar=words, help_behavior_hint="")


EnvOption = Annotated[str | None, written("ENV")]
EnvsOption = Annotated[tuple[str, ...], written("ENV", several=True)]
MethodOption = Annotated[str | None, written("METHOD")]
MethodsOption = Annotated[tuple[str, ...], written("METHOD", several=True)]
FramesOption = Annotated[Frames | None, _FRAMES, written("FRAMES")]
FramesSoFarOption = Annotated[FramesSoFar | None, _FRAMES, written("FRAMES")]
RateOption = Annotated[float | None, written("RATE")]
SeedOption = Annotated[int | None, written("SEED")]
EpisodesOption = Annotated[Episodes | None, written("COUNT")]
JobsOption = Annotated[Jobs | None, written("COUNT")]
SecondsOption = Annotated[Seconds, tyro.conf.arg(metavar="SECONDS")]
StepOption = Annotated[int | None, written("STEP")]
AssignmentsOption = Annotated[tuple[str, ...], written("NAME=VALUE", several=True)]
OutputFile = Annotated[Path, WritableFile()]
OptionalFile = Annotated[Path | None, WritableFile(), written("PATH")]
OutputFolder = Annotated[Path, WritableFolder()]


class Option(NamedTuple):
    """An option of a parsed command."""

    name: str
    kind: Any
    value: Any
    default: Any
    checks_itself: bool = False  # together with the dataclass that it belongs to

    @property
    def shown(self) -> str:
        """The name in messages: that of the help text."""
        notes = getattr(self.kind, "__metadata__", ())
        is_positional = tyro.conf.Positional in notes
        names = [getattr(note, "metavar", None) for note in notes] if is_positional else []
        return next(filter(None, names), f"--{self.name}")


def options_of(command: Any) -> Iterator[Option]:
    """Yields the options of a command, also those of nested dataclasses."""
    hints = type_hints(type(command))
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if not dataclasses.is_dataclass(value):
            name, checks = field.name.replace("_", "-"), hasattr(command, "check")
            yield Option(name, hints[field.name], value, field.default, checks)
        else:
            yield from options_of(value)


def check_option_names(words: Sequence[str], kind: type) -> None:
    """Raises a SettingError with similar names for an option that a command does not have.

    - `words`: the name of the command, and what follows it.
    - `kind`: the class of the command.
    """
    known = {f"--{name}": None for name in _names(kind)} | {"--help": None}
    for word in words[1:]:
        if word.startswith("--") and not word.startswith("--tyro-"):
            lookup(known, f"--{_name(word)}", "option")


def check_no_more(words: Sequence[str], unknown: Sequence[str]) -> None:
    """Raises a SettingError for words that are neither an option nor one of the command's arguments."""
    if unknown:
        several = "; `splagger sweep` trains several methods" * (words[0] == "train")
        raise SettingError(f"`splagger {words[0]}` does not take {unknown[0]!r}{several}")


def _names(kind: Any) -> Iterator[str]:
    """Yields the names of the options of a command's class, also those of nested dataclasses."""
    for name, hint in type_hints(kind).items():
        inner = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
        if dataclasses.is_dataclass(inner):
            yield from _names(inner)
        elif tyro.conf.Positional not in getattr(hint, "__metadata__", ()):
            yield name.replace("_", "-")


def check_options(command: Any, words: Sequence[str]) -> None:
    """Raises a SettingError for an option that is given twice, without a value, or out of range.

    - `command`: the parsed command.
    - `words`: the words from which it was parsed.
    """
    if "" in words:
        raise SettingError("an argument is empty: ''")
    options = {option.name: option for option in options_of(command)}
    given = [_name(word) for word in words if _is_option(word)]
    for name in given:
        if given.count(name) > 1:
            raise SettingError(
                f"--{name} is given twice; if it takes several values, list them after one --{name}"
            )
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        option = options.get(_name(word)) if word.startswith("--") and "=" not in word else None
        if option and _takes_several(option.kind) and after.startswith("--"):
            raise SettingError(f"{word} needs at least one value")
    for option in options.values():
        if option.value != option.default and not option.checks_itself:
            check(option.shown, option.value, option.kind)


def check_exists(folder: Path, option: str, default: Path) -> None:
    """Raises a RunError if a folder does not exist; the default may be missing."""
    if folder != default and not folder.is_dir():
        raise RunError(f"there is no folder {folder}; {option} takes an existing one")


def _is_option(word: str) -> bool:
    return word.startswith("--") or (len(word) == 2 and word[0] == "-" and word[1].isalpha())


def _name(word: str) -> str:
    """The name of an option without its dashes."""
    name = word.partition("=")[0].lstrip("-").replace("_", "-")
    return {"o": "output"}.get(name, name)


def _takes_several(kind: Any) -> bool:
    while typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    return typing.get_origin(kind) is tuple
