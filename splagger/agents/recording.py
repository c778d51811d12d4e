"""Records a trained agent as a GIF."""

import io
import itertools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agents.player import Player, as_player, random_key
from splagger.bridges import unwrapped_errors
from splagger.envs.meta import MetaEnv
from splagger.errors import RunError, SettingError
from splagger.files.storage import write_output, writing
from splagger.ppo.train import FRESH_STREAM
from splagger.ranges import TaskSeed, check

STRIP = 26  # pixels below each picture, for the caption
PAUSE = 8  # frames that the end of an episode is shown


@unwrapped_errors()
def record(player: Player, seed: int = 0) -> tuple[list[np.ndarray], float]:
    """Plays one meta-episode; returns captioned pictures [H, W, 3] and the agent's cumulative return."""
    check("task_seed", seed, TaskSeed)
    player = as_player(player)
    before, player._key = player._key, random_key(seed)  # of sampled latents
    try:
        return _play(player, seed)
    finally:
        player._key = before


def _play(player: Player, seed: int) -> tuple[list[np.ndarray], float]:
    env, total = player.environment("watching").to_render(), 0.0
    step = jax.jit(env.step)
    key, reset_key = jr.split(jr.fold_in(jr.key(seed), FRESH_STREAM))
    state = jax.jit(env.reset)(reset_key)
    player.reset()
    frames, done, time = [_captioned(env.render(state), "")], False, 0
    while not done:
        key, step_key = jr.split(key)
        action = player.act(state.obs)
        before, (state, out) = state, step(step_key, state, jnp.asarray(action))
        done, reward, time = bool(out.task_done), float(out.reward), time + 1
        player.observe(action, reward, out.next_obs if done else state.obs, done)
        total += reward
        caption = f"step {time}   reward {reward:+.2f}   return {total:.2f}"
        if out.episode_done:
            ended = _end_of_episode(env, step_key, before, action)
            picture = frames[-1][:-STRIP] if ended is None else env.render(jax.device_get(ended))
            frames += [_captioned(picture, caption)] * PAUSE
        if not done:
            frames.append(_captioned(env.render(jax.device_get(state)), caption))
    return frames, total


def watch(
    player: Player, path: str | Path | None = None, seed: int = 0, fps: int = 15
) -> float | list[np.ndarray]:
    """Writes a GIF of one meta-episode and returns the agent's cumulative return.

    Without a `path`, returns the pictures [H, W, 3] instead, for a notebook. `fps` are the pictures per second, 1 to 100.
    """
    from PIL import Image

    if path is None:
        return record(player, seed)[0]
    _check_path(Path(path))
    if not 1 <= fps <= 100:
        raise SettingError(f"fps must be between 1 and 100, got {fps}")
    frames, total = record(player, seed)
    images = [Image.fromarray(frame).quantize(64) for frame in frames]
    content, durations = io.BytesIO(), _durations(len(images), fps)
    images[0].save(
        content, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0
    )
    with writing(path):
        write_output(path, content.getvalue())
    return total


def _durations(pictures: int, fps: int) -> list[int]:
    """Returns how long each picture is shown, in milliseconds, so that `fps` pictures per second are shown on average.

    GIF files store hundredths of a second: a constant duration of 1/60 s would be cut to 1/100 s.

    >>> _durations(6, 60)
    [20, 10, 20, 20, 10, 20]
    """
    starts = [round(100 * k / fps) for k in range(pictures + 1)]
    return [10 * (after - start) for start, after in itertools.pairwise(starts)]


def _check_path(path: Path) -> None:
    """Raises before an agent plays if a GIF cannot be written there."""
    if path.suffix.lower() != ".gif":
        raise SettingError(f"the name of the picture must end with .gif, got {path}")
    if path.is_dir():
        raise SettingError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise RunError(f"cannot write {path} (there is no folder {path.parent})")


def _end_of_episode(env: Any, key: Any, state: Any, action: Any) -> Any:
    """Returns the state in which an episode ended, before the reset; None if only the environment knew it."""
    if not isinstance(env, MetaEnv):
        return None
    noise = env.sample_noise(key)
    inner, _ = env.env.step(noise.step_key, state.task, state.inner, jnp.asarray(action))
    return state._replace(inner=inner)


def _captioned(picture: Any, caption: str) -> np.ndarray:
    """Adds a strip with a line of text below a picture."""
    from PIL import Image, ImageDraw, ImageFont

    picture = np.asarray(picture)
    strip = Image.new("RGB", (picture.shape[1], STRIP), (255, 255, 255))
    draw = ImageDraw.Draw(strip)
    draw.text((8, STRIP // 2), caption, (60, 60, 60), ImageFont.load_default(14), "lm")
    return np.concatenate([picture, np.asarray(strip)])
