"""Images of the classic tasks, as uint8 RGB arrays [height, width, 3]; see `splagger.envs.pictures`."""

import numpy as np

from splagger.envs.pictures import BLUE, CELL, GOLD, GREEN, INK, PAPER, RED, SOFT, TRAIL, Canvas

LOOKS = {"goal": ("#fdf1d6", GOLD), "key": ("#fdf1d6", GOLD), "door": ("#d8efe7", GREEN)}


def bandit(probabilities, pulled, paid) -> np.ndarray:
    """Returns a bar per arm, [360, 960, 3]: its probability (hidden), and its pulls with those that paid."""
    canvas = Canvas(960, 360)
    canvas.heading("Bandit", f"pull {sum(pulled)}", f"return {sum(paid)}")
    pitch, most = 896 / len(probabilities), max(1, *pulled)
    for arm, (probability, pulls, pays) in enumerate(zip(probabilities, pulled, paid, strict=True)):
        x, width = 32 + arm * pitch, max(1, pitch * 0.36)
        columns = ((0, probability, CELL), (1, pulls / most, TRAIL), (1, pays / most, BLUE))
        for column, height, color in columns:
            top = 300 - 220 * height
            canvas.box(x + column * pitch * 0.42, top, width, max(1, 300 - top), color, radius=1)
        if probability == max(probabilities):
            canvas.star(x + pitch * 0.18, 312, min(9, pitch / 3))
    end = canvas.text(32, 340, "gray: probability, hidden from the agent", 13, SOFT)
    canvas.text(end + 24, 340, "blue: pulls, and those that paid", 13, SOFT)
    return np.array(canvas.page.reduce(2))


def tabular(rewards, node, time, episode, episodes) -> np.ndarray:
    """Returns the mean rewards of all states (rows) and actions (columns), [560, 480, 3]."""
    canvas = Canvas(480, 560)
    canvas.heading("Tabular MDP", f"episode {episode}/{episodes}", f"step {time}")
    height, width = 430 / len(rewards), 380 / len(rewards[0])
    for row, means in enumerate(rewards):
        y = 76 + row * height
        canvas.text(36, y + height / 2, str(row), 14, INK if row == node else SOFT, "mm")
        for column, mean in enumerate(means):
            color = GREEN if mean == max(means) else CELL
            canvas.box(64 + column * width, y + 2, width - 4, height - 4, color)
            x, shade = 62 + (column + 0.5) * width, PAPER if color == GREEN else SOFT
            canvas.text(x, y + height / 2, f"{mean:.1f}", 13, shade, "mm")
        if row == node:
            canvas.agent(14, y + height / 2, 8)
    canvas.text(64, 532, "mean rewards by state and action, hidden from the agent", 13, SOFT)
    return np.array(canvas.page.reduce(2))


def grid(title, size, cell, marks, episode, episodes, step, status="") -> np.ndarray:
    """Returns a grid, [540, 480, 3]; x points right and y up. `marks` maps cells to names in `LOOKS`."""
    canvas = Canvas(480, 540)
    canvas.heading(title, f"episode {episode}/{episodes}", f"step {step}")
    side = 416 / size
    for x in range(size):
        for y in range(size):
            left, top = 32 + x * side, 76 + (size - 1 - y) * side
            mark = marks.get((x, y))
            look = (*LOOKS[mark], 3) if mark else (CELL,)
            canvas.box(left + 2, top + 2, side - 4, side - 4, *look, radius=min(8, side / 6))
            if mark == "goal":
                canvas.star(left + side / 2, top + side / 2, side * 0.22)
            elif mark:
                size_of_text = max(9, round(side * 0.26))
                canvas.text(left + side / 2, top + side / 2, mark, size_of_text, INK, "mm")
    x, y = cell
    canvas.agent(32 + (x + 0.5) * side, 76 + (size - y - 0.5) * side, side * 0.24)
    hidden = " and ".join(dict.fromkeys(marks.values()))
    end = canvas.text(32, 518, f"{hidden}: hidden from the agent", 13, SOFT)
    canvas.text(end + 24, 518, status, 13, INK)
    return np.array(canvas.page.reduce(2))


def point(position, goal, radius, episode, episodes, step) -> np.ndarray:
    """Returns the plane from (-1.4, -0.6) to (1.4, 1.4), [460, 620, 3]."""
    canvas = Canvas(620, 460)
    canvas.heading("Point Robot", f"episode {episode}/{episodes}", f"step {step}")
    scale = 180
    place = lambda p: (310 + scale * p[0], 320 - scale * p[1])  # noqa: E731
    for angle in np.linspace(0, np.pi, 61):
        canvas.disc(*place((np.cos(angle), np.sin(angle))), 2, CELL)
    canvas.disc(*place((0, 0)), 4, SOFT)
    canvas.disc(*place(goal), scale * radius, "#fdf1d6", GOLD, 2)
    canvas.star(*place(goal))
    near = float(np.hypot(*np.subtract(position, goal))) <= radius
    canvas.agent(*place(np.clip(position, (-1.6, -0.6), (1.6, 1.4))), 9)
    canvas.text(32, 436, "goal: hidden from the agent", 13, SOFT)
    canvas.text(588, 436, "rewarded" if near else "no reward", 13, GREEN if near else RED, "rm")
    return np.array(canvas.page.reduce(2))
