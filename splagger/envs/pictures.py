"""Images of environment states for videos and figures, as uint8 RGB arrays [height, width, 3].

All arguments are Python or NumPy numbers. Episodes are numbered from 1, as in the headings, and rooms from 0. A
star shows the correct choice; it is for the viewer and not part of the agent's observation.
"""

import numpy as np

PAPER, PANEL, CELL, TRAIL, WALL = "#ffffff", "#f4f6f9", "#e3e8ef", "#bcd9ee", "#59636e"
INK, SOFT, STONE, DIAMOND, OBSIDIAN = "#1f2933", "#66727f", "#a3a9b0", "#3fb8b0", "#241d33"
GREEN, RED, BLUE, GOLD = "#009e73", "#d55e00", "#0072b2", "#e69f00"  # safe for color blindness


class Canvas:
    """A canvas of twice the final size, addressed in final pixels; downscaling smooths the edges."""

    def __init__(self, width, height):
        from PIL import Image, ImageDraw, ImageFont

        self.page = Image.new("RGB", (2 * width, 2 * height), PAPER)
        self.pen = ImageDraw.Draw(self.page)
        self.font = ImageFont.load_default

    def box(self, x, y, width, height, fill, outline=None, line=0, radius=4):
        ends = (2 * x, 2 * y, 2 * (x + width) - 1, 2 * (y + height) - 1)
        self.pen.rounded_rectangle(ends, 2 * radius, fill, outline, 2 * line)

    def disc(self, x, y, radius, fill, outline=None, line=0):
        self.pen.circle((2 * x, 2 * y), 2 * radius, fill, outline, 2 * line)

    def shape(self, x, y, reach, angles, fill):
        """Fills the polygon with corners at `reach` from (x, y); 90 degrees is upward."""
        turn = np.radians(angles)
        corners = np.stack([x + reach * np.cos(turn), y - reach * np.sin(turn)], axis=1)
        self.pen.polygon((2 * corners).ravel().tolist(), fill)

    def arrow(self, x, y, radius, direction, fill):
        self.shape(x, y, radius, (direction, direction + 130, direction - 130), fill)

    def star(self, x, y, radius=9):
        self.shape(x, y, radius * np.resize((1, 0.45), 10), np.arange(90, 450, 36), GOLD)

    def agent(self, x, y, radius=12):
        self.disc(x, y, radius + 3, PAPER)
        self.disc(x, y, radius, BLUE)

    def text(self, x, y, string, size=16, color=INK, anchor="lm"):
        """Writes the string and returns the x where it ends."""
        font = self.font(size=2 * size)
        self.pen.text((2 * x, 2 * y), string, color, font, anchor)
        return x + font.getlength(string) / 2

    def heading(self, title, *details):
        end = self.text(32, 34, title, 26)
        for detail in details:
            end = self.text(end + 24, 36, detail, 18, SOFT)


def _corridor(canvas, length, position, signals, left, pitch):
    """Draws all cells except the last one (the junction), with signals and cell numbers."""
    numbered = 1 if length <= 12 else 10 if length <= 50 else 25
    width = pitch - (1 if pitch < 16 else 3)
    for cell in range(length - 1):
        x, sign = left + cell * pitch, int(signals.get(cell, 0))
        color = {1: GREEN, -1: RED}.get(sign, TRAIL if cell < position else CELL)
        canvas.box(x, 142, width, 40, color, radius=min(4, pitch / 4))
        if sign:
            canvas.arrow(x + width / 2, 162 - 34 * sign, 9, 90 * sign, color)
        if cell % numbered == 0:
            canvas.text(x + width / 2, 214, str(cell), 13, SOFT, "mm")


def _doors(canvas, x, door_up):
    """Draws the junction at x and its two doors."""
    canvas.box(x, 98, 40, 128, CELL)
    for y, name, correct in ((78, "up", door_up), (228, "down", not door_up)):
        canvas.box(x - 14, y, 68, 18, WALL)
        canvas.text(x + 20, y + 8.5, name, 13, PAPER, "mm")
        if correct:
            canvas.star(x + 74, y + 9)
            canvas.text(x + 90, y + 1, "correct door", 14)
            canvas.text(x + 90, y + 18, "hidden from the agent", 12, SOFT)


def _tmaze_legend(canvas, noise):
    canvas.text(900, 36, f"noise {noise:+g}", 16, SOFT, "rm")
    canvas.disc(918, 36, 7, INK if noise > 0 else PAPER, INK, 2)
    canvas.arrow(40, 274, 8, 90, GREEN)
    end = canvas.text(54, 274, "signal up", 14, SOFT)
    canvas.arrow(end + 32, 274, 8, -90, RED)
    end = canvas.text(end + 46, 274, "signal down", 14, SOFT)
    canvas.disc(end + 32, 274, 7, BLUE)
    canvas.text(end + 46, 274, "agent", 14, SOFT)


def tmaze(
    length,
    position,
    signal_cells,
    door_up,
    episode,
    episodes,
    noise,
    title="T-Maze",
    unit="episode",
) -> np.ndarray:
    """Returns an image of a T-Maze, [300, 960, 3]; signals are +1 up, -1 down."""
    canvas = Canvas(960, 300)
    canvas.heading(title, f"{unit} {episode}/{episodes}", f"step {position}")
    pitch = min(72, 690 / (length - 1))
    left = max(32, (740 - pitch * (length - 1)) / 2)
    junction = left + pitch * (length - 1)
    _corridor(canvas, length, position, dict(signal_cells), left, pitch)
    _doors(canvas, junction, door_up)
    _tmaze_legend(canvas, noise)
    x = left + (position + 0.5) * pitch - 1 if position < length - 1 else junction + 20
    canvas.agent(x, 162)
    return np.array(canvas.page.reduce(2))


def planning(size, labels, node, goal, step, collected, show_labels=True) -> np.ndarray:
    """Returns an image of the torus, [520, 480, 3]; in node x * size + y, x points right and y up."""
    canvas = Canvas(480, 520)
    canvas.heading("Planning Game", f"step {step}", f"goals {collected}")
    side = 384 / size
    for index in range(size * size):
        x, y = 48 + side * (index // size + 0.5), 88 + side * (size - index % size - 0.5)
        look = ("#fdf1d6", GOLD, 4) if index == goal else (CELL,)
        canvas.box(x - side / 2 + 3, y - side / 2 + 3, side - 6, side - 6, *look, radius=10)
        if index == goal:
            canvas.star(x + side * 0.34, y - side * 0.34, side * 0.09)
        if index == node:
            canvas.agent(x, y, side * 0.27)
        if show_labels:
            name = chr(65 + int(labels[index])) if size <= 5 else str(int(labels[index]))
            canvas.text(x, y, name, round(side * 0.28), PAPER if index == node else INK, "mm")
    for direction, x, y in ((90, 240, 78), (-90, 240, 482), (0, 442, 280), (180, 38, 280)):
        canvas.arrow(x, y, 7, direction, SOFT)
    canvas.text(240, 502, "edges wrap around", 13, SOFT, "mm")
    return np.array(canvas.page.reduce(2))


def _route(canvas, current, rooms, kinds, up):
    """Draws the whole route as a strip: the signal, every room's column and the two doors."""
    pitch = 488 / (rooms + 5)
    margin = min(4, pitch / 6)
    columns = [(STONE, DIAMOND)[int(kind)] for kind in kinds[:rooms]]
    for index, color in enumerate([GREEN if up else RED, *columns, OBSIDIAN, OBSIDIAN]):
        x = 440 + pitch * (index + (index > 0) + (index > rooms))
        if index == current or min(index, current) > rooms:
            canvas.box(x - 1, 100, pitch, 40, PAPER, BLUE, 3)
        canvas.box(x + margin, 105, pitch - 2.5 * margin, 30, color, radius=min(2, margin))
        if index == rooms + 1 + int(up):
            canvas.star(x + pitch / 2 - 1, 120, min(9, pitch / 3.4))
    canvas.text(440, 88, "signal", 13, SOFT)
    canvas.text(444 + 2 * pitch, 88, f"{rooms} rooms", 13, SOFT)
    canvas.text(928, 88, "doors", 13, SOFT, "rm")


def _surroundings(canvas, phase, correct, x, y):
    """Draws the agent's surroundings from above: the signal, a room or the doors."""
    if phase == 0:
        canvas.box(489, 227, 160, 160, GREEN if correct else RED)
    for column in (-1, 0, 1) if phase == 1 else ():
        for row in range(4):
            pillar = (STONE, DIAMOND)[correct] if (column, row) == (0, 2) else CELL
            color = WALL if column and row == 0 else pillar
            canvas.box(538 + 66 * column, 376 - 66 * row, 62, 62, color)
    for side in (-1, 1) if phase == 2 else ():
        canvas.box(534 + 66 * side, 227, 70, 160, OBSIDIAN)
    if phase > 0:
        canvas.star(569 + 66 * (2 * correct - 1), 341 if phase == 1 else 307, 10)
    canvas.agent(569 + 66 * x * (phase == 1), 407 - 66 * y if phase == 1 else 307, 16)


def minemaze(view, phase, room, rooms, x, y, kinds, up, episode, episodes, step) -> np.ndarray:
    """Returns the view beside a map, [480, 960, 3]; `phase` is 0 (signal), 1 (rooms) or 2 (doors)."""
    from PIL import Image

    canvas = Canvas(960, 480)
    canvas.heading("Minecraft Maze", f"episode {episode}/{episodes}", f"step {step}")
    canvas.page.paste(Image.fromarray(view).resize((720, 720), Image.Resampling.NEAREST), (64, 160))
    canvas.text(32, 456, "what the agent sees", 13, SOFT)
    _route(canvas, (0, room + 1, rooms + 1)[phase], rooms, kinds, up)
    canvas.box(440, 160, 488, 294, PANEL, radius=10)
    correct = int(kinds[room]) if phase == 1 else int(up)
    _surroundings(canvas, phase, correct, x, y)
    names = ("iron column", "diamond column") if phase == 1 else ("red signal", "green signal")
    canvas.text(700, 200, ("Signal", f"Room {room + 1} of {rooms}", "Doors")[phase], 22)
    answer = ("left", "right")[correct] + (" side" if phase == 1 else " door")
    canvas.text(700, 234, f"{names[correct]}: {answer}", 16, SOFT)
    canvas.agent(710, 394, 8)
    canvas.text(730, 394, "agent", 14, SOFT)
    canvas.star(710, 422)
    canvas.text(730, 422, "correct, hidden from the agent", 13, SOFT)
    return np.array(canvas.page.reduce(2))


def robot(picture, title, task, episode, episodes, step) -> np.ndarray:
    """Returns a rendered image [height, width, 3] under a heading, with a margin."""
    from PIL import Image

    height, width = picture.shape[:2]
    canvas = Canvas(width + 64, height + 100)
    canvas.heading(title, f"episode {episode}/{episodes}", f"step {step}")
    photo = Image.fromarray(np.ascontiguousarray(picture))
    canvas.page.paste(photo.resize((2 * width, 2 * height)), (64, 136))
    canvas.text(32, height + 84, f"{task}, hidden from the agent", 13, SOFT)
    return np.array(canvas.page.reduce(2))
