"""`splagger settings` lists what --set takes, with texts that --set takes back."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import pytest

from splagger import ENVS, METHODS
from splagger.cli import main
from splagger.cli.list_commands import comments_of, settings_of
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.ppo.settings import PPOConfig
from splagger.runs.run import Run
from splagger.runs.settings import override
from splagger.spaces import Discrete

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


class Plain:
    """An environment that is no dataclass."""

    spec = EnvSpec("plain", 1, Discrete(2), 3)

    def describe(self):
        return {"kind": "Plain"}

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, key, task, time, action):
        return time + 1, Step(jnp.zeros(1), jnp.zeros(()), jnp.zeros((), bool), time == 2)


def test_an_environment_that_is_no_dataclass_has_no_settings(capsys):
    main(["settings", f"jax:{__name__}:Plain"])
    out = capsys.readouterr().out
    assert "env." not in out and "ppo.epochs" in out


class Tuple(NamedTuple):
    """An environment with fields that cannot be replaced by name."""

    size: int = 3
    spec = Plain.spec
    sample_task, reset, step = Plain.sample_task, Plain.reset, Plain.step


def test_settings_of_such_an_environment_are_refused():
    with pytest.raises(SettingError, match="is not a dataclass, so its settings cannot be changed"):
        Run.create(f"jax:{__name__}:Tuple", "rnn", overrides={"env.size": 4})
