"""Plays an agent file with NumPy alone: neither JAX nor Equinox is imported."""

import functools as ft
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from splagger.errors import RunError, SettingError, UserError
from splagger.files.agent_file import open_agent
from splagger.images import Image, images_from_json
from splagger.portable.arrays import Arrays, Vector, built
from splagger.portable.generated import GeneratedNetwork
from splagger.portable.memory import NumpyMemory
from splagger.portable.numpy_vision import NumpyVision
from splagger.ranges import as_flag
from splagger.zoo import locate

# After a matmul, NumPy reads the processor's floating-point flags, and warns of invalid values that BLAS met in padding,
# although all numbers are finite.
_quiet = np.errstate(invalid="ignore")
CRITIC, DECODER = "0.policy.hypernetwork.heads.critic", "0.decoder."
# What arrays raise that do not fit together.
DAMAGED = (ValueError, KeyError, IndexError, TypeError, AttributeError, MemoryError)

# kind of a latent → function of (memory's output, noise, normalization of outputs)
LATENTS = {
    "Deterministic": lambda output, noise, normalize: output,
    "Gaussian": lambda output, noise, normalize: _sample(output, noise),
    "Belief": lambda output, noise, normalize: normalize(output),
}


class NumpyPlayer:
    """An agent that plays one task after another, as `splagger.Player` does.

    Call `act` with an observation, `observe` with the outcome, and `reset` when a new task begins. Observations
    are those of the meta-episode: if a task has several episodes, the last number is the done flag. `context` is
    the largest number of steps in a task, which only Transformers use. `sizes` are those of actions that consist of
    several discrete numbers. `images` are those at the beginning of an observation, whose pixels are flattened.
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray],
        method: Mapping[str, Any],
        seed: int = 0,
        context: int = sys.maxsize,
        sizes: Sequence[int] = (),
        images: Sequence[Image] = (),
    ):
        self._arrays, used = arrays, set[str]()
        self._sizes, self._ends = tuple(sizes), np.cumsum(sizes, dtype=int)[:-1]
        self._random = np.random.default_rng(seed)
        self._latent = built(LATENTS, method["latent"], "latent")
        self._memory = NumpyMemory(Arrays(arrays, used, "0.memory"), method, context, images)
        self._build_policy(Arrays(arrays, used, "0.policy"), images)
        moments = Arrays(arrays, used, "1").moments
        self._normalize, self._normalize_output = moments("obs"), moments("output")
        unused = [n for n in sorted(set(arrays) - used) if not n.startswith((CRITIC, DECODER))]
        if unused:
            raise SettingError(f"the NumPy player cannot use {unused[0]}; use splagger.load")
        self.reset()

    def _build_policy(self, arrays: Arrays, images: Sequence[Image]) -> None:
        self._vision = NumpyVision(arrays.below("vision"), images)
        self._state_embedding = arrays.linear("state_embedding")
        self._latent_embedding = arrays.linear("latent_embedding")
        self._actor = GeneratedNetwork(arrays.below("hypernetwork.heads.actor"))
        self.discrete = not arrays.has("log_std")
        self._log_std = None if self.discrete else arrays.get("log_std")
        inputs = arrays.below("state_embedding").get("weight").shape[1]
        self.obs_size = inputs - self._vision.features + self._vision.pixels
        self.action_size = self._actor.output_size  # number of actions, or their dimensions

    @ft.cached_property
    def _critic(self) -> GeneratedNetwork:
        """Half of all numbers, which acting does not need: they are read when they are first used."""
        try:
            return GeneratedNetwork(Arrays(self._arrays, set(), CRITIC))
        except DAMAGED as error:
            raise RunError(f"the critic of this agent is damaged ({error})") from None

    def reset(self) -> None:
        """Empties the memory: a new task begins."""
        self.memory, self._obs = self._memory.empty, None

    @_quiet
    def act(self, obs: Any, explore: bool = False) -> Any:
        """Returns the most likely action, or a sampled one if `explore`: an int or an array."""
        self._obs = obs = _vector("obs", obs, self.obs_size)
        numbers = self._actor(*self._inputs(obs, None))
        if self._log_std is None:
            noise = self._random.gumbel(size=len(numbers)) if explore else 0
            chosen = [int(np.argmax(part)) for part in np.split(numbers + noise, self._ends)]
            return np.array(chosen) if self._sizes else chosen[0]
        noise = self._random.standard_normal(len(numbers), np.float32) if explore else np.float32(0)
        return numbers + np.maximum(np.float32(1e-6), np.exp(self._log_std)) * noise

    @_quiet
    def observe(self, action: Any, reward: Any, next_obs: Any, task_done: bool = False) -> None:
        """Adds the outcome of the last `act` to the memory. `task_done` ends the task and empties the memory."""
        if self._obs is None:
            raise SettingError(
                "observe() takes the outcome of an action: call act() before each observe()"
            )
        obs, next_obs = self._obs, _vector("next_obs", next_obs, self.obs_size)
        step = obs, self._encoded(action), _vector("reward", [reward], 1), next_obs
        done = as_flag("task_done", task_done)
        self.memory = self._memory.empty if done else self._memory.step(self.memory, *step)
        self._obs = None

    @_quiet
    def probabilities(self, obs: Any, noise: Vector | None = None) -> Vector:
        """Returns the probability of every action, or the mean of a continuous one.

        If an action consists of several numbers, these are the probabilities of all their values, side by side.
        `noise` replaces the random numbers behind a latent that is sampled (PEARL).
        """
        numbers = self._actor(*self._inputs(_vector("obs", obs, self.obs_size), noise))
        if not self.discrete:
            return numbers
        powers = [np.exp(part - part.max()) for part in np.split(numbers, self._ends)]
        return np.concatenate([part / part.sum() for part in powers])

    @_quiet
    def value(self, obs: Any, noise: Vector | None = None) -> float:
        """Returns the critic's estimate of the discounted sum of scaled rewards."""
        inputs = self._inputs(_vector("obs", obs, self.obs_size), noise)
        return float(self._critic(*inputs)[0])

    def _inputs(self, obs, noise):
        """Returns (embedded observation, terms z̃ of the hypernetwork)."""
        output = self.memory.output
        if noise is None and self._latent is LATENTS["Gaussian"]:
            noise = self._random.standard_normal(len(output) // 2, np.float32)
        z = np.tanh(self._latent_embedding(self._latent(output, noise, self._normalize_output)))
        x = np.tanh(self._state_embedding(self._vision(obs, self._normalize)))
        return x, np.concatenate([z, np.ones(1, np.float32)])

    def _encoded(self, action):
        if not self.discrete:
            return _vector("action", action, self.action_size)
        if self._sizes:
            return self._encoded_numbers(np.asarray(action))
        found = np.asarray(action)
        is_number = found.shape == () and found.dtype.kind in "biuf"
        if not is_number or found.item() not in range(self.action_size):
            raise SettingError(f"action must be one of 0 … {self.action_size - 1}, got {action!r}")
        return np.eye(1, self.action_size, int(action), dtype=np.float32)[0]

    def _encoded_numbers(self, action):
        """Returns one-hot vectors side by side, one per number of the action."""
        valid = action.shape == (len(self._sizes),) and np.isin(action, range(max(self._sizes)))
        if not np.all(valid) or np.any(action >= np.array(self._sizes)):
            raise SettingError(
                f"action must be {len(self._sizes)} numbers below {self._sizes}, got {action}"
            )
        pairs = zip(action, self._sizes, strict=True)
        return np.concatenate([np.eye(1, n, int(a), dtype=np.float32)[0] for a, n in pairs])


def load(path: str | Path, seed: int = 0) -> NumpyPlayer:
    """Loads an agent from a file that `splagger export` wrote, or one of the zoo by its name.

    `seed` is that of sampled actions.
    """
    found = read_agent(path)
    try:
        player = NumpyPlayer(
            found.arrays, found.method, seed, found.horizon, found.sizes, found.images
        )
        _try(player)
    except UserError as error:
        raise RunError(f"{path}: {error}") from None
    except DAMAGED as error:  # an array is missing or has another shape
        raise RunError(f"{path} is damaged ({error})") from None
    return player


class AgentParts(NamedTuple):
    """The verified arrays of an agent file, and what players need of its description."""

    arrays: Mapping[str, NDArray]
    method: dict[str, Any]
    horizon: int  # the length of the longest task
    sizes: tuple[int, ...]  # of actions that consist of several discrete numbers
    images: tuple[Image, ...]  # at the beginning of observations


def read_agent(path: str | Path) -> AgentParts:
    """Reads an agent file; raises a RunError if it is not one, or is damaged."""
    with open_agent(locate(path)) as file:
        arrays = file.arrays()
    try:
        method = file.description["run"]["method"]
        interface = file.description.get("interface", {})
        horizon = interface.get("horizon", sys.maxsize)
        sizes = interface.get("space", {}).get("sizes", [])
        images = interface.get("images", [])
    except (KeyError, TypeError, AttributeError):
        raise RunError(
            f"{path} is not an agent that splagger wrote: it describes no method"
        ) from None
    if type(horizon) is not int or horizon < 1:
        raise RunError(f"{path} is damaged (its horizon is {horizon!r:.80})")
    if not isinstance(sizes, list) or not all(type(n) is int and n > 0 for n in sizes):
        raise RunError(f"{path} is damaged (the sizes of its actions are {sizes!r:.80})")
    return AgentParts(arrays, method, horizon, tuple(sizes), _images(path, images))


def _images(path: str | Path, data: Any) -> tuple[Image, ...]:
    try:
        return images_from_json(data, sys.maxsize)
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error})") from None


def _try(player: NumpyPlayer) -> None:
    """Uses all arrays but those of the critic once."""
    obs = np.zeros(player.obs_size, np.float32)
    player.observe(player.act(obs), 0.0, obs)
    player.reset()


def _sample(output: Vector, noise: Vector) -> Vector:
    """Returns a sample of N(mean, exp(log variance)), where output = [mean; log variance]."""
    mean, log_variance = np.split(output, 2)
    return mean + np.exp(np.float32(0.5) * log_variance) * noise


def _vector(name: str, value: Any, size: int) -> Vector:
    """Returns `value` as float32; raises a SettingError if it is not `size` finite numbers."""
    try:
        vector = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must be {size} numbers, got {type(value).__name__}") from None
    if vector.shape != (size,):
        raise SettingError(f"{name} must have shape ({size},), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise SettingError(f"{name} must be finite, got {vector}")
    return vector
