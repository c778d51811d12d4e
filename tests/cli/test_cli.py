"""The command line: help, one line per mistake, and each command once."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

import splagger
from splagger import ENVS, METHODS, launchers
from splagger.cli import main
from splagger.cli.list_commands import List
from splagger.errors import EnvError, Interrupted, RunError, SettingError, UserError
from splagger.paper_numbers import PAPER_RATES
from splagger.runs.folder import find_runs
from splagger.training import bench, runner
from tests.synthetic import learning, write_run
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
GRID += ("temperatures", "set", "small", "full", "out", "save-every")
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
    """Returns the one line that is printed for a mistake."""
    with pytest.raises(SystemExit) as end:
        main(list(args))
    seen = capsys.readouterr()
    assert end.value.code == 2
    assert seen.out == ""
    assert seen.err.startswith("splagger: ") and seen.err.endswith("\n")
    assert len(seen.err.splitlines()) == 1
    return seen.err


@pytest.mark.parametrize("command", OPTIONS)
def test_help_lists_every_option(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert not end.value.code
    assert [option for option in OPTIONS[command] if f"--{option}" not in text] == []


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert [command for command in OPTIONS if command not in text] == []


def test_list_as_json_has_every_name(capsys):
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


def test_list_has_every_name_and_needs_no_device():
    code, out, err = finish(start("list", JAX_PLATFORMS="nonexistent"))
    assert (code, err) == (0, "")
    words = out.split()
    assert [name for name in (*ENVS, *METHODS) if name not in words] == []


def test_the_version_is_printed(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"splagger {splagger.__version__}\n"


MISTAKES = {
    "t-lss splagger": "no environment 't-lss'; did you mean t-ls",
    "t-ls splager": "no method 'splager'; did you mean splagger",
    "t-ls splagger --frames -5": "frames must be positive, got -5",
    "t-ls splagger --rates abc": "--rates takes numbers or 'paper', got 'abc'",
    "t-ls splagger --rates nan": "rates must be finite",
    "t-ls splagger --rates 1e-3 0.001": "listed twice",
    "t-ls splagger --seeds 0": "a run needs at least one seed",
    "t-ls splagger --seeds 1 --first-seed -1": "-1",
    "t-ls splagger --set ppo.minibatches=7 ppo.steps=20": "ppo.minibatches=7 does not divide",
    "t-ls splagger --set nonsense": "--set takes NAME=VALUE, got 'nonsense'",
    "t-ls splagger --set ppo.nonsense=3": "no ppo setting 'nonsense'",
    "t-ls splagger --set ppo.stepz=3": "did you mean steps?",
    "t-ls splagger --set ppo.steps=many": "ppo.steps must be of type int, got 'many'",
    "t-ls splagger --set env.length=1": "length must be at least 2, got 1",
    "t-ls splagger --save-every nan": "--save-every must be a finite number of seconds ≥ 0, got nan",
    "t-ls splagger --rates 1e-400": "--rates takes numbers or 'paper', got '1e-400'",
    "t-ls splagger --rates 1e39": "rates must be at most 3.40282e+38, got 1e+39",
    "t-ls splagger --rates 1e-3 --rates 1e-4": "--rates is given twice",
    "t-ls splagger --rates --seeds 2": "--rates needs at least one value",
    "t-ls splagger --frames 1e300": "--frames must be at most 1,000,000,000,000, got 1e+300",
    "t-ls splagger --frames 1e12 --set ppo.envs=1 ppo.steps=4 env.length=2": "updates",
    "t-ls splagger --seeds 1000000": "--seeds must be at most 100,000, got 1000000",
    "t-ls splagger --seeds 1 --first-seed 4294967296": "--first-seed must be whole numbers",
    "t-ls splagger --episodes 1000000000": "--episodes must be at most 1,000, got 1000000000",
    "t-ls splagger --set env.reward_right=nan": "env.reward_right must be a finite number, got nan",
    "t-ls splagger --set ppo.entropy=1 --entropy-weights 0.1": "are one setting",
    "t-ls splagger --set ppo.entropy=1 ppo.entropy=2": "--set gives ppo.entropy twice",
    "t-ls splagger --set ppo.entropy=1 --set ppo.clip=2": "--set is given twice",
    "t-ls splagger --set ppo.epochs=1e30": "ppo.epochs must be at most 1,000,000, got 1000",
    "t-ls splagger --set ppo.envs=1e9": "ppo.envs must be at most 1,000,000, got 1000000000",
    "t-ls splagger --set ppo.steps=1e30": "ppo.steps must be at most 1,000,000",
    "t-ls splagger --set ppo.envs=1e6 ppo.steps=1e6": "is more than the 2,147,483,647 steps",
    "t-ls splagger --set method.width=1e30": "method.width must be at most 1,000,000",
    "t-ls splagger --set network.width_factor=1e-4": "method.width × network.width_factor must",
    "t-ls pearl --set network.output_size=1": "network.output_size must be even",
    "t-ls pearl-vari --set network.output_size=7": "network.output_size must be even",
    "cheetah-dir splagger --set env.reset_noise=-1": "env.reset_noise must be a finite number ≥ 0",
    "gym:CartPole-v1 splagger --set env.workers=1e9": "env.workers must be at most 1,024",
}


@pytest.mark.parametrize("args", MISTAKES)
def test_mistakes_are_reported_in_one_line_before_anything_is_written(args, tmp_path, capsys):
    line = refused(capsys, "train", *args.split(), "--out", str(tmp_path))
    assert MISTAKES[args] in line
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("command", [
    ["train", "t-ls", "rnn"], ["sweep", "--envs", "t-ls", "--methods", "rnn"]
], ids=["train", "sweep"])  # fmt: skip
def test_an_output_folder_that_is_a_file_is_reported(command, tmp_path, capsys):
    """Before the duration of a long run is announced."""
    (tmp_path / "file").touch()
    line = refused(capsys, *command, "--out", str(tmp_path / "file"))
    assert f"--out must be a folder, not a file, got {tmp_path / 'file'}" in line


@pytest.mark.parametrize("command", ["evaluate", "watch"])
@pytest.mark.parametrize("name", ["folder", "file", "nothing"])
def test_a_path_that_is_not_a_run_is_reported(command, name, tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    is_file = name == "file"
    message = "is not an agent that splagger wrote" if is_file else "is not a run folder"
    assert message in refused(capsys, command, str(tmp_path / name))


def test_a_path_that_cannot_be_written_is_reported(trained, tmp_path, capsys):
    for command in ("watch", "plot"):
        args = command, str(trained), "-o", str(tmp_path / "nowhere" / "x.gif")
        assert "nowhere" in refused(capsys, *args)


@pytest.mark.parametrize("name", ["claims", "memory/t-ls"])
def test_figures_that_cannot_be_written_are_reported(name, tmp_path, capsys):
    write_run(tmp_path / "runs", "t-ls", "splagger", learning(16.0))
    write_run(tmp_path / "runs", "t-ls", "rnn", learning(2.0))
    (tmp_path / "file").touch()
    args = "figure", name, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "file" / "x")
    assert "cannot write" in refused(capsys, *args)


OUTPUTS = {
    ("watch", "x.txt"): "--output must end with .gif",
    ("watch", ""): "--output must be a file, not a folder",
    ("export", "x.gif"): "--output must end with .npz",
    ("plot", "x.doc"): "--output must end with .png or .pdf or .svg",
}


@pytest.mark.parametrize("command, name", OUTPUTS)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(command, name, tmp_path, capsys):
    line = refused(capsys, command, "nowhere", "-o", str(tmp_path / name))
    assert OUTPUTS[command, name] in line


@pytest.mark.parametrize("command", ["plot", "compare"])
def test_every_folder_must_have_a_run(command, trained, tmp_path, capsys):
    line = refused(capsys, command, str(trained), str(tmp_path / "typo"))
    assert "no run folder in" in line and "typo" in line and str(trained) not in line


def test_methods_of_the_same_name_are_separate_runs(tmp_path, monkeypatch):
    """Two modules may call their methods alike. Two names of one method are one run."""
    for module, skip in (("one_a", 0.25), ("one_b", 0.75)):
        text = f"import splagger\nmine = splagger.Method('mine', skip={skip})\n"
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    monkeypatch.setattr(launchers, "train_all", lambda runs, *_, **__: found.extend(runs) or [])
    methods = ["one_a:mine", "one_b:mine", "max", "splagger-nornn"]
    main(["sweep", "--envs", "t-ls-small", "--methods", *methods, "--out", str(tmp_path / "runs")])
    assert [run.method.skip for run in found] == [0.25, 0.75, 0.0]


def test_a_sweep_varies_settings(tmp_path, capsys, monkeypatch):
    """One run per combination of values. Equal ones are one run, and a default is the run without the setting."""
    found = []
    monkeypatch.setattr(launchers, "train_all", lambda runs, *_, **__: found.extend(runs) or [])
    base = ["sweep", "--envs", "t-ls-small", "--out", str(tmp_path), "--methods", "splagger"]
    vary = ["--vary", *(f"method.skip={skip}" for skip in ("0", "0.5", "0.50")), "ppo.epochs=3"]
    main([*base, *vary, "ppo.epochs=4", "--set", "network.output_size=8"])
    assert [(run.method.skip, run.row.ppo.epochs) for run in found] == [
        (skip, epochs) for skip in (0.0, 0.5) for epochs in (3, 4)
    ]
    assert {run.row.network.output_size for run in found} == {8}
    for words, message in (
        (["method.skip"], "--vary takes NAME=VALUE, got 'method.skip'"),
        (["method.skpi=1"], "no method setting 'skpi'"),
        (["ppo.epochs=3", "--set", "ppo.epochs=4"], "ppo.epochs has one value in the settings"),
        (["ppo.entropy=0", "--entropy-weights", "1"], "are one setting"),
    ):
        with pytest.raises(SystemExit):
            main([*base, "--vary", *words])
        assert message in capsys.readouterr().err


def test_a_sweep_prints_one_table_and_skips_finished_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(METHODS, "twin", replace(METHODS["splagger"], name="twin"))
    args = ["sweep", "--envs", "t-ls-small", "--methods", "splagger", "twin", "--out"]
    main([*args, str(tmp_path), *arguments()])
    first = capsys.readouterr().out
    assert first.count("Results") == 1
    folders = find_runs(tmp_path)
    assert [folder.path.parent.name for folder in folders] == ["splagger", "twin"]
    table = first.split("Results")[1].splitlines()[2:]
    assert [line.split()[1] for line in table] == ["splagger", "twin"]
    assert all(str(folder.path) in line for folder, line in zip(folders, table, strict=True))
    before = contents(tmp_path)
    main([*args, str(tmp_path), *arguments()])
    assert capsys.readouterr().out.split("Results")[1] == first.split("Results")[1]
    assert contents(tmp_path) == before


def test_reproduce_prints_its_plan_and_skips_finished_runs(tmp_path, capsys):
    main(["reproduce", "memory/t-ls", "--plan", "--out", str(tmp_path)])
    plan = capsys.readouterr().out
    assert "5 experiments, 112 million frames" in plan
    assert not list(tmp_path.iterdir())
    results = Path(__file__).parents[2] / "results"
    main(["reproduce", "memory/t-ls", "--out", str(results)])  # these results are complete
    text = capsys.readouterr().out
    assert text.startswith("memory/t-ls: no runs are missing\n\nsplagger figure memory/t-ls --runs")
    assert "--fresh must be 0 or more" in refused(
        capsys, "reproduce", "memory/t-ls", "--fresh", "-1"
    )
    assert "memory/t-lss" in refused(capsys, "reproduce", "memory/t-lss")


def test_evaluate_watch_and_plot_show_a_trained_agent(trained, tmp_path, capsys, monkeypatch):
    main(["evaluate", str(trained), "--tasks", "6", "--rate", "3e-4", "--seed", "1"])
    out = capsys.readouterr().out
    assert "6 tasks, rate 0.0003, seed 1" in out and out.count("±") == 5
    main(["evaluate", str(trained), "--tasks", "6", "--every-seed"])
    out = capsys.readouterr().out
    assert out.count("seed ") == 2 and "mean of seeds" in out
    main(["evaluate", str(trained), "--tasks", "6", "--every-seed", "--json"])
    found = json.loads(capsys.readouterr().out)
    returns = [agent["return"]["value"] for agent in found["agents"]]
    assert [agent["seed"] for agent in found["agents"]] == [0, 1] and not found["not_evaluated"]
    assert found["mean_of_agents"]["value"] == pytest.approx(sum(returns) / 2)
    episodes = [sum(e["value"] for e in agent["episodes"]) for agent in found["agents"]]
    assert episodes == pytest.approx(returns)
    monkeypatch.setitem(
        ENVS, "laps", replace(ENVS["t-ls-small"], name="laps").with_meta(episodes=2)
    )
    main(["evaluate", str(trained), "--tasks", "6", "--env", "laps"])
    assert capsys.readouterr().out.count("±") == 3
    main(["export", str(trained), "-o", str(tmp_path / "agent.npz"), "--seed", "1"])
    assert "agent.npz: rate" in capsys.readouterr().out
    main(["watch", str(tmp_path / "agent.npz"), "-o", str(tmp_path / "watch.gif")])
    main(["plot", str(trained.parents[2]), "-o", str(tmp_path / "curves.png")])
    for name in ("watch.gif", "curves.png"):
        with Image.open(tmp_path / name) as picture:
            assert min(picture.size) > 10


def test_bench_as_json_has_numbers_and_provenance(capsys, monkeypatch):
    monkeypatch.setitem(ENVS, "tiny", replace(tiny().row, name="tiny"))
    main(["bench", "tiny", "splagger", "--runs", "4", "--blocks", "1", "--json"])
    result = json.loads(capsys.readouterr().out)
    for name in ("frames_per_second", "seconds_per_update", "peak_host_memory_gb"):
        assert result[name] > 0
    assert result["runs"] == 4 and "compile_seconds" in result
    assert "bench tiny splagger" in result["provenance"]["command"]
    assert {"commit", "device", "versions"} <= set(result["provenance"])


def test_bench_refuses_to_measure_updates_that_an_evaluation_hides(monkeypatch):
    clock = iter(range(100))
    sleepy = SimpleNamespace(
        compile=lambda *_: 1.0,
        init=lambda: None,
        block=lambda state: (state, {}),
        evaluate=lambda state: next(clock),  # a second longer than the block
    )
    monkeypatch.setattr(bench, "compile_grid", lambda *_: sleepy)
    monkeypatch.setattr(bench.time, "monotonic", lambda: next(clock))
    monkeypatch.setitem(ENVS, "tiny", replace(tiny().row, name="tiny"))
    with pytest.raises(
        SettingError, match="the speed of the updates cannot be measured; set fewer"
    ):
        bench.measure("tiny", "splagger", 1, 1)


@pytest.mark.parametrize("command", [("figure", "claims"), ("report",)])
def test_advice_names_commands_that_exist(command, tmp_path, capsys):
    line = refused(capsys, *command, "--runs", str(tmp_path / "nowhere"))
    assert "splagger reproduce all --plan" in line


CHANGES = [
    {},
    {"rates": PAPER_RATES, "seeds": 3},  # defaults are left out
    {"rates": (0.00012345678,), "entropy_weights": (0.0, 0.1)},
    {"overrides": SETTINGS | {"network.hidden": (16, 8), "ppo.decoded": None}},
    {"seeds": (5, 6)},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_command_of_a_run_makes_an_equal_run(change, monkeypatch, tmp_path):
    run, runs = tiny(**change), []
    monkeypatch.setattr(runner, "execute", lambda again, *_: runs.append(again) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(shlex.split(run.command())[1:])
    assert [again.digest for again in runs] == [run.digest]
    assert runs[0].frames == run.frames == UPDATES * BATCH


@pytest.mark.parametrize("words", ["list", "leaderboard --help", "--version"])
def test_a_closed_pipe_is_not_an_error(words):
    command = f"{sys.executable} -c {shlex.quote(MAIN)} {words} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=100)
    assert "pipe" not in done.stderr.lower() and len(done.stderr.splitlines()) <= 1


@pytest.mark.parametrize("given, expected", [(None, "false"), ("true", "true")])
def test_memory_of_a_gpu_is_not_reserved_unless_the_user_says_so(given, expected):
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    code = f"import os, splagger.cli; splagger.cli.main = lambda: print(os.environ['{name}']); "
    environment = {key: value for key, value in os.environ.items() if key != name}
    environment |= {} if given is None else {name: given}
    done = subprocess.run([sys.executable, "-c", code + MAIN], env=environment, capture_output=True)
    assert done.stdout.decode().strip() == expected


def failing(error: type[BaseException]):
    """Returns a command that raises an error."""

    def call(command):
        raise error("something is wrong")

    return call


@pytest.mark.parametrize("kind", [UserError, SettingError, EnvError, RunError])
def test_an_error_that_a_user_can_fix_is_one_line(kind, capsys, monkeypatch):
    monkeypatch.setattr(List, "__call__", failing(kind))
    assert refused(capsys, "list") == "splagger: something is wrong\n"


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyError, OSError])
def test_any_other_error_is_raised_as_it_is(kind, capsys, monkeypatch):
    """The bases of our errors are not enough: a plain ValueError is a bug."""
    monkeypatch.setattr(List, "__call__", failing(kind))
    with pytest.raises(kind, match="something is wrong"):
        main(["list"])
    assert capsys.readouterr().err == ""


def test_a_bug_shows_its_traceback():
    code = "from splagger.cli import list_commands as c, main; c.List.__call__ = lambda _: int('x')"
    status, out, err = finish(start("list", code=f"{code}; main()"))
    assert (status, out) == (1, "")
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("ValueError: invalid literal for int() with base 10: 'x'\n")
    assert "splagger: " not in err


def test_an_interruption_says_what_was_saved(capsys, monkeypatch):
    monkeypatch.setattr(List, "__call__", failing(Interrupted))
    with pytest.raises(SystemExit) as end:
        main(["list"])
    assert end.value.code == 130
    assert capsys.readouterr().err == "\nsplagger: something is wrong\n"


@pytest.mark.parametrize("command, environment, code", [
    ("{python} -m splagger list", {"PYTHONIOENCODING": "ascii"}, 0),
    ("{python} -m splagger list >&-", {}, 0),
    ("{python} -m splagger list >/dev/full", {}, 2),
], ids=["ascii", "closed", "full"])  # fmt: skip
def test_any_output_is_enough(command, environment, code):
    if "full" in command and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    line = command.format(python=shlex.quote(sys.executable))
    done = subprocess.run(
        ["sh", "-c", line], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == code and "Traceback" not in done.stderr
    assert done.stderr == ("splagger: cannot write (No space left on device)\n" if code else "")
    assert ("t-ls" in done.stdout) == ("ascii" in environment.values())


@pytest.mark.parametrize(
    "words, message",
    [
        (["tarin", "t-ls"], "no command 'tarin'; did you mean train?"),
        (["help"], "no command 'help'; there are analyse, analyze, bench"),
    ],
)
def test_a_typo_in_a_command_is_named(words, message, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_settings_are_those_that_train_uses(capsys):
    """Environments of others get the compact network on a CPU."""
    main(["settings", "gym:CartPole-v1"])
    printed = capsys.readouterr()
    assert "the compact network, as `train` uses it without --full" in printed.err
    row = next(line for line in printed.out.splitlines() if "network.hidden " in line)
    assert "32,32" in row
    main(["settings", "gym:CartPole-v1", "--set", "network.output_size=5"])
    printed = capsys.readouterr()
    assert not printed.err and "256,128" in printed.out
    with pytest.raises(SystemExit):
        main(["settings", "gym:No-v0"])
    assert capsys.readouterr().err.count("\n") == 1
