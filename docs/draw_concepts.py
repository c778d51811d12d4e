"""Draws the pictures of docs/concepts.md: `python docs/draw_concepts.py`."""

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon

from splagger.plots.draw import METADATA, STYLE

IMAGES = Path(__file__).parent / "images"
INK, SOFT, EDGE, PALE = "#1f2933", "#5f6b7a", "#9aa5b1", "#eef1f5"
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's
PALE_BLUE, PALE_ORANGE, PALE_GREEN = "#d3e6f2", "#f9dfcd", "#d0ece3"
EPISODES, STEPS = 4, 7


def canvas(width: float, height: float):
    """Returns empty axes whose unit is an inch."""
    figure = plt.figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return axes


def box(axes, x, y, width, height, fill=PALE, edge=EDGE, radius=0.06, line=1.0):
    """Draws a rounded box; (x, y) is its lower left corner."""
    style = f"round,pad=0,rounding_size={radius}"
    patch = FancyBboxPatch((x, y), width, height, boxstyle=style, fc=fill, ec=edge, lw=line)
    axes.add_patch(patch)


def write(axes, x, y, text, size=10.0, color=INK, **more):
    """Writes text, centered by default."""
    axes.text(x, y, text, **{"size": size, "color": color, "ha": "center", "va": "center"} | more)


def arrow(axes, start, end, color=SOFT, bend=0.0, line=1.4, style="-|>"):
    """Draws an arrow; `bend` is its curvature."""
    curve = f"arc3,rad={bend}"
    shape = {"arrowstyle": style, "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
    patch = FancyArrowPatch(start, end, connectionstyle=curve, color=color, lw=line, **shape)
    axes.add_patch(patch)


def elbow(axes, *points, color=SOFT, line=1.4):
    """Draws a line along `points` that ends in an arrow."""
    axes.plot(*zip(*points[:-1], strict=True), color=color, lw=line, solid_capstyle="butt")
    arrow(axes, points[-2], points[-1], color, line=line)


def meta_episode(axes) -> None:
    """Draws two tasks of four episodes, and the agent's knowledge of each task below."""
    left, episode, gap = 1.25, 0.98, 0.07
    task = EPISODES * episode + (EPISODES - 1) * gap
    starts = left, left + task + 0.42
    looks = (BLUE, PALE_BLUE, "task 1"), (ORANGE, PALE_ORANGE, "task 2")
    for name, y in (("experience", 2.73), ("knowledge\nof the task", 1.38)):
        write(axes, 0.12, y, name, weight="bold", ha="left", linespacing=1.3)
    for x, (color, pale, name) in zip(starts, looks, strict=True):
        box(axes, x - 0.1, 2.12, task + 0.2, 1.22, "white", color, 0.1, 1.6)
        write(axes, x, 3.14, f"{name}: one meta-episode", color=color, weight="bold", ha="left")
        for k in range(EPISODES):
            _episode(axes, x + k * (episode + gap), episode, k, color, pale)
        wedge = [(x, 1.0), (x + task, 1.0), (x + task, 1.76), (x, 1.04)]
        axes.add_patch(Polygon(wedge, closed=True, fc=pale, ec=color, lw=1.4, joinstyle="round"))
        write(axes, x + 0.1, 0.8, "explore", 9.5, SOFT, ha="left", style="italic")
        write(axes, x + task - 0.1, 0.8, "exploit", 9.5, SOFT, ha="right", style="italic")
        arrow(axes, (x + 0.75, 0.8), (x + task - 0.72, 0.8), EDGE, line=1.0)
    _ends(axes, starts[0] + episode + gap / 2, starts[0] + task)


def _episode(axes, x, width, k, color, pale) -> None:
    box(axes, x, 2.2, width, 0.72, PALE, PALE)
    write(axes, x + width / 2, 2.77, f"episode {k + 1}", 9, SOFT)
    size = 0.105
    for t in range(STEPS):
        box(axes, x + 0.07 + t * 0.124, 2.36, size, 0.22, pale, color, 0.02, 0.9)


def _ends(axes, episode_end, task_end) -> None:
    """Annotates the two events that must not be confused."""
    note = {"ha": "left", "linespacing": 1.35}
    axes.plot([episode_end] * 2, [0.52, 2.16], color=SOFT, lw=1.0, ls=(0, (1, 2)))
    text = "An episode ends: the environment is reset,\nthe task and the memory are kept."
    write(axes, episode_end - 0.02, 0.29, text, 9.5, **note)
    end = task_end + 0.21
    axes.plot([end] * 2, [0.52, 3.34], color=INK, lw=1.2, ls=(0, (4, 2)))
    text = "A task ends: a new one is sampled,\nthe memory is emptied."
    write(axes, end - 0.02, 0.29, text, 9.5, **note)


def split_aggregation(axes) -> None:
    """Draws the path from transitions to the weights of a policy."""
    middle, high, low = 1.87, 2.79, 1.07
    _transitions(axes, middle)
    box(axes, 2.0, middle - 0.45, 1.0, 0.9, "white", INK, line=1.4)
    write(axes, 2.5, middle + 0.1, "GRU", 13, weight="bold")
    write(axes, 2.5, middle - 0.18, "256 neurons", 8.5, SOFT)
    arrow(axes, (1.72, middle), (2.0, middle))
    for y, start, color, pale in ((high, 3.72, BLUE, PALE_BLUE), (low, 5.9, ORANGE, PALE_ORANGE)):
        elbow(axes, (3.24, middle), (3.24, y), (3.5, y), color=color)
        _neurons(axes, 3.5, y, color, pale)
        elbow(axes, (start, y), (6.28, y), (6.28, middle + (y - middle) * 0.19), color=color)
    axes.plot([3.0, 3.24], [middle] * 2, color=SOFT, lw=1.4)
    write(axes, 5.0, high + 0.22, "128 neurons skip", 10, BLUE, weight="bold")
    write(axes, 5.0, high - 0.2, "unchanged: depends on order", 9, SOFT)
    write(axes, 5.0, low + 0.54, "128 neurons aggregated", 10, ORANGE, weight="bold")
    arrow(axes, (3.72, low), (4.1, low), ORANGE)
    box(axes, 4.1, low - 0.36, 1.8, 0.72, PALE_ORANGE, ORANGE, line=1.4)
    write(axes, 5.0, low + 0.13, "running maximum", 10, weight="bold")
    write(axes, 5.0, low - 0.14, r"$m_t = \max(m_{t-1},\ e_t)$", 10)
    arrow(axes, (5.5, low - 0.36), (4.5, low - 0.36), ORANGE, bend=-0.55)
    write(axes, 5.0, low - 0.8, "kept for the next step: ignores order", 9, SOFT)
    _readout(axes, middle)


def _transitions(axes, middle) -> None:
    write(axes, 0.98, middle + 0.75, "transitions", 10, weight="bold")
    for k in (2, 1, 0):
        x, y = 0.2 + 0.07 * (2 - k), middle - 0.36 + 0.1 * k
        box(axes, x, y, 1.38, 0.66, "white", EDGE, line=1.2)
    write(axes, 0.34 + 0.69, middle - 0.03, r"$s_t,\ a_t,\ r_t,\ s_{t+1}$", 11)
    write(axes, 0.98, middle - 0.6, "of one task, one per step", 9, SOFT)


def _neurons(axes, x, y, color, pale) -> None:
    box(axes, x, y - 0.38, 0.22, 0.76, pale, color, 0.04, 1.2)
    for k in range(5):
        axes.plot(x + 0.11, y - 0.28 + 0.14 * k, "o", color=color, markersize=5)


def _readout(axes, middle) -> None:
    """Draws concat, linear, latent, hypernetwork and policy."""
    box(axes, 6.0, middle - 0.165, 0.56, 0.33, "white", INK, line=1.2)
    write(axes, 6.28, middle, "concat", 8.5)
    parts = (
        (6.8, 0.66, "linear", "256 → 24", "white", INK),
        (7.68, 0.66, "latent", "24", PALE, EDGE),
        (8.56, 1.3, "hypernetwork", "generates weights", "white", INK),
    )
    end = 6.56
    for x, width, name, note, fill, edge in parts:
        arrow(axes, (end, middle), (x, middle))
        box(axes, x, middle - 0.3, width, 0.6, fill, edge, line=1.3)
        write(axes, x + width / 2, middle + 0.1, name, 10, weight="bold")
        write(axes, x + width / 2, middle - 0.14, note, 8.5, SOFT)
        end = x + width
    box(axes, 10.3, middle - 0.45, 1.1, 0.9, PALE_GREEN, GREEN, line=1.4)
    write(axes, 10.85, middle + 0.1, "policy", 11, weight="bold")
    write(axes, 10.85, middle - 0.16, r"$\pi_{W(z)}(a\,|\,s)$", 10)
    arrow(axes, (end, middle), (10.3, middle), GREEN)
    write(axes, 10.08, middle + 0.16, r"$W$", 10, GREEN)
    arrow(axes, (10.85, middle + 1.0), (10.85, middle + 0.45))
    write(axes, 10.85, middle + 1.14, "state", 10)
    arrow(axes, (10.85, middle - 0.45), (10.85, middle - 1.0))
    write(axes, 10.85, middle - 1.14, "action, value", 10)


PICTURES = {
    "meta-episode": (meta_episode, 10.2, 3.5),
    "split-aggregation": (split_aggregation, 11.6, 3.5),
}


def main() -> None:
    for name, (draw, *size) in PICTURES.items():
        with plt.rc_context(STYLE):
            axes = canvas(*size)
            draw(axes)
            path = IMAGES / f"{name}.png"
            axes.figure.savefig(path, dpi=200, metadata=METADATA["png"])
            plt.close(axes.figure)
            print(os.path.relpath(path))


if __name__ == "__main__":
    main()
