"""MC-LS: a color signal, sixteen rooms, and two doors; the color determines the door (Beck et al., 2020)."""

import functools as ft
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs import views
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.ranges import Finite, Pixels, Steps, check_fields
from splagger.spaces import Discrete

LEFT, FORWARD, RIGHT = range(3)
ROOM_STEPS = 6  # (0,0) (0,1) (±1,1) (±1,2) (±1,3) (0,3)
Y_OF_STEP = (0, 1, 1, 2, 3, 3)
TURN = 1  # the step within a room at which the agent chooses a side
RETURN = 4  # the step at which the agent returns to the middle


class MineState(NamedTuple):
    """The agent's progress, the side of the column on which it walks, the kinds of the rooms, and the time."""

    progress: Int[Array, ""]  # 0: the signal; then six steps per room; then the doors
    side: Int[Array, ""]  # -1 left, +1 right
    kinds: Bool[Array, " rooms"]  # iron (False) or diamond (True), drawn in every episode
    time: Int[Array, ""]


class MineMaze(eqx.Module):
    """A maze of rooms with first-person images and 3 actions: left, forward, right.

    Actions that lead into a wall have no effect. Every other move yields `reward_step`, except a turn to the
    wrong side of a room's column (correct: left of iron, right of diamond). At the doors, right is correct after
    a green signal and left after a red one. The `timeout`-th action truncates the episode.

    Observation: the image, flipped upside down, (x - 128) / 128, flattened. `images` names a folder
    with images that replace the drawn ones (see `splagger.envs.views.load`).

    >>> MineMaze(resolution=20).spec.obs_size
    1200
    """

    rooms: Steps = eqx.field(static=True, default=16)
    timeout: Steps = eqx.field(static=True, default=200)
    resolution: Pixels = eqx.field(static=True, default=10)
    reward_step: Finite = eqx.field(static=True, default=0.1)
    reward_right: Finite = eqx.field(static=True, default=4.0)
    reward_wrong: Finite = eqx.field(static=True, default=-3.0)
    images: str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_fields(self, "MineMaze: ")
        try:  # reports a missing image before training
            _images(self.images, self.resolution)
        except (ValueError, OSError) as error:
            raise SettingError(f"MineMaze: {error}") from None

    @property
    def spec(self) -> EnvSpec:
        size = 3 * self.resolution**2
        names = ("left", "forward", "right")
        return EnvSpec("MC-LS", size, Discrete(3), self.timeout, -1.0, 1.0, names)

    @property
    def end(self) -> int:
        """The value of `progress` at the doors."""
        return 1 + ROOM_STEPS * self.rooms

    def sample_task(self, key: Key[Array, ""]) -> Bool[Array, ""]:
        return jr.bernoulli(key)  # True: green, the right door

    def reset(self, key: Key[Array, ""], task: Bool[Array, ""]):
        zero = jnp.int32(0)
        state = MineState(zero, jnp.int32(1), jr.bernoulli(key, shape=(self.rooms,)), zero)
        return state, self.observe(task, state)

    def step(self, key: Key[Array, ""], task, state: MineState, action: Int[Array, ""]):
        time = state.time + 1
        truncated = time == self.timeout
        room_step, kind = self._room_step(state)
        allowed = self._allowed(state, room_step, action) & ~truncated
        turning = room_step == TURN
        wrong_side = turning & ((action == RIGHT) != kind)
        at_doors = state.progress == self.end
        prize = jnp.where((action == RIGHT) == task, self.reward_right, self.reward_wrong)
        pay = jnp.where(at_doors, prize, jnp.where(wrong_side, 0.0, self.reward_step))
        moved = allowed & ~at_doors
        state = MineState(
            state.progress + moved,
            jnp.where(moved & turning, action - FORWARD, state.side),
            state.kinds,
            time,
        )
        reward = jnp.where(allowed, pay, 0.0)
        return state, Step(self.observe(task, state), reward, allowed & at_doors, truncated)

    def observe(self, task: Bool[Array, ""], state: MineState) -> Float[Array, " obs"]:
        return jnp.asarray(_images(self.images, self.resolution))[self.view(task, state)]

    def view(self, task: Bool[Array, ""], state: MineState) -> Int[Array, ""]:
        """Returns the index in `views.VIEWS` of what the agent sees."""
        room_step, kind = self._room_step(state)
        room = jnp.array(_ROOM_VIEWS)[room_step, (state.side + 1) // 2, kind.astype(jnp.int32)]
        signal = jnp.where(task, _index("green"), _index("red"))
        doors = jnp.where(state.progress == self.end, _index("end"), room)
        return jnp.where(state.progress == 0, signal, doors)

    def shows_signal(self, obs: Float[Array, " obs"]) -> Bool[Array, ""]:
        """Returns whether the observation is the image of a signal."""
        signals = jnp.asarray(_images(self.images, self.resolution))[jnp.array(_SIGNALS)]
        return jnp.any(jnp.all(signals == obs[None], axis=1))

    def coordinates(self, state: MineState):
        """Returns (phase, room, x, y) of a state, for `render`."""
        progress, side = int(state.progress), int(state.side)
        if progress in (0, self.end):
            return (0, 0, 0, 0) if progress == 0 else (2, self.rooms - 1, 0, 0)
        room, room_step = divmod(progress - 1, ROOM_STEPS)
        return 1, room, side if TURN < room_step <= RETURN else 0, Y_OF_STEP[room_step]

    def render(self, task, state: MineState, episode: int = 0, episodes: int = 1):
        from splagger.envs import pictures

        phase, room, x, y = self.coordinates(state)
        return pictures.minemaze(
            views.denormalize(np.asarray(self.observe(task, state))),
            phase,
            room,
            self.rooms,
            x,
            y,
            state.kinds.tolist(),
            bool(task),
            episode + 1,
            episodes,
            int(state.time),
        )

    def _room_step(self, state):
        """Returns (step within the room, kind of the room); neither has a meaning outside the rooms."""
        inside = jnp.clip(state.progress - 1, 0, ROOM_STEPS * self.rooms - 1)
        room, room_step = jnp.divmod(inside, ROOM_STEPS)
        outside = (state.progress == 0) | (state.progress == self.end)
        return jnp.where(outside, 0, room_step), state.kinds[room]

    def _allowed(self, state, room_step, action):
        turn = action != FORWARD
        back = action == FORWARD - state.side
        room = jnp.where(
            room_step == TURN, turn, jnp.where(room_step == RETURN, back, action == FORWARD)
        )
        doors = jnp.where(state.progress == self.end, turn, room)
        return jnp.where(state.progress == 0, action == RIGHT, doors)


@ft.cache
def _images(images, resolution):
    return views.load(images, resolution) if images else views.sheet(resolution)


def _index(name):
    return views.VIEWS.index(name)


_SIGNALS = (_index("green"), _index("red"))


def _room_view(room_step, side, kind):
    """Returns the view at a step of a room, for a side (0 left, 1 right) and kind (0 iron, 1 diamond)."""
    x = (-1, 1)[side] if TURN < room_step <= RETURN else 0
    name = f"({x},{Y_OF_STEP[room_step]})"
    return _index(name if name in views.VIEWS else f"{name} {('iron', 'diamond')[kind]}")


_ROOM_VIEWS = [
    [[_room_view(room_step, side, kind) for kind in range(2)] for side in range(2)]
    for room_step in range(ROOM_STEPS)
]
