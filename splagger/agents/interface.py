"""What an agent must know about its environment to act without it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from splagger.agent import Interface
from splagger.bridges import HostMetaEnv
from splagger.bridges.gym.gym_env import layout
from splagger.bridges.gym.space_data import (
    SpaceData,
    action_space,
    bounds_of,
    flat_size,
    flatten,
    to_action,
)
from splagger.envs import AbstractMetaEnv
from splagger.errors import SettingError
from splagger.images import Image, images_from_json
from splagger.spaces import ActionSpace, Continuous, Discrete, MultiDiscrete


@dataclass(frozen=True)
class SavedInterface:
    """The sizes of observations and actions, and for Gymnasium environments the conversions of both.

    It takes the place of the environment of an agent that was loaded without one. `missing` says why there is none.
    """

    obs_size: int
    space: ActionSpace
    horizon: int
    episodes: int
    observations: SpaceData | None = None
    actions: SpaceData | None = None
    missing: str = ""
    images: tuple[Image, ...] = ()

    def sizes(self) -> Interface:
        return Interface(self.obs_size, self.space, self.horizon, self.images)

    def flatten(self, obs: Any, done: bool = False) -> np.ndarray:
        """Returns a Gymnasium observation in the agent's form; `done`: an episode of the task has just ended."""
        flat = flatten(self._known(self.observations, "observations"), obs)
        return flat if self.episodes == 1 else np.append(flat, np.float32(done))

    def action(self, action: Any) -> Any:
        """Returns an agent's action in Gymnasium's form, scaled to the bounds of the action space."""
        return to_action(self._known(self.actions, "actions"), action)

    def _known(self, data: SpaceData | None, what: str) -> SpaceData:
        if data is None:
            raise SettingError(f"this agent was saved without its environment's space of {what}")
        return data

    def to_json(self) -> dict[str, Any]:
        space: dict[str, Any] = {"kind": type(self.space).__name__, "size": self.space.size}
        if isinstance(self.space, MultiDiscrete):
            space["sizes"] = list(self.space.sizes)
        sizes = {"obs_size": self.obs_size, "space": space, "horizon": self.horizon}
        spaces = {"observations": self.observations, "actions": self.actions}
        images = {"images": [list(image) for image in self.images]} if self.images else {}
        return sizes | {"episodes": self.episodes} | spaces | images

    @classmethod
    def from_json(cls, data: Any) -> "SavedInterface":
        """Reads an interface from an agent file; raises a ValueError that names what is wrong."""
        if not isinstance(data, dict):
            raise ValueError("its interface is not a JSON object")
        obs_size, horizon, episodes = (_size(data, k) for k in ("obs_size", "horizon", "episodes"))
        space = _space(data.get("space"))
        spaces = data.get("observations"), data.get("actions")
        if not all(found is None or isinstance(found, dict) for found in spaces):
            raise ValueError("its observations or actions are not JSON objects")
        images = images_from_json(data.get("images", []), obs_size)
        found = cls(obs_size, space, horizon, episodes, *spaces, images=images)
        found._check_spaces()
        return found

    def _check_spaces(self) -> None:
        if self.observations is not None:
            size = flat_size(self.observations) + (self.episodes > 1)
            if size != self.obs_size:
                raise ValueError(f"its observations have {size} numbers, not {self.obs_size}")
        if self.actions is not None:
            # This also bounds the memory of the next line.
            fits = flat_size(self.actions) <= self.space.size
            if not fits or action_space(self.actions) != self.space:
                raise ValueError("its actions do not have the size of its action space")
            if isinstance(self.space, Continuous):
                bounds_of(self.actions)


def _space(data: Any) -> ActionSpace:
    """Reads an action space; raises a ValueError if it is not one."""
    match data:
        case {"kind": "Discrete"}:
            return Discrete(_size(data, "size"))
        case {"kind": "Continuous"}:
            return Continuous(_size(data, "size"))
        case {"kind": "MultiDiscrete", "sizes": [*sizes]} if sizes and _are_sizes(sizes):
            return MultiDiscrete(tuple(sizes))
    raise ValueError(f"its action space is {data!r:.80}")


def _are_sizes(values: list[Any]) -> bool:
    return all(type(value) is int and 1 <= value < 2**31 for value in values)


def _size(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    if type(value) is not int or not 1 <= value < 2**31:
        raise ValueError(f"its {name} is {value!r:.80}")
    return value


def interface_of(env: AbstractMetaEnv) -> SavedInterface:
    """Returns the interface of an environment."""
    spaces = ()
    if isinstance(env, HostMetaEnv):
        found = layout(env.env)
        spaces = found.observations, found.actions
    sizes = env.obs_size, env.space, env.horizon, env.episodes
    return SavedInterface(*sizes, *spaces, images=env.images)
