"""What an environment is: pure functions of explicit state. The task is an argument, never an attribute."""

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Key

from splagger.errors import SettingError
from splagger.spaces import ActionSpace

Task = Any  # a pytree of arrays: all that distinguishes one task from another
State = Any  # a pytree of arrays: all that changes within an episode


class EnvSpec(NamedTuple):
    """The shape of an environment.

    `horizon` is the largest number of steps of an episode; with `fixed_length` every episode has exactly so many.
    """

    name: str
    obs_size: int
    space: ActionSpace
    horizon: int
    obs_low: float = -math.inf
    obs_high: float = math.inf
    action_names: tuple[str, ...] = ()
    fixed_length: bool = False


class Step(NamedTuple):
    """What one step brought. `truncated`: cut off by a time limit; where both are true, `terminated` counts."""

    obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class Env(Protocol):
    """One environment, no batch axis; the caller vmaps. Its settings are static: it must be hashable.

    To be drawn by `splagger watch` it also has `render(task, state, episode, episodes)` → [H, W, 3].
    """

    @property
    def spec(self) -> EnvSpec: ...

    def sample_task(self, key: Key[Array, ""]) -> Task:
        """A task from the distribution."""
        ...

    def reset(self, key: Key[Array, ""], task: Task) -> tuple[State, Float[Array, " obs"]]:
        """The first state of an episode of this task, and what is seen of it."""
        ...

    def step(
        self, key: Key[Array, ""], task: Task, state: State, action: Array
    ) -> tuple[State, Step]:
        """The state after an action, and what the step brought."""
        ...


@runtime_checkable
class ShowsSignal(Protocol):
    """An environment whose observations may show a signal that matters later."""

    def shows_signal(self, obs: Float[Array, " obs"]) -> Bool[Array, ""]: ...


@runtime_checkable
class Drawable(Protocol):
    """An environment that `splagger watch` can draw."""

    def render(self, task: Task, state: State, episode: int, episodes: int) -> Any:
        """Returns an RGB image [H, W, 3] of a state, for people."""
        ...


def whole_and_positive(owner: object, **values: Any) -> None:
    """Raises a ValueError that names the first of `values` that is no whole number above zero."""
    for name, value in values.items():
        if not isinstance(value, int) or value < 1:
            raise SettingError(
                f"{type(owner).__name__}: {name} must be a positive integer, got {value}"
            )
