"""The command line: help, one clear line for every mistake, and each command once."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from splagger import ENVS, METHODS
from splagger.cli import main
from splagger.registry import PAPER_RATES
from splagger.runs.folder import find
from splagger.training import runner
from tests.tiny import (
    BATCH,
    MAIN,
    SETTINGS,
    UPDATES,
    arguments,
    contents,
    finish,
    start,
    tiny,
)

GRID = ("rates", "seeds", "first-seed", "frames", "episodes", "entropy-weights", "kl-weights")
GRID += ("temperatures", "set", "out", "save-every")
OPTIONS_OF_ANALYSES = ("length", "independent", "jacobian", "real", "task-seed", "every-seed")
OPTIONS_OF_ANALYSES += ("env", "methods", "seeds")
OPTIONS = {
    "list": ("json",),
    "train": (*GRID, "force"),
    "sweep": (*GRID, "envs", "methods", "jobs"),
    "reproduce": ("out", "analyses", "fresh", "jobs", "save-every", "plan"),
    "evaluate": ("tasks", "rate", "seed"),
    "watch": ("output", "task-seed", "rate", "seed"),
    "plot": ("output",),
    "figure": ("runs", "analyses", "out"),
    "report": ("runs", "analyses", "output"),
    "analyse": (*OPTIONS_OF_ANALYSES, "run", "out"),
    "analyze": (*OPTIONS_OF_ANALYSES, "run", "out"),
    "bench": ("runs", "blocks", "set", "json"),
}


def refused(capsys, *args) -> str:
    """The one line that a mistake is answered with."""
    with pytest.raises(SystemExit) as end:
        main(list(args))
    seen = capsys.readouterr()
    assert end.value.code == 2
    assert seen.out == ""
    assert seen.err.startswith("splagger: ") and seen.err.endswith("\n")
    assert len(seen.err.splitlines()) == 1
    return seen.err


@pytest.mark.parametrize("command", OPTIONS)
def test_help_tells_every_option(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert not end.value.code
    assert [option for option in OPTIONS[command] if f"--{option}" not in text] == []


def test_help_tells_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert [command for command in OPTIONS if command not in text] == []


def test_list_for_programs_has_every_name(capsys):
    main(["list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert set(listed["environments"]) == set(ENVS)
    assert set(listed["methods"]) == set(METHODS)
    assert listed["environments"]["t-ls"] == {
        "summary": ENVS["t-ls"].summary,
        "episodes": 4,
        "frames": 1_500_000,
    }
    assert {METHODS[alias].name for alias in listed["aliases"]} == set(listed["aliases"].values())


def test_list_for_people_has_every_name_and_touches_no_device():
    code, out, err = finish(start("list", JAX_PLATFORMS="nonexistent"))
    assert (code, err) == (0, "")
    words = out.split()
    assert [name for name in (*ENVS, *METHODS) if name not in words] == []


MISTAKES = {
    "t-lss splagger": "no environment 't-lss'; did you mean t-ls",
    "t-ls splager": "no method 'splager'; did you mean splagger",
    "t-ls splagger --frames -5": "frames must be positive, got -5",
    "t-ls splagger --rates abc": "--rates takes numbers or 'paper', got 'abc'",
    "t-ls splagger --rates nan": "rates must be finite",
    "t-ls splagger --rates 1e-3 0.001": "listed twice",
    "t-ls splagger --seeds 0": "at least one rate and one seed",
    "t-ls splagger --seeds 1 --first-seed -1": "-1",
    "t-ls splagger --set ppo.minibatches=7 ppo.steps=20": "ppo.minibatches=7 does not divide",
    "t-ls splagger --set nonsense": "--set takes NAME=VALUE, got 'nonsense'",
    "t-ls splagger --set ppo.nonsense=3": "no ppo setting 'nonsense'",
    "t-ls splagger --set ppo.stepz=3": "did you mean steps?",
    "t-ls splagger --set ppo.steps=many": "ppo.steps takes a int, got 'many'",
    "t-ls splagger --set env.length=1": "length must be at least 2, got 1",
}


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes_are_told_in_one_line_before_anything_is_written(args, tmp_path, capsys):
    line = refused(capsys, "train", *args.split(), "--out", str(tmp_path))
    assert MISTAKES[args] in line
    assert contents(tmp_path) == {}


def test_a_file_where_the_runs_should_go_is_told(tmp_path, capsys):
    (tmp_path / "file").touch()
    where = ["--out", str(tmp_path / "file")]
    line = refused(capsys, "train", "t-ls-small", "splagger", *where, *arguments())
    assert "cannot write to" in line and "choose another --out" in line


@pytest.mark.parametrize("command", ["evaluate", "watch"])
@pytest.mark.parametrize("name", ["folder", "file", "nothing"])
def test_what_is_no_run_is_told(command, name, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    told = "is no agent that splagger wrote" if name == "file" else "is no run folder"
    assert told in refused(capsys, command, str(tmp_path / name))


def test_a_place_that_cannot_be_written_is_told(trained, tmp_path, capsys):
    for command in ("watch", "plot"):
        args = command, str(trained), "-o", str(tmp_path / "nowhere" / "x.gif")
        assert "nowhere" in refused(capsys, *args)


def test_a_sweep_ends_with_one_table_and_skips_what_is_finished(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(METHODS, "twin", replace(METHODS["splagger"], name="twin"))
    args = ["sweep", "--envs", "t-ls-small", "--methods", "splagger", "twin", "--out"]
    main([*args, str(tmp_path), *arguments()])
    first = capsys.readouterr().out
    assert first.count("Results") == 1
    folders = find(tmp_path)
    assert [folder.path.parent.name for folder in folders] == ["splagger", "twin"]
    table = first.split("Results")[1].splitlines()[2:]
    assert [line.split()[1] for line in table] == ["splagger", "twin"]
    assert all(str(folder.path) in line for folder, line in zip(folders, table, strict=True))
    before = contents(tmp_path)
    main([*args, str(tmp_path), *arguments()])
    assert capsys.readouterr().out.split("Results")[1] == first.split("Results")[1]
    assert contents(tmp_path) == before


def test_reproduce_tells_its_plan_and_does_not_do_what_is_done(tmp_path, capsys):
    main(["reproduce", "memory/t-ls", "--plan", "--out", str(tmp_path)])
    plan = capsys.readouterr().out
    assert "5 experiments, 112 million frames" in plan
    assert not list(tmp_path.iterdir())
    results = Path(__file__).parent.parent / "results"
    main(["reproduce", "memory/t-ls", "--out", str(results)])  # committed: nothing is left to do
    told = capsys.readouterr().out
    assert told.startswith("memory/t-ls lacks no run\n\nsplagger figure memory/t-ls --runs")
    assert "--fresh must be 0 or more" in refused(
        capsys, "reproduce", "memory/t-ls", "--fresh", "-1"
    )
    assert "memory/t-lss" in refused(capsys, "reproduce", "memory/t-lss")


def test_evaluate_watch_and_plot_show_a_trained_agent(trained, tmp_path, capsys):
    main(["evaluate", str(trained), "--tasks", "6", "--rate", "3e-4", "--seed", "1"])
    out = capsys.readouterr().out
    assert "6 tasks, rate 0.0003, seed 1" in out and out.count("±") == 5
    main(["evaluate", str(trained), "--tasks", "6", "--every-seed"])
    out = capsys.readouterr().out
    assert out.count("seed ") == 2 and "mean of seeds" in out
    main(["export", str(trained), "-o", str(tmp_path / "agent.npz"), "--seed", "1"])
    assert "agent.npz: rate" in capsys.readouterr().out
    main(["watch", str(tmp_path / "agent.npz"), "-o", str(tmp_path / "life.gif")])
    main(["plot", str(trained.parents[2]), "-o", str(tmp_path / "curves.png")])
    for name in ("life.gif", "curves.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) > 10


def test_bench_for_programs_has_the_numbers_and_where_they_come_from(capsys, monkeypatch):
    monkeypatch.setitem(ENVS, "tiny", replace(tiny().row, name="tiny"))
    main(["bench", "tiny", "splagger", "--runs", "4", "--blocks", "1", "--json"])
    result = json.loads(capsys.readouterr().out)
    for name in ("frames_per_second", "seconds_per_update", "peak_host_memory_gb"):
        assert result[name] > 0
    assert result["runs"] == 4 and "compile_seconds" in result
    assert "bench tiny splagger" in result["provenance"]["command"]
    assert {"commit", "device", "versions"} <= set(result["provenance"])


CHANGES = [
    {},
    {"rates": PAPER_RATES, "seeds": 3},  # what is usual is not said
    {"rates": (0.00012345678,), "entropy_weights": (0.0, 0.1)},
    {"overrides": SETTINGS | {"network.hidden": (16, 8), "ppo.decoded": None}},
    {"seeds": (5, 6)},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_command_of_a_run_makes_the_run(change, monkeypatch, tmp_path):
    run, made = tiny(**change), []
    monkeypatch.setattr(runner, "execute", lambda again, *_: made.append(again) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(shlex.split(run.command())[1:])
    assert [again.digest for again in made] == [run.digest]
    assert made[0].frames == run.frames == UPDATES * BATCH


def test_a_reader_who_has_seen_enough_is_no_error():
    command = f"{sys.executable} -c {shlex.quote(MAIN)} list | head -n 1 >&2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100)
    assert "pipe" not in done.stderr.lower() and len(done.stderr.splitlines()) <= 1
