"""Random command lines, made from the types of the commands. New options need nothing here."""

import dataclasses
import random
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro

from splagger import ENVS, METHODS, cli
from splagger.analysis import ANALYSES
from splagger.ppo.settings import PPOConfig
from splagger.ranges import type_hints

# Values that no number of any option or setting may have.
NONSENSE = (
    "nan",
    "inf",
    "-inf",
    "1e39",
    "-1e39",
    "1e400",
    "",
    "abc",
    "১২x",
    "1,5",
    "0x",
)
HUGE = (str(10**20), "1e30", "1e300")  # nonsense for whole numbers
SUSPECT = (*HUGE, "-1", "0", "-0.0", "1e-400", "0.5", "1e6", "1_000_000", "1000000000")
USUAL = ("1", "2", "3", "1e-3", "0.1")
TEXTS = (
    "",
    " ",
    "nonsense",
    "ünï-çødé 🎲",
    "a" * 3000,
    "../..",
    "--",
    "-",
    "=",
    "gym:",
    "jax:x",
    ":",
)
NAMES = {
    "env": ("t-ls-small", "t-ls", "gym:CartPole-v1", "gym:No-v0", "jax:os:getcwd", "gymnax:None"),
    "method": (*METHODS, "os:getcwd", "nowhere:x"),
    "name": ("memory/t-ls", "memory", "all", *ANALYSES),
    "reference": ("splagger", "rnn"),
}
ODD_FILES = ("nowhere", "folder", "empty", "binary", "text.txt", "", "no/where/x.gif", "ünï/🎲")
GOOD_FILES = ("run", "agent.npz")


class Word(NamedTuple):
    """A word of a command line, and whether no option may accept it."""

    text: str
    nonsense: bool = False


@dataclass(frozen=True)
class Argument:
    """An option or a positional argument of a command."""

    name: str
    kind: Any
    positional: bool
    required: bool


@dataclass(frozen=True)
class Line:
    """The words of a command line, and why it must be refused; empty if it may be accepted."""

    words: list[str]
    nonsense: str = ""


def commands() -> dict[str, type]:
    """Returns all commands by name."""
    found = {}
    for option in typing.get_args(cli.Command):
        kind, about = typing.get_args(option)
        found[about.name] = kind
    return found


def arguments_of(command: type) -> list[Argument]:
    """Returns the arguments of a command, also those of nested dataclasses."""
    found, hints = [], type_hints(command)
    for field in dataclasses.fields(command):
        kind = hints[field.name]
        if dataclasses.is_dataclass(plain(kind)):
            found += arguments_of(plain(kind))
            continue
        positional = tyro.conf.Positional in getattr(kind, "__metadata__", ())
        required = field.default is dataclasses.MISSING
        found.append(Argument(field.name, kind, positional, required))
    return found


def plain(kind: Any) -> Any:
    """Returns a type without its annotations and without None."""
    if typing.get_origin(kind) is Annotated:
        return plain(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return plain(next(k for k in typing.get_args(kind) if k is not type(None)))
    return kind


def line(rng: random.Random) -> Line:
    """Returns a random command line: mostly valid, with a few random options and mistakes."""
    options = {name: arguments_of(command) for name, command in commands().items()}
    name = rng.choices(list(options), [len(found) + 2 for found in options.values()])[0]
    arguments = options[name]
    words, nonsense = [name], []
    for argument in arguments:
        if argument.required and rng.random() > 0.03:
            add(words, nonsense, argument, rng, odd=rng.random() < 0.15)
    optional = [a for a in arguments if not a.required]
    for argument in rng.sample(optional, min(len(optional), rng.choice((0, 1, 1, 2, 3)))):
        add(words, nonsense, argument, rng, odd=rng.random() < 0.7)
        if rng.random() < 0.03 and not argument.positional:
            add(words, nonsense, argument, rng, odd=False)
            nonsense.append(f"--{argument.name} twice")
    if rng.random() < 0.02:
        words.append("--unknown-option")
        nonsense.append("an unknown option")
    return Line(words, "; ".join(nonsense))


def add(words: list[str], nonsense: list[str], argument: Argument, rng: random.Random, odd: bool):
    """Appends an argument with its values to a command line."""
    kind, option = plain(argument.kind), f"--{argument.name.replace('_', '-')}"
    if kind is bool:
        words.append(rng.choice((option, f"--no-{option[2:]}")))
        return
    if not argument.positional:
        words.append(option)
    several = typing.get_origin(kind) is tuple
    count = rng.choice((1, 1, 2, 3)) if several else 1
    if several and odd and rng.random() < 0.1:
        count = 0
        if not argument.positional and not argument.required:
            nonsense.append(f"{option} without a value")
    element = plain(typing.get_args(kind)[0]) if several else kind
    for _ in range(count):
        word = value(argument.name, element, rng, odd)
        words.append(word.text)
        if word.nonsense:
            nonsense.append(f"{argument.name}={word.text[:30]!r}")


def value(name: str, kind: Any, rng: random.Random, odd: bool) -> Word:
    """Returns a random value of a type."""
    if name == "set":
        return setting(rng, odd)
    if name == "rates":
        kind = float
    if kind in (int, float):
        return number(rng, odd, kind is int)
    if kind is Path:
        path = rng.choice(ODD_FILES if odd else GOOD_FILES)
        return Word(path, not path)
    known = next((NAMES[key] for key in NAMES if name.startswith(key)), ())
    text = rng.choice(TEXTS if odd or not known else known)
    return Word(text, not text)


def number(rng: random.Random, odd: bool, whole: bool) -> Word:
    if not odd:
        return Word(rng.choice(USUAL))
    text = rng.choice((*NONSENSE, *SUSPECT))
    return Word(text, text in NONSENSE or (whole and text in HUGE))


def setting(rng: random.Random, odd: bool) -> Word:
    """Returns an assignment of --set to a field of the settings, or one that is not an assignment."""
    if odd and rng.random() < 0.2:
        text = rng.choice(
            ("ppo.nothing=1", "ppo", "ppo.=1", "=", "ppo.clip", "x.y=z", "ppo.clip.x=1")
        )
        return Word(text, True)
    from splagger.methods import Method
    from splagger.network import Network

    env = ENVS[rng.choice(("t-ls-small", "planning-small", "walker-small"))].env
    groups = {"ppo": PPOConfig, "network": Network, "method": Method, "env": type(env)}
    group = rng.choice(sorted(groups))
    hints = type_hints(groups[group])
    field = rng.choice([f.name for f in dataclasses.fields(groups[group])])
    kind = plain(hints[field])
    several = typing.get_origin(kind) is tuple or hasattr(kind, "_fields")
    text = (
        number(rng, odd, kind is int)
        if kind in (int, float) or several
        else Word(rng.choice(TEXTS))
    )
    if several and rng.random() < 0.5:
        text = Word(f"{text.text},{rng.choice(USUAL)}", text.nonsense and "," not in text.text)
    nonsense = text.nonsense and not (several and text.text in ("", "1,5", ",1"))
    return Word(f"{group}.{field}={text.text}", nonsense)
