"""Draws the pictures of `docs/inspect.md` and the README: screenshots of pages that `splagger inspect` writes.

Run `make demo` and the training of the Planning Game in `docs/inspect.md`, then `python -m docs.draw_inspect`. It needs
Chromium.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image

import splagger
from splagger.inspection import inspect
from tests.browser import Browser

RUNS = Path("runs/demo/t-ls-demo")
PLANNING = Path("runs/planning-small/splagger/b57e56b6b5")
IMAGES = Path(__file__).parent / "images"
TASK = 3


def open_page(browser: Browser, path: Path, width: int, height: int, dark: bool = False) -> None:
    """Opens a page with this size of the window."""
    browser.show(width, dark, height)
    browser.open("data:text/html,")
    browser.open(path.as_uri())


def picture(browser: Browser, step: int, height: int | None = None) -> Image.Image:
    """Returns a screenshot of a step; only the uppermost `height` pixels, without the controls, if given."""
    browser.evaluate(f"go({step}); loaded.then(() => new Promise(requestAnimationFrame))")
    image = Image.open(io.BytesIO(browser.screenshot())).convert("RGB")
    return image.crop((0, 0, image.width, height or image.height))


def save(image: Image.Image, name: str) -> None:
    colors = {"method": Image.Quantize.MAXCOVERAGE, "dither": Image.Dither.NONE}
    image.quantize(256, **colors).save(IMAGES / name, optimize=True)


def main() -> None:
    agents = [splagger.load(next((RUNS / name).iterdir())) for name in ("splagger", "rnn")]
    with tempfile.TemporaryDirectory() as folder:
        both, one, planning = (
            Path(folder) / f"{name}.html" for name in ("both", "one", "planning")
        )
        inspect(agents, both, TASK)
        inspect(agents[0], one, TASK)
        inspect(splagger.load(PLANNING), planning, TASK)
        browser = Browser(Path(folder) / "profile")
        try:
            open_page(browser, both, 1280, 1760)
            save(picture(browser, 79, 1610), "inspect-t-ls.png")
            open_page(browser, both, 390, 844, dark=True)
            save(picture(browser, 79), "inspect-phone.png")
            open_page(browser, planning, 1280, 1820)
            save(picture(browser, 31, 1550), "inspect-planning.png")
            open_page(browser, one, 1040, 1300)
            frames = [picture(browser, step, 1010) for step in range(1, 80, 2)]
        finally:
            browser.close()
    small = [frame.crop((0, 130, 1040, 1010)).resize((780, 660)) for frame in frames]
    colors = small[-1].quantize(240)  # the same for all frames, so that only differences are stored
    frames = [frame.quantize(palette=colors, dither=Image.Dither.NONE) for frame in small]
    options = {"save_all": True, "append_images": frames[1:], "duration": 150, "loop": 0}
    frames[0].save(IMAGES / "inspect.gif", optimize=True, **options)


if __name__ == "__main__":
    main()
