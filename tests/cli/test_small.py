"""The size of an experiment: small on a CPU for environments of others, and on request."""

import json
import shlex
from dataclasses import replace

import jax
import pytest

import splagger
from splagger.cli import grid_options, main
from splagger.cli.grid_options import Grid
from splagger.errors import SettingError
from splagger.network import Network
from splagger.paper_numbers import PAPER_RATES
from splagger.registry import COMPACT, ENVS
from splagger.runs.run import Run

CARTPOLE = "gym:CartPole-v1"


@pytest.mark.parametrize("options", [{"small": True}, {}])
def test_the_compact_network_is_used_on_request_and_for_others_environments(options, capsys):
    grid = Grid(**options)
    run = grid.run("t-ls" if options else CARTPOLE, "splagger")
    grid.print_notes(run, run)
    assert run.row.network == COMPACT and run.rates == (1e-3,) and len(run.seeds) == 3
    assert capsys.readouterr().err.count("compact network") == (not options)


def test_python_and_the_command_line_make_the_same_run():
    run = Grid(small=True, set=("ppo.anneal=true",)).run("t-ls", "splagger")
    settings = splagger.SMALL | {"ppo.anneal": True}
    again = Run.create("t-ls", "splagger", overrides=settings, rates=[1e-3], seeds=3)
    assert run.digest == again.digest and run.row == again.row
    recorded = json.loads(json.dumps(run.arguments()))
    assert Run.create(**recorded).digest == run.digest


@pytest.mark.parametrize("options", [{"full": True}, {"set": ("network.output_size=24",)}])
def test_the_papers_network_is_used_on_request(options, capsys):
    grid = Grid(**options)
    run = grid.run(CARTPOLE, "splagger")
    grid.print_notes(run)
    assert run.row.network == ENVS["t-ls"].network and run.rates == PAPER_RATES
    note = "--set network.… changes the paper's network and keeps its rates; --small changes the compact one"
    assert (note in capsys.readouterr().err) == ("set" in options)


def test_parts_of_the_compact_network_can_be_changed():
    run = Grid(small=True, set=("network.output_size=24",)).run(CARTPOLE, "splagger")
    assert run.row.network == replace(COMPACT, output_size=24) and run.rates == (1e-3,)


OWN = replace(ENVS["t-ls"], network=Network(hidden=(40,), output_size=20))


def test_an_environment_that_declares_a_network_keeps_it(capsys):
    run = Grid().run(f"jax:{__name__}:OWN", "splagger")
    Grid().print_notes(run)
    assert run.row.network == OWN.network and capsys.readouterr().err == ""
    assert Grid(small=True).run(f"jax:{__name__}:OWN", "splagger").row.network == COMPACT


def test_a_gpu_trains_at_full_size(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert Grid().run(CARTPOLE, "splagger").rates == PAPER_RATES


def test_own_rates_stay():
    assert Grid(rates=("3e-4",)).run(CARTPOLE, "splagger").rates == (3e-4,)


def test_the_papers_rates_can_be_asked_for_with_the_compact_network():
    run = Grid(rates=("paper",)).run(CARTPOLE, "splagger")
    assert run.rates == PAPER_RATES and run.row.network == COMPACT
    with pytest.raises(SettingError, match="--rates paper are the paper's five rates; list all"):
        Grid(rates=("paper", "1e-3")).run("t-ls", "splagger")


def test_both_sizes_contradict_each_other():
    with pytest.raises(SettingError, match="--small and --full contradict each other"):
        Grid(small=True, full=True).run("t-ls", "splagger")


@pytest.mark.parametrize("options", [{}, {"full": True}, {"small": True}])
def test_the_recorded_command_makes_the_same_run(options, monkeypatch):
    run = Grid(**options).run(CARTPOLE, "splagger")
    again = []
    monkeypatch.setattr(grid_options.Grid, "run", lambda *args: again.append(args) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(shlex.split(run.command())[1:])
    monkeypatch.undo()
    grid, env, method = again[0]
    made: Run = grid.run(env, method)
    assert made.digest == run.digest


def test_rounded_frames_are_printed_once(capsys):
    grid = Grid(frames=7e3)
    grid.print_notes(*(grid.run("t-ls-small", method) for method in ("rnn", "splagger")))
    printed = (
        "6,400 frames instead of 7,000: training takes whole evaluation intervals of 6,400 frames\n"
    )
    assert capsys.readouterr().err == printed
    Grid().print_notes(Grid().run("t-ls-small", "rnn"))
    assert capsys.readouterr() == ("", "")
