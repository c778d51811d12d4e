"""Progress: lines for logs, a live view for terminals, nothing on request."""

import io
import math
import re
import sys

import pytest

from splagger.training import progress, runner
from tests.tiny import tiny

RETURNS = [1.0, 2.5, math.nan, math.nan]


def lines(every: float) -> list[str]:
    """Returns what is written during three blocks and a note."""
    written = []
    view = progress.Lines("title", tiny().points, 3, every, written.append)
    with view:
        view.begin(7.4)
        for update in (1, 2, 3):
            view.show(update, 80 * update, 100.0, RETURNS)
        view.note("a note")
    return written


def updates(written: list[str]) -> list[str]:
    return [line for line in written if "update " in line]


def test_lines_show_the_progress_of_a_run():
    written = lines(every=0.0)
    assert ["compiling" in written[0], "compiled in 7 s" in written[1]] == [True, True]
    first = updates(written)[0]
    for part in ("title", "update 1/3", "80 frames per run", "100 frames/s", "best return 2.50"):
        assert part in first
    assert "0:06 to go" in first  # 2 updates × 80 frames × 4 runs at 100 frames per second


def test_the_return_before_training_is_the_first_result(capsys):
    written = []
    progress.Lines("title", tiny().points, 3, write=written.append).untrained(RETURNS)
    assert written == ["title  before training  best return 2.50"]
    with progress.LiveView("title", tiny().points, 3) as view:
        view.untrained(RETURNS)
    assert "best return 2.50 before training" in capsys.readouterr().err


def test_rare_lines_include_the_first_the_last_and_notes():
    assert len(updates(lines(every=0.0))) == 3
    rare = lines(every=1000.0)
    assert ["1/3" in updates(rare)[0], "3/3" in updates(rare)[1]] == [True, True]
    assert len(updates(rare)) == 2 and rare[-1] == "a note"


@pytest.mark.parametrize("early", [True, False], ids=["before", "during"])
def test_the_live_view_shows_rates_stopped_runs_and_notes(early, capsys):
    view = progress.LiveView("title", tiny().points, 3)
    if early:
        view.note("a note")
    with view:
        view.begin(7.4)
        view.show(1, 80, 100.0, RETURNS)
        if not early:
            view.note("a note")
    seen = capsys.readouterr().err
    for part in ("title", "a note", "0.001", "1.75", "2.50", "2/2", "0.0003", "stopped", "0/2"):
        assert part in seen
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    heads = [line.split() for line in plain.splitlines() if "mean return" in line]
    assert heads and heads[0] == ["rate", "mean", "return", "best", "seeds"]  # on its own line


def test_the_view_fits_where_the_output_goes():
    assert type(progress.choose("title", tiny().points, 3, show=False)) is progress.Silent
    assert type(progress.choose("title", tiny().points, 3)) is progress.Lines


def test_long_times_are_shown_in_hours():
    view = progress.Lines("title", tiny().points, 3, 0.0, print)
    assert view.remaining(1, 80, 640 / 29_000) == "8:03:20 to go"
    assert view.remaining(1, 80, 640 / 75) == "1:15 to go"


def test_lines_are_printed_whatever_the_encoding_lacks(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    with progress.Lines("a · b", tiny().points, 3):
        pass
    assert raw.getvalue() == b"a ? b  compiling ?\n"


def test_square_brackets_in_names_are_not_markup(capsys):
    with progress.LiveView("rnn[k=2][red]x", tiny().points, 3) as view:
        view.begin(7.4)
        view.show(1, 80, 100.0, RETURNS)
        view.note("runs[v2]/t-ls is damaged")
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "rnn[k=2][red]x" in seen and "runs[v2]/t-ls is damaged" in seen


def test_a_long_title_ends_with_a_whole_setting(compiled_once, tmp_path, capsys):
    runner.execute(tiny(frames=1), tmp_path, show="lines")
    (title, *_) = "".join(capsys.readouterr()).partition("  ")
    words = title.split(" · ")[2].removesuffix(" …").rstrip(",").split(", ")
    assert title.split(" · ")[2].endswith(" …") and all("=" in word for word in words)
