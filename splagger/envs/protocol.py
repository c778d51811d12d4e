"""The environment protocol: pure functions of explicit state. The task is an argument, never an attribute."""

import math
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable

from jaxtyping import Array, Bool, Float, Key

from splagger.images import Image
from splagger.spaces import ActionSpace

Task = Any  # a pytree of arrays: all that distinguishes one task from another
State = Any  # a pytree of arrays: all that changes within an episode
P = TypeVar("P")


class EnvSpec(NamedTuple):
    """The name, sizes and bounds of an environment.

    `horizon` is the largest number of steps in an episode; with `fixed_length`, every episode has exactly
    `horizon` steps. That makes training faster, and training verifies it. `images` are those at the beginning of
    each observation.
    """

    name: str
    obs_size: int
    space: ActionSpace
    horizon: int
    obs_low: float = -math.inf
    obs_high: float = math.inf
    action_names: tuple[str, ...] = ()
    fixed_length: bool = False
    images: tuple[Image, ...] = ()


class Step(NamedTuple):
    """The result of one step. `truncated` means a time limit; if both flags are true, `terminated` takes effect."""

    obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class Env(Protocol):
    """One environment without a batch axis; the caller vmaps. It must be hashable, so its settings are static.

    For `splagger watch` it also needs `render(task, state, episode, episodes)`, see `Drawable`.
    """

    @property
    def spec(self) -> EnvSpec: ...

    def sample_task(self, key: Key[Array, ""]) -> Task:
        """Samples a task from the distribution."""
        ...

    def reset(self, key: Key[Array, ""], task: Task) -> tuple[State, Float[Array, " obs"]]:
        """Starts an episode of this task; returns (state, observation)."""
        ...

    def step(
        self, key: Key[Array, ""], task: Task, state: State, action: Array
    ) -> tuple[State, Step]:
        """Takes one step; returns (state, Step)."""
        ...


@runtime_checkable
class ShowsSignal(Protocol):
    """An environment whose observations may show a signal that matters later."""

    def shows_signal(self, obs: Float[Array, " obs"]) -> Bool[Array, ""]: ...


@runtime_checkable
class Drawable(Protocol):
    """An environment that `splagger watch` can draw."""

    def render(self, task: Task, state: State, episode: int, episodes: int) -> Any:
        """Returns an RGB image [H, W, 3] of a state."""
        ...


def follows(value: object, protocol: type[P]) -> TypeGuard[P]:
    """Returns whether a value has all members of a protocol, and evaluates its properties.

    Since Python 3.12, `isinstance` ignores members that `__getattr__` provides, as in wrappers, and does not evaluate properties.
    """
    return all(hasattr(value, name) for name in vars(protocol) if not name.startswith("_"))
