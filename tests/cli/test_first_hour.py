"""What a new user meets first: mistakes are answered in one line, and long work says so before it begins."""

import subprocess
import sys

import pytest

from splagger.cli import main
from splagger.runs.run import Run
from splagger.training.announcements import announce

MODULE = """
import splagger
from splagger.aggregators import Max

class MyMax(Max):
    pass

my_method = splagger.Method("mine", aggregator=MyMax())
"""

# arguments of the command line → parts of the one line that answers them
MISTAKES = {
    ("train", "t-ls-small", "splagger_first_hour:my_metod"): ("did you mean my_method?",),
    ("train", "t-ls-small", "splagger_first_hour:MyMax"): (
        "must be a splagger.Method, got the class MyMax; create one",
    ),
    ("train", "gym:MiniGrid-Nothing-v0", "splagger"): ("gym:MiniGrid-Nothing-v0: the environment",),
    ("train", "gym:CartPole-v9", "splagger"): ("versioned environments: [ `v0`, `v1` ].)",),
    ("train", "gym:no_such_package:A-v0", "splagger"): ("(No module named 'no_such_package')",),
    ("evaluate", "nowhere"): ("nowhere is not a run folder: it does not exist",),
    ("compare", "nowhere"): ("no run folder in nowhere (it does not exist)",),
    ("train", "t-ls", "splagger", "rnn"): ("does not take 'rnn'; `splagger sweep` trains several",),
    ("train", "t-ls", "splagger", "--ratess", "3"): (
        "no option '--ratess'; did you mean --rates or",
    ),
    ("status", "--jsonn"): ("no option '--jsonn'; did you mean --json?",),
    ("sweep", "--envs", "t-lss", "t-ls", "t-latnt", "--methods", "rnnn", "rnn"): (
        "no environment 't-lss'; did you mean t-ls",
        "no environment 't-latnt'; did you mean t-latent",
        "no method 'rnnn'; did you mean rnn",
    ),
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_answered_in_one_line(arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "splagger_first_hour.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit):
        main(list(arguments))
    line = capsys.readouterr().err
    assert line.startswith("splagger: ") and line.count("\n") == 1
    assert all(part in line for part in MISTAKES[arguments])
    assert "registration.py" not in line  # a place in Gymnasium's code helps nobody


# Wrong arguments in Python → the message. They run in a process without the type checks of the tests.
WRONG = {
    "splagger.Method('x', aggregator=3)": "method 'x': aggregator must be an instance of "
    "splagger.aggregators.AbstractAggregator, got int",
    "splagger.Method('x', latent='gaussian')": "method 'x': latent must be an instance of "
    "splagger.policy.AbstractLatent, got str",
    "splagger.Method('x', aggregator=Max)": "method 'x': aggregator must be an instance of "
    "splagger.aggregators.AbstractAggregator, got the class Max",
    "splagger.train('t-ls-small', Max())": "method must be a splagger.Method, got Max; create one with "
    "splagger.Method('mine', aggregator=…)",
    "splagger.train('t-ls-small', 'rnn', seeds='3')": "seeds must be a number or a list of numbers, got '3'",
}
TRY = """
import sys
import splagger
from splagger.aggregators import Max
from splagger.errors import SettingError
for line in sys.argv[1:]:
    try:
        eval(line)
    except SettingError as error:
        print(error)
"""


def test_wrong_arguments_in_python_are_named():
    command = [sys.executable, "-c", TRY, *WRONG]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == list(WRONG.values())


def test_the_duration_of_our_environments_is_printed_if_it_is_long(capsys):
    announce(Run.create("t-ls-small", "splagger", rates=[1e-3], seeds=1))
    assert not capsys.readouterr().err
    full = Run.create("planning", "splagger")
    announce(full)
    assert "planning: full size: about " in capsys.readouterr().err
    announce(full, Run.create("planning", "rnn"))
    assert "2 experiments: full size: about " in capsys.readouterr().err


def test_an_empty_folder_has_no_experiments(tmp_path, capsys):
    main(["status", str(tmp_path)])
    assert capsys.readouterr().out == f"no experiments in {tmp_path}\n"


def test_the_card_of_an_agent_is_written_for_people(capsys):
    main(["zoo", "t-ls/splagger"])
    card = capsys.readouterr().out
    assert "16.00 ± 0.00 on 1,000 new tasks" in card and "1 trained agent" in card
    assert "_" not in card.partition("command")[0]


def test_every_ppo_setting_has_a_meaning(capsys):
    main(["settings", "t-ls", "splagger"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    ppo = [row for row in rows if row and row[0].startswith("ppo.")]
    assert len(ppo) > 20 and all(len(row) > 3 for row in ppo)
