"""A short storm of command lines, and that the storm itself notices failures."""

import random
import typing

import pytest

from splagger import cli
from splagger.cli.list_commands import List
from tests.storm import commands, words


def test_random_command_lines_are_accepted_or_refused_in_one_line(trained):
    outcome = commands.storm(tries=100, seed=0, run=trained)
    assert outcome.failures == []
    assert set(outcome.counts) == {"accepted", "refused", "usage"}
    assert outcome.counts["refused"] > 20 and outcome.counts["accepted"] > 10


def test_every_command_and_every_option_is_tried():
    lines = [words.line(random.Random(seed)).words for seed in range(4000)]
    found = words.commands()
    assert len(found) == len(typing.get_args(cli.Command))
    for name, command in found.items():
        seen = {word for line in lines if line[0] == name for word in line}
        options = [a for a in words.arguments_of(command) if not a.positional]
        missing = [a.name for a in options if f"--{a.name.replace('_', '-')}" not in seen]
        assert missing == [], name


def test_a_command_line_can_be_repeated():
    first = words.line(random.Random(7))
    assert words.line(random.Random(7)) == first
    assert words.line(random.Random(8)) != first


ENDS = {
    "HANG": lambda _: exec("while True: pass"),
    "TRACEBACK": lambda _: 1 / 0,
    "UNCLEAR": lambda _: exit(3),
}


@pytest.mark.parametrize("end", ENDS)
def test_failures_are_noticed(end, trained, monkeypatch):
    monkeypatch.setattr(List, "__call__", ENDS[end])
    monkeypatch.setattr(words, "line", lambda rng: words.Line(["list"]))
    monkeypatch.setattr(commands, "LIMIT", 1.0)
    outcome = commands.storm(tries=1, seed=5, run=trained)
    assert outcome.counts == {end: 1}
    (failure,) = outcome.failures
    assert failure.startswith(end) and "--tries 1 --seed 5" in failure


def test_accepted_nonsense_is_noticed(trained, monkeypatch):
    monkeypatch.setattr(words, "line", lambda rng: words.Line(["list"], "it is Monday"))
    assert commands.storm(tries=1, run=trained).counts == {"NONSENSE ACCEPTED": 1}
