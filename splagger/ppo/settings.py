"""The settings of training. The type says what is static (`Config`) and what is traced (`Tunables`)."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Array, Float

from splagger.agent import Interface
from splagger.envs import AbstractMetaEnv
from splagger.errors import SettingError
from splagger.methods import Method
from splagger.network import Network
from splagger.ranges import INT_MAX, Amount, Capacity, Count, Factor, Limit, check_fields

# Updates count random streams; the last ones are reserved, see `splagger.ppo.train`.
MAX_UPDATES = INT_MAX - 4
# The noise with which an update samples latents: that of the rollout, so that ratios start at 1; new noise; or
# none, so that the latent is its mean.
UPDATE_NOISES = ("stored", "fresh", "none")


@dataclass(frozen=True)
class PPOConfig:
    """Settings that shape the compiled program; the defaults are those of the T-Mazes, which other environments of
    `splagger.registry` inherit unless they set their own."""

    envs: Count = 16  # environments side by side
    steps: Count = 700  # of each environment in a rollout
    epochs: Count = 2  # passes over each rollout
    minibatches: Count = 4  # of each epoch
    clip: Amount = 0.05  # of the probability ratio, and of the value's change
    discount: Factor = 0.95  # γ
    gae_decay: Factor = 0.95  # λ of generalized advantage estimation
    value_weight: Amount = 0.5  # of the value loss
    entropy: Amount = 0.1  # weight of the entropy bonus; default of the axis entropy_weights
    policy_epsilon: Amount = 1e-5  # Adam's ε for policy and critic
    encoder_epsilon: Amount = 1e-8  # Adam's ε for the memory
    max_grad_norm: Amount = 0.5  # of each parameter group
    anneal: bool = False  # learning rate falls linearly to 0
    mask_truncated: bool = False  # zero advantage at steps that a time limit truncated
    eval_interval: Count = 1  # updates between evaluations
    eval_tasks: Count = 16  # new tasks per evaluation
    update_noise: str = "stored"  # of a stochastic latent in the update: stored, fresh or none
    kl_weight: Amount = 1e-6  # default of the axis kl_weights, in units of the authors' code
    kl_terms: Amount = 31250.0  # of that code's sum: weight · terms · mean KL is the same loss
    # Methods trained by reconstruction (PEARL-vari) also use:
    reconstruction_rate: Amount = 1e-3  # learning rate
    reconstruction_kl_weight: Amount = 1.0  # of the KL divergence beside the reconstruction
    reconstruction_steps: Count = 3  # per PPO update
    trajectories: Count = 25  # per reconstruction step
    beliefs: Count = 50  # per trajectory: random times whose belief must reconstruct it
    decoded: Limit | None = None  # steps that each belief decodes; None: a meta-episode's steps
    buffer: Capacity = 100_000  # trajectories kept

    def __post_init__(self):
        if self.update_noise not in UPDATE_NOISES:
            raise SettingError(
                f"ppo.update_noise must be one of {', '.join(UPDATE_NOISES)}, got {self.update_noise!r}"
            )
        check_fields(self, "ppo.")
        if self.batch > INT_MAX:
            raise SettingError(
                f"ppo.envs={self.envs} × ppo.steps={self.steps} is more than the {INT_MAX:,} steps that a rollout "
                "can have"
            )
        if self.batch % self.minibatches:
            raise SettingError(
                f"ppo.minibatches={self.minibatches} does not divide the {self.batch} steps of a rollout "
                f"(ppo.envs={self.envs} × ppo.steps={self.steps})"
            )

    @property
    def batch(self) -> int:
        """Frames per update."""
        return self.envs * self.steps


@dataclass(frozen=True)
class Config:
    """Everything static in a training program. Hashable, so that it can be a static argument of `jit`."""

    method: Method
    env: AbstractMetaEnv
    ppo: PPOConfig
    network: Network
    updates: int

    @property
    def interface(self) -> Interface:
        return Interface(self.env.obs_size, self.env.space, self.env.horizon, self.env.images)


class Tunables(NamedTuple):
    """Numbers that a sweep may vary inside one compiled program; `splagger.runs.AXES` has a row for each."""

    learning_rate: Float[Array, "*runs"] | float
    entropy_weight: Float[Array, "*runs"] | float
    kl_weight: Float[Array, "*runs"] | float
    temperature: Float[Array, "*runs"] | float  # the initial one, for aggregators that have one
