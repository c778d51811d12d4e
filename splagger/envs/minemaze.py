"""MC-LS: a color, sixteen rooms to walk through, and a door that the color names (Beck et al., 2020)."""

import functools as ft
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs import views
from splagger.envs.protocol import EnvSpec, Step, whole_and_positive
from splagger.errors import SettingError
from splagger.spaces import Discrete

LEFT, FORWARD, RIGHT = range(3)
ROOM_STEPS = 6  # (0,0) (0,1) (±1,1) (±1,2) (±1,3) (0,3)
Y_OF_STEP = (0, 1, 1, 2, 3, 3)
TURN = 1  # the step of a room at which a side is chosen
RETURN = 4  # the step at which the way leads back from the side


class MineState(NamedTuple):
    """How far the agent has come, on which side of the column it walks, and what the rooms are."""

    progress: Int[Array, ""]  # 0: the signal; then six places a room; then the doors
    side: Int[Array, ""]  # -1 left, +1 right
    kinds: Bool[Array, " rooms"]  # iron (False) or diamond (True), new in every episode
    time: Int[Array, ""]


class MineMaze(eqx.Module):
    """First-person pictures, 3 actions (left, forward, right); what leads nowhere does nothing.

    Every step forward pays `reward_step`, except a turn to the wrong side of a room's column (iron:
    left, diamond: right). At the end right is the door of a green signal, left that of a red one. The
    episode is cut off when the `timeout`-th action is taken.

    Observation: the picture, flipped upside down, (x - 128) / 128, flattened. `images` names a folder
    with pictures to use instead of the drawn ones (see `splagger.envs.views.load`).

    >>> MineMaze(resolution=20).spec.obs_size
    1200
    """

    rooms: int = eqx.field(static=True, default=16)
    timeout: int = eqx.field(static=True, default=200)
    resolution: int = eqx.field(static=True, default=10)
    reward_step: float = eqx.field(static=True, default=0.1)
    reward_right: float = eqx.field(static=True, default=4.0)
    reward_wrong: float = eqx.field(static=True, default=-3.0)
    images: str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        whole_and_positive(self, rooms=self.rooms, timeout=self.timeout, resolution=self.resolution)
        try:  # a missing picture is found here, not in training
            _sheet(self.images, self.resolution)
        except (ValueError, OSError) as error:
            raise SettingError(f"MineMaze: {error}") from None

    @property
    def spec(self) -> EnvSpec:
        size = 3 * self.resolution**2
        names = ("left", "forward", "right")
        return EnvSpec("MC-LS", size, Discrete(3), self.timeout, -1.0, 1.0, names)

    @property
    def end(self) -> int:
        """The progress at which the doors are reached."""
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
        place, kind = self._place(state)
        allowed = self._allowed(state, place, action) & ~truncated
        turning = place == TURN
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
        return jnp.asarray(_sheet(self.images, self.resolution))[self.view(task, state)]

    def view(self, task: Bool[Array, ""], state: MineState) -> Int[Array, ""]:
        """Which of `views.VIEWS` is seen."""
        place, kind = self._place(state)
        room = jnp.array(_ROOM_VIEWS)[place, (state.side + 1) // 2, kind.astype(jnp.int32)]
        signal = jnp.where(task, _index("green"), _index("red"))
        doors = jnp.where(state.progress == self.end, _index("end"), room)
        return jnp.where(state.progress == 0, signal, doors)

    def shows_signal(self, obs: Float[Array, " obs"]) -> Bool[Array, ""]:
        """Whether this is the picture of a signal."""
        signals = jnp.asarray(_sheet(self.images, self.resolution))[jnp.array(_SIGNALS)]
        return jnp.any(jnp.all(signals == obs[None], axis=1))

    def coordinates(self, state: MineState):
        """(phase, room, x, y) of a state, for pictures."""
        progress, side = int(state.progress), int(state.side)
        if progress in (0, self.end):
            return (0, 0, 0, 0) if progress == 0 else (2, self.rooms - 1, 0, 0)
        room, place = divmod(progress - 1, ROOM_STEPS)
        return 1, room, side if TURN < place <= RETURN else 0, Y_OF_STEP[place]

    def render(self, task, state: MineState, episode: int = 0, episodes: int = 1):
        from splagger.envs import pictures as render

        phase, room, x, y = self.coordinates(state)
        return render.minemaze(
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

    def _place(self, state):
        """(step of the room, its kind); neither means anything outside the rooms."""
        inside = jnp.clip(state.progress - 1, 0, ROOM_STEPS * self.rooms - 1)
        room, place = jnp.divmod(inside, ROOM_STEPS)
        outside = (state.progress == 0) | (state.progress == self.end)
        return jnp.where(outside, 0, place), state.kinds[room]

    def _allowed(self, state, place, action):
        turn = action != FORWARD
        back = action == FORWARD - state.side
        room = jnp.where(place == TURN, turn, jnp.where(place == RETURN, back, action == FORWARD))
        doors = jnp.where(state.progress == self.end, turn, room)
        return jnp.where(state.progress == 0, action == RIGHT, doors)


@ft.cache
def _sheet(images, resolution):
    return views.load(images, resolution) if images else views.sheet(resolution)


def _index(name):
    return views.VIEWS.index(name)


_SIGNALS = (_index("green"), _index("red"))


def _room_view(place, side, kind):
    """The picture at a room's step, by side (0 left, 1 right) and kind (0 iron, 1 diamond)."""
    x = (-1, 1)[side] if TURN < place <= RETURN else 0
    name = f"({x},{Y_OF_STEP[place]})"
    return _index(name if name in views.VIEWS else f"{name} {('iron', 'diamond')[kind]}")


_ROOM_VIEWS = [
    [[_room_view(place, side, kind) for kind in range(2)] for side in range(2)]
    for place in range(ROOM_STEPS)
]
