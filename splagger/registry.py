"""The paper's environments with their numbers: rows of data, and small siblings for tests and demos."""

import re
from dataclasses import dataclass, replace

from splagger.agent import Network
from splagger.envs import (
    AbstractMetaEnv,
    Cheetah,
    Env,
    HostMetaEnv,
    MetaEnv,
    MineMaze,
    Planning,
    TMaze,
    Walker,
)
from splagger.envs.gym import GymEnv
from splagger.ppo.types import PPOConfig
from splagger.sequence import EmbeddingSizes

PAPER_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)


@dataclass(frozen=True)
class EnvRow:
    """An environment, how many episodes a task has, and how long and with what it is trained."""

    name: str
    summary: str
    env: Env | GymEnv
    episodes: int
    frames: int
    ppo: PPOConfig = PPOConfig()
    network: Network = Network()
    best_return: float | None = None  # of a meta-episode, as far as it is known
    small: bool = False  # not of the paper

    @property
    def meta(self) -> AbstractMetaEnv:
        kind = HostMetaEnv if isinstance(self.env, GymEnv) else MetaEnv
        return kind(env=self.env, episodes=self.episodes)

    @property
    def folder(self) -> str:
        """Its name as a folder can have it."""
        return re.sub(r"[^\w.-]+", "-", self.name).strip("-")


_MAZE = PPOConfig()
_PLANNING = replace(_MAZE, entropy=0.0, eval_interval=10)
_MINE = replace(_MAZE, steps=800, eval_interval=10, anneal=True, buffer=10_000)
_ROBOT = PPOConfig(
    discount=0.97,
    gae_decay=0.9,
    entropy=0.01,
    policy_epsilon=1e-8,
    mask_truncated=True,
    eval_interval=25,
    kl_terms=5_000.0,
    reconstruction_steps=1,
    trajectories=10,
    decoded=50,
    buffer=10_000,
)
_CHEETAH = replace(_ROBOT, steps=400, clip=0.1, reconstruction_kl_weight=0.1)
_WALKER = replace(_ROBOT, steps=200, minibatches=2)
_TINY = Network(
    EmbeddingSizes(16, 8, 8), 12, 32, 8, (32, 32), width_factor=0.25, decoder_hidden=(16, 16)
)
_SMALL_PPO = replace(_MAZE, envs=16, steps=80, eval_interval=5, buffer=1_000, trajectories=8)

_T_LS = EnvRow(
    "t-ls",
    "T-Maze: remember one signal along a corridor of 100 cells",
    TMaze(),
    episodes=4,
    frames=1_500_000,
    ppo=_MAZE,
    best_return=16.0,
)
_PLANNING_GAME = EnvRow(
    "planning",
    "Planning Game: learn a shuffled 3×3 torus, then go straight to every goal",
    Planning(),
    episodes=1,
    frames=50_000_000,
    ppo=_PLANNING,
    best_return=38.0,
)
_MC_LS = EnvRow(
    "mc-ls",
    "MC-LS: first-person pictures, 16 rooms, a color to remember",
    MineMaze(),
    episodes=2,
    frames=60_000_000,
    ppo=_MINE,
    best_return=27.4,
)
_CHEETAH_DIR = EnvRow(
    "cheetah-dir",
    "Cheetah-Dir: a robot of two legs runs forward or backward; the reward tells which",
    Cheetah(),
    episodes=1,
    frames=75_000_000,
    ppo=_CHEETAH,
    network=Network(EmbeddingSizes(32, 16, 16), decoder_hidden=(64, 32)),
)
_RANDOM_WALKER = EnvRow(
    "walker",
    "Walker: walk with a body whose masses, inertias, frictions and dampings are random",
    Walker(),
    episodes=2,
    frames=75_000_000,
    ppo=_WALKER,
    network=Network(
        EmbeddingSizes(32, 32, 32), decoder_hidden=(256, 128), decoder_predicts_state=True
    ),
)

ROWS = (
    _T_LS,
    replace(
        _T_LS,
        name="t-agreement",
        summary="T-Maze: two signals far apart; the door depends on whether they agree",
        env=TMaze(signals=(1, 50)),
        frames=10_000_000,
    ),
    replace(
        _T_LS,
        name="t-latent",
        summary="T-Maze: no signal; the door is hidden in how often the noise is +1",
        env=TMaze(signals=(), noise_up=0.7, noise_down=0.5),
        best_return=15.85,
    ),
    _PLANNING_GAME,
    replace(
        _PLANNING_GAME,
        name="planning-noobs",
        summary="Planning Game in which only being on the goal is seen",
        env=Planning(show_labels=False),
        frames=10_000_000,
        best_return=17.85,
    ),
    _MC_LS,
    _CHEETAH_DIR,
    _RANDOM_WALKER,
    replace(
        _T_LS,
        name="t-ls-demo",
        summary="T-LS with a corridor of 20 cells and a small network",
        env=TMaze(length=20),
        frames=150_000,
        ppo=_SMALL_PPO,
        network=_TINY,
        small=True,
    ),
    replace(
        _T_LS,
        name="t-ls-small",
        summary="T-LS with a corridor of 10 cells and a small network",
        env=TMaze(length=10),
        frames=100_000,
        ppo=_SMALL_PPO,
        network=_TINY,
        small=True,
    ),
    replace(
        _T_LS,
        name="t-agreement-small",
        summary="T-Maze Agreement with a corridor of 10 cells and a small network",
        env=TMaze(length=10, signals=(1, 5)),
        frames=200_000,
        ppo=_SMALL_PPO,
        network=_TINY,
        small=True,
    ),
    replace(
        _T_LS,
        name="t-latent-small",
        summary="T-Maze Latent with a corridor of 10 cells and a small network",
        env=TMaze(length=10, signals=(), noise_up=0.95, noise_down=0.05),
        frames=200_000,
        ppo=_SMALL_PPO,
        network=_TINY,
        best_return=None,
        small=True,
    ),
    replace(
        _PLANNING_GAME,
        name="planning-small",
        summary="Planning Game on a 2×2 torus, 20 steps, and a small network",
        env=Planning(size=2, horizon=20),
        frames=200_000,
        ppo=replace(_SMALL_PPO, entropy=0.0),
        network=_TINY,
        best_return=None,
        small=True,
    ),
    replace(
        _MC_LS,
        name="mc-ls-small",
        summary="MC-LS with 2 rooms and a small network",
        env=MineMaze(rooms=2, timeout=30),
        frames=200_000,
        ppo=replace(_SMALL_PPO, anneal=True),
        network=_TINY,
        best_return=2 * (0.1 + 2 * 0.6 + 4),
        small=True,
    ),
    replace(
        _CHEETAH_DIR,
        name="cheetah-dir-small",
        summary="Cheetah-Dir with episodes of 100 steps and a small network",
        env=Cheetah(horizon=100),
        frames=1_000_000,
        ppo=replace(_CHEETAH, steps=200, eval_interval=5, buffer=1_000),
        network=replace(_TINY, embedding=EmbeddingSizes(16, 16, 16)),
        small=True,
    ),
    replace(
        _RANDOM_WALKER,
        name="walker-small",
        summary="Walker with episodes of 100 steps and a small network",
        env=Walker(horizon=100),
        frames=1_000_000,
        ppo=replace(_WALKER, steps=100, eval_interval=5, buffer=1_000),
        network=replace(_TINY, embedding=EmbeddingSizes(16, 16, 16), decoder_predicts_state=True),
        small=True,
    ),
)

ENVS: dict[str, EnvRow] = {row.name: row for row in ROWS}
