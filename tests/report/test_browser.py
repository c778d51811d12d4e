"""The report in a real browser: no errors, no requests, readable on a phone, light and dark, usable by keyboard."""

import io

import numpy as np
import pytest
from PIL import Image

from splagger.report.page import report
from splagger.stats.evidence import Evidence
from tests import browser
from tests.report.test_report import spoil, write_everything
from tests.synthetic import learning, write_run

pytestmark = pytest.mark.skipif(browser.installed() is None, reason=browser.ABSENT)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Yields (browser, loading events) with a report that includes a hostile run."""
    root = write_everything(tmp_path_factory.mktemp("page"))
    spoil(write_run(root / "runs", "t-ls", "evil", learning(9)))
    evidence = Evidence.read(root / "runs", analyses=root / "analyses")
    path = root / "report.html"
    path.write_text(report(evidence, {"preview": ["splagger train mc-ls rnn " * 20]}))
    chromium = browser.Browser(root / "profile")
    try:
        yield chromium, chromium.open(path.as_uri())
    finally:
        chromium.close()


def test_the_page_logs_nothing_and_nothing_fails(opened):
    chromium, _ = opened
    for kind in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert chromium.seen(kind) == []
    assert chromium.seen("Network.loadingFailed") == []
    assert chromium.evaluate("typeof window.pwned") == "undefined"


def test_the_page_requests_nothing_external(opened):
    chromium, _ = opened
    urls = [event["request"]["url"] for event in chromium.seen("Network.requestWillBeSent")]
    assert urls[0].startswith("file://") and urls[0].endswith("/report.html")
    assert len(urls) > 1 and all(url.startswith("data:image/svg+xml") for url in urls[1:])


def test_tables_and_images_are_shown(opened):
    chromium, _ = opened
    assert chromium.evaluate("document.querySelectorAll('table').length") >= 5
    assert chromium.evaluate("document.querySelectorAll('tbody tr').length") > 70
    sizes = chromium.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
    assert len(sizes) == 7 and min(sizes) > 300


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_readable_on_every_screen(opened, width, dark):
    """Nothing overflows horizontally, and text contrasts with the page."""
    chromium, _ = opened
    chromium.show(width, dark)
    chromium.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    image = np.asarray(Image.open(io.BytesIO(chromium.screenshot())).convert("L"), float)
    page, ink = np.median(image), image.min() if not dark else image.max()
    assert (page < 50) == dark and abs(page - ink) > 150


def test_colors_have_enough_contrast(opened):
    """WCAG requires a contrast of 4.5 to 1 for text."""
    chromium, _ = opened
    for dark in (False, True):
        chromium.show(1280, dark)
        style = "getComputedStyle(document.documentElement).getPropertyValue"
        color = lambda name: _luminance(chromium.evaluate(f"{style}('--{name}')").strip())  # noqa: E731, B023
        for name in ("ink", "soft", "link", "good", "bad", "open"):
            for ground in ("page", "card"):
                pair = sorted((color(name), color(ground)))
                assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (name, ground, dark)


def _luminance(text):
    levels = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in levels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_is_usable_by_keyboard(opened):
    """The first tab stop skips to the content; links, regions and summaries follow."""
    chromium, _ = opened
    chromium.show(1280, False)
    chromium.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    stops = []
    for _ in range(12):
        chromium.press("Tab")
        stops.append(chromium.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
    assert "Skip to the content" in stops[0]
    assert [s for s in stops if 'href="#runs"' in s]
    assert [s for s in stops if 'class="scroll"' in s] and [s for s in stops if "<summary" in s]
    chromium.evaluate("document.querySelector('.skip').focus()")
    chromium.press("Enter")
    assert chromium.evaluate("location.hash") == "#content"


FAULTY = (
    """<script>console.error("no"); missing()</script><img src="http://localhost:9/outside.png">"""
)


def test_faults_would_be_detected(opened, tmp_path):
    """The events that the tests above check contain the error and the request of a faulty page. It is opened last."""
    chromium, _ = opened
    (tmp_path / "faulty.html").write_text(FAULTY)
    chromium.events = []
    chromium.call("Page.navigate", url=(tmp_path / "faulty.html").as_uri())
    while not (chromium.seen("Network.loadingFailed") and chromium.seen("Page.loadEventFired")):
        chromium.events.append(chromium._receive())
    urls = [event["request"]["url"] for event in chromium.seen("Network.requestWillBeSent")]
    assert "http://localhost:9/outside.png" in urls
    assert chromium.seen("Runtime.consoleAPICalled") and chromium.seen("Runtime.exceptionThrown")
