"""The registry: the paper's environments have the paper's numbers, and invalid settings are refused by name."""

import pytest

from splagger import ENVS
from splagger.envs import Cheetah, MineMaze, Planning, TMaze, Walker
from splagger.paper_numbers import PAPER_RATES
from splagger.ppo.settings import PPOConfig
from splagger.registry import ROWS

PAPER = (
    "t-ls",
    "t-agreement",
    "t-latent",
    "planning",
    "planning-noobs",
    "mc-ls",
    "cheetah-dir",
    "walker",
)

# One line per quantity, one column per environment, in the order of `PAPER`.
TABLE = {
    "frames": (
        1_500_000,
        10_000_000,
        1_500_000,
        50_000_000,
        10_000_000,
        60_000_000,
        75_000_000,
        75_000_000,
    ),
    "episodes": (4, 4, 4, 1, 1, 2, 1, 2),
    "best_return": (16.0, 16.0, 15.85, 38.0, 17.85, 27.4, None, None),
    "meta.obs_size": (5, 5, 5, 18, 1, 301, 17, 18),
    "meta.space.size": (4, 4, 4, 5, 5, 3, 6, 6),
    "meta.horizon": (400, 400, 400, 100, 100, 400, 200, 400),
    "ppo.envs": (16, 16, 16, 16, 16, 16, 16, 16),
    "ppo.steps": (700, 700, 700, 700, 700, 800, 400, 200),
    "ppo.batch": (11_200, 11_200, 11_200, 11_200, 11_200, 12_800, 6_400, 3_200),
    "ppo.epochs": (2, 2, 2, 2, 2, 2, 2, 2),
    "ppo.minibatches": (4, 4, 4, 4, 4, 4, 4, 2),
    "ppo.clip": (0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05),
    "ppo.discount": (0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.97, 0.97),
    "ppo.gae_decay": (0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.9, 0.9),
    "ppo.entropy": (0.1, 0.1, 0.1, 0.0, 0.0, 0.1, 0.01, 0.01),
    "ppo.value_weight": (0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
    "ppo.policy_epsilon": (1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-8, 1e-8),
    "ppo.encoder_epsilon": (1e-8, 1e-8, 1e-8, 1e-8, 1e-8, 1e-8, 1e-8, 1e-8),
    "ppo.max_grad_norm": (0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
    "ppo.anneal": (False, False, False, False, False, True, False, False),
    "ppo.mask_truncated": (False, False, False, False, False, False, True, True),
    "ppo.eval_interval": (1, 1, 1, 10, 10, 10, 25, 25),
    "ppo.eval_tasks": (16, 16, 16, 16, 16, 16, 16, 16),
    "ppo.trajectories": (25, 25, 25, 25, 25, 25, 10, 10),
    "ppo.beliefs": (50, 50, 50, 50, 50, 50, 50, 50),
    "ppo.decoded": (None, None, None, None, None, None, 50, 50),
    "ppo.buffer": (100_000, 100_000, 100_000, 100_000, 100_000, 10_000, 10_000, 10_000),
    "ppo.reconstruction_rate": (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3),
    "ppo.reconstruction_steps": (3, 3, 3, 3, 3, 3, 1, 1),
    "ppo.reconstruction_kl_weight": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 1.0),
    "network.embedding": (*((32, 8, 8),) * 6, (32, 16, 16), (32, 32, 32)),
    "network.output_size": (24,) * 8,
    "network.state_embedding": (256,) * 8,
    "network.latent_embedding": (25,) * 8,
    "network.hidden": ((256, 128),) * 8,
    "network.width_factor": (1.0,) * 8,
    "network.decoder_hidden": (*((32, 32),) * 6, (64, 32), (256, 128)),
    "network.decoder_predicts_state": (*(False,) * 7, True),
    "ppo.kl_weight": (1e-6,) * 8,
    "ppo.kl_terms": (*(31_250.0,) * 6, 5_000.0, 5_000.0),
    "small": (False,) * 8,
}


def read(row, path):
    for name in path.split("."):
        row = getattr(row, name)
    return row


@pytest.mark.parametrize("quantity", TABLE)
def test_rows_have_the_specified_numbers(quantity):
    assert tuple(read(ENVS[name], quantity) for name in PAPER) == TABLE[quantity]


def test_environments_have_the_settings_of_the_paper():
    envs = [
        TMaze(length=100, signals=(1,), noise_up=0.5, noise_down=0.5),
        TMaze(length=100, signals=(1, 50), noise_up=0.5, noise_down=0.5),
        TMaze(length=100, signals=(), noise_up=0.7, noise_down=0.5),
        Planning(size=3, horizon=100, show_labels=True),
        Planning(size=3, horizon=100, show_labels=False),
        MineMaze(rooms=16, timeout=200, resolution=10, images=None),
        Cheetah(horizon=200, control_cost=0.05, reset_noise=0.1),
        Walker(
            *(200, 1.0, 0.001, 0.005),  # steps, alive, control, noise
            *(0.8, 2.0, 1.0),  # lowest, highest, steepest
            *(3.0, 1.5, 1.3),  # spread and bases of the factors
        ),
    ]
    assert [ENVS[name].env for name in PAPER] == envs
    mazes = [env for env in envs if isinstance(env, TMaze | MineMaze)]
    rewards = {(env.reward_right, env.reward_wrong) for env in mazes}
    assert rewards == {(4.0, -3.0)}
    assert ENVS["mc-ls"].env.reward_step == 0.1


def test_numbers_of_updates():
    updates = [ENVS[name].frames // ENVS[name].ppo.steps // 16 for name in PAPER]
    assert updates == [133, 892, 133, 4464, 892, 4687, 11_718, 23_437]


def test_learning_rates_of_the_sweep():
    assert PAPER_RATES == (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)


def test_names_are_unique_and_map_to_their_rows():
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert len({row.summary for row in ROWS}) == len(ROWS)
    assert {row.name: row for row in ROWS} == ENVS
    paper = (name for name, row in ENVS.items() if not row.small and not row.classic)
    assert tuple(paper) == PAPER
    assert not any(row.small and row.classic for row in ROWS)


@pytest.mark.parametrize("row", [row for row in ROWS if row.small], ids=lambda row: row.name)
def test_small_rows_are_small_versions_of_a_paper_row(row):
    assert row.name.endswith(("-small", "-demo"))
    paper = ENVS[row.name.removesuffix("-small").removesuffix("-demo")]
    assert type(row.env) is type(paper.env)
    assert row.episodes == paper.episodes
    assert row.meta.horizon < paper.meta.horizon
    assert row.frames < paper.frames
    assert row.ppo.batch < paper.ppo.batch
    assert row.ppo.entropy == paper.ppo.entropy
    assert row.ppo.anneal == paper.ppo.anneal
    assert row.ppo.buffer < paper.ppo.buffer
    assert row.network.hidden < paper.network.hidden
    assert row.frames // row.ppo.batch >= 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_can_be_static_arguments(row):
    assert hash((row.env, row.meta, row.ppo, row.network)) is not None


COUNTS = ("envs", "steps", "epochs", "minibatches", "eval_interval", "eval_tasks", "buffer")
COUNTS += ("reconstruction_steps", "trajectories", "beliefs")
NUMBERS = ("clip", "discount", "gae_decay", "value_weight", "entropy", "policy_epsilon")
NUMBERS += ("encoder_epsilon", "max_grad_norm", "kl_weight", "kl_terms")
NUMBERS += ("reconstruction_rate", "reconstruction_kl_weight")


@pytest.mark.parametrize("value", [0, -3])
@pytest.mark.parametrize("field", COUNTS)
def test_counts_below_one_are_refused_by_field_and_value(field, value):
    with pytest.raises(ValueError, match=rf"^ppo\.{field} must be at least 1, got {value}$"):
        PPOConfig(**{field: value})


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("field", NUMBERS)
def test_negative_and_infinite_numbers_are_refused_by_field_and_value(field, value):
    with pytest.raises(
        ValueError, match=rf"^ppo\.{field} must be a finite number ≥ 0, got {value}$"
    ):
        PPOConfig(**{field: value})


def test_minibatches_that_do_not_divide_the_rollout_are_refused():
    message = r"ppo\.minibatches=3 does not divide the 32 steps .*ppo\.envs=4 × ppo\.steps=8"
    with pytest.raises(ValueError, match=message):
        PPOConfig(envs=4, steps=8, minibatches=3)


def test_zero_is_a_valid_weight():
    assert PPOConfig(entropy=0.0, kl_weight=0.0).entropy == 0
