"""Draws the pictures of docs/environments.md: `python docs/draw_environments.py`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from splagger.envs import MetaEnv, views
from splagger.registry import ENVS

IMAGES = Path(__file__).parent / "images"


def after(name: str, actions: list, seed: int = 3) -> np.ndarray:
    """Returns the picture of an environment after some actions."""
    env: MetaEnv = ENVS[name].meta
    state, step = env.reset(jr.key(seed)), jax.jit(env.step)
    for t, action in enumerate(actions):
        state, _ = step(jr.key(t), state, jnp.asarray(action, env.space.zero().dtype))
    return env.render(state)


def stack(pictures: list[np.ndarray], axis: int, gap: int = 24) -> np.ndarray:
    """Returns the pictures side by side or stacked, on white."""
    side = 1 - axis
    size = max(p.shape[side] for p in pictures)
    padded = []
    for picture in pictures:
        pad = [(0, 0)] * 3
        pad[side] = (0, size - picture.shape[side])
        pad[axis] = (0, gap)
        padded.append(np.pad(picture, pad, constant_values=255))
    return np.concatenate(padded, axis=axis)


def contact_sheet(resolution: int = views.CELLS, scale: int = 10) -> np.ndarray:
    """Returns a labeled 4 × 4 grid of all views as uint8 RGB, each pixel enlarged to `scale` pixels."""
    side, gap, text = resolution * scale, 16, 20
    page = Image.new("RGB", (4 * (side + gap) + gap, 4 * (side + gap + text) + gap), "#ffffff")
    for index, name in enumerate(views.VIEWS):
        x, y = gap + index % 4 * (side + gap), gap + index // 4 * (side + gap + text)
        view = Image.fromarray(views.draw(name, resolution)).resize(
            (side, side), Image.Resampling.NEAREST
        )
        page.paste(view, (x, y + text))
        ImageDraw.Draw(page).text((x, y), name, "#222222", ImageFont.load_default(size=14))
    return np.array(page)


def main() -> None:
    mine_actions = [2, 1, 0, 1, 1, 2, 1] * 2 + [1]
    mazes = stack([after("t-ls", [0] * 37), after("t-agreement", [0] * 145)], axis=0)
    lower = stack([after("planning", [0, 3, 0, 2]), after("mc-ls", mine_actions)], axis=1)
    Image.fromarray(stack([mazes, lower], axis=0)).save(IMAGES / "environments.png", optimize=True)
    cheetah = after("cheetah-dir", [[0.6, 0.3, 0.2, -0.6, 0.4, 0.0]] * 5)
    walker = after("walker", [[-0.4, -0.2, 0.0, 0.2, 0.0, 0.1]] * 8, seed=5)
    robots = stack([cheetah, walker], axis=1)
    Image.fromarray(robots).quantize(128).save(IMAGES / "robots.png", optimize=True)
    Image.fromarray(contact_sheet()).save(IMAGES / "mc-ls-views.png", optimize=True)
    draw_classic()


def draw_classic() -> None:
    """Draws the tasks that are not in the paper."""
    pulls = [0, 1, 2, 3, 4, 1, 1, 3, 1, 1, 2, 1, 1, 4, 1, 1]
    grids = [after("goal-grid", [1, 1, 1, 2]), after("key-to-door", [1, 2, 3, 3])]
    upper = stack([*grids, after("tabular-mdp", [0, 1, 2, 3])], axis=1)
    lower = stack([after("bandit-5", pulls), after("point-robot", [(0.3, 1.0)] * 5)], axis=1)
    pages = stack([upper, lower, after("t-endless", [0] * 25)], axis=0)
    Image.fromarray(pages).save(IMAGES / "classic.png", optimize=True)


if __name__ == "__main__":
    main()
