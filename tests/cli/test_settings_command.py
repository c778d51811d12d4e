"""`splagger settings` lists what --set takes, with texts that --set takes back."""

import dataclasses

import pytest

from splagger import ENVS, METHODS
from splagger.cli import main
from splagger.cli.settings_command import comments_of, settings_of
from splagger.ppo.settings import PPOConfig
from splagger.runs.settings import override

GROUPS = {"ppo": lambda row, method: row.ppo, "env": lambda row, method: row.env}
GROUPS |= {"network": lambda row, method: row.network, "method": lambda row, method: method}


@pytest.mark.parametrize("env, method", [("t-ls", "splagger"), ("cheetah-dir", "pearl-vari")])
def test_the_listed_values_can_be_set_again(env, method):
    row, chosen = ENVS[env], METHODS[method]
    for group, owner in GROUPS.items():
        listed = {name: now for name, _, now, _ in settings_of(group, owner(row, chosen)) if now}
        assert listed
        assert override(row, chosen, listed) == (row, chosen)


def test_every_setting_of_training_is_explained():
    fields = {field.name for field in dataclasses.fields(PPOConfig)}
    assert fields - set(comments_of(PPOConfig)) <= {"kl_terms", "reconstruction_kl_weight"}


def test_settings_are_listed_with_their_ranges(capsys):
    main(["settings", "t-ls"])
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "ppo.epochs" in line]
    assert line.split() == ["ppo.epochs", "int", "≥", "1", "2", "passes", "over", "each", "rollout"]
