"""The page of `splagger inspect`: its data, its size, and how it behaves in a real browser."""

import base64
import io
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import splagger
from splagger.cli import main
from splagger.envs.pictures import tmaze
from splagger.inspection import inspect, pictures, trace
from splagger.inspection.page import _integers, _rounded, agent_data, page
from splagger.inspection.pictures import Pictures, pack
from tests import browser

AGENT = Path(__file__).parents[1] / "contract" / "agent.npz"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Returns the path of a page with an agent beside itself, and its traces."""
    path = tmp_path_factory.mktemp("page") / "agent.html"
    player = splagger.load(AGENT)
    return path, inspect([player, player], path, task_seed=3, worth=False)


def unpacked(pictures: Pictures) -> np.ndarray:
    """Returns the frames of packed pictures."""
    data = [base64.b64decode(sheet.partition(",")[2]) for sheet in pictures.sheets]
    sheets = [np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) for png in data]
    (w, h), (width, height) = pictures.tile, pictures.size
    columns = -(-width // w)
    frames = []
    for ids in pictures.frames:
        frame = np.zeros((-(-height // h) * h, columns * w, 3), np.uint8)
        for i, number in enumerate(ids):
            sheet, place = divmod(int(number), pictures.per_sheet)
            (row, column), (y, x) = divmod(place, pictures.columns), divmod(i, columns)
            tile = sheets[sheet][row * h : (row + 1) * h, column * w : (column + 1) * w]
            frame[y * h : (y + 1) * h, x * w : (x + 1) * w] = tile
        frames.append(frame[:height, :width])
    return np.stack(frames)


def numbers(array) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(array["data"]), f"<{array['type']}")
    return data.reshape(array["shape"]) * array["scale"]


def data_of(path) -> dict:
    text = re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL).group(1)
    return json.loads(text)


def test_drawings_are_packed_without_loss(written):
    _, traces = written
    packed = pack(traces[0].frames)
    np.testing.assert_array_equal(unpacked(packed), np.stack(traces[0].frames))
    assert sum(map(len, packed.sheets)) < 100_000


def test_photographs_fit_into_the_budget(monkeypatch):
    monkeypatch.setattr(pictures, "BUDGET", 200_000)
    photos = list(np.random.default_rng(0).integers(0, 256, (12, 96, 128, 3), np.uint8))
    packed = pictures.pack(photos)
    assert sum(map(len, packed.sheets)) <= 200_000 and packed.size == (128, 96)
    assert packed.frames.tolist() == [[i] for i in range(12)]
    assert unpacked(packed).shape == (12, *packed.size[::-1], 3)


def test_the_data_are_those_of_the_trace(written):
    path, traces = written
    for shown, found in zip(data_of(path)["agents"], traces, strict=True):
        arrays = {name: numbers(array) for name, array in shown["arrays"].items()}
        for name in ("probabilities", "value", "reward", "action"):
            np.testing.assert_array_equal(arrays[name], getattr(found, name))
        for name in ("neurons", "output"):
            step = np.abs(getattr(found, name)).max() / 127
            np.testing.assert_allclose(arrays[name], getattr(found, name), atol=0.51 * step)
        np.testing.assert_array_equal(arrays["setBy"], found.set_by)
        assert shown["signals"] == np.flatnonzero(found.signal).tolist()
        assert shown["actions"] == ["left", "right", "up", "down"]


def test_four_hundred_steps_take_less_than_five_megabytes():
    """At full size: 256 neurons and pictures of a corridor of 100 cells, in all of which the agent moves."""
    env = splagger.ENVS["t-ls"].meta.env
    random = np.random.default_rng(0)
    found = trace(splagger.load(AGENT), 0)
    frames = [
        tmaze(env.length, t % 100, [(1, 1)], True, t // 100 + 1, 4, 1.0) for t in range(0, 400, 20)
    ]
    packed = pack(frames)
    wide = {"neurons": random.normal(size=(400, 256)), "output": random.normal(size=(400, 24))}
    wide |= {"set_by": np.zeros((400, 128), int), "value": np.zeros(400), "reward": np.zeros(400)}
    wide |= {"probabilities": np.ones((400, 4)), "action": np.zeros(400)}
    tiles = np.tile(packed.frames, (20, 1))
    agent = agent_data("SplAgger", "#0072b2", found._replace(**wide), ["a"] * 4, tiles)
    text = page("T-LS", "", [agent], packed)
    # One in 20 frames was drawn: at most 20 times their sheets are needed.
    assert len(text) + 19 * sum(map(len, packed.sheets)) < 5_000_000


def test_arrays_are_rounded_to_255_levels():
    np.testing.assert_allclose(numbers(_rounded(np.zeros((2, 3)))), 0)
    x = np.linspace(-2, 1, 50)[:, None]
    np.testing.assert_allclose(numbers(_rounded(x)), x, atol=1.01 / 127)


def test_labels_cannot_break_out_of_the_page(written):
    _, traces = written
    packed = pack(traces[0].frames)
    evil = "</script><script>window.pwned = 1</script>"
    agent = agent_data(evil, "#000000", traces[0], [evil] * 4, packed.frames)
    text = page(evil, evil, [agent], packed)
    assert text.count("</script>") == 2 and "<script>window" not in text


def test_the_command_writes_a_page_or_one_line(tmp_path, capsys):
    options = ["-o", str(tmp_path / "page.html"), "--no-interventions"]
    main(["inspect", str(AGENT), *options])
    assert re.search(
        r"page\.html: a meta-episode with a return of .*, \d+ kB", capsys.readouterr().out
    )
    assert len(data_of(tmp_path / "page.html")["agents"]) == 1
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", str(tmp_path / "nobody"), *options])
    assert re.fullmatch(r"splagger: .*nobody.*\n", capsys.readouterr().err)


@pytest.fixture(scope="module")
def opened(written, tmp_path_factory):
    if browser.installed() is None:
        pytest.skip(browser.ABSENT)
    chromium = browser.Browser(tmp_path_factory.mktemp("profile"))
    try:
        chromium.open(written[0].as_uri())
        chromium.evaluate("loaded.then(() => 1)")
        yield chromium
    finally:
        chromium.close()


def shown(chromium) -> dict:
    facts = "[...document.querySelectorAll('.facts')].map(f => [...f.querySelectorAll('dd')].map(d => d.textContent))"
    bars = "[...document.querySelectorAll('.bars')].map(b => [...b.querySelectorAll('b')].map(d => +d.textContent))"
    picture = "document.querySelector('.picture').toDataURL()"
    expression = f"({{step, facts: {facts}, bars: {bars}, picture: {picture}, place: document.querySelector('output').textContent}})"
    chromium.evaluate("loaded.then(() => 1)")
    return chromium.evaluate(expression)


def test_the_page_loads_without_errors_and_requests_nothing(opened):
    for kind in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert opened.seen(kind) == []
    assert opened.seen("Network.loadingFailed") == []
    urls = [event["request"]["url"] for event in opened.seen("Network.requestWillBeSent")]
    assert urls[0].startswith("file://")
    assert len(urls) > 1 and all(url.startswith("data:image/") for url in urls[1:])


def test_slider_and_keys_change_what_is_shown_and_the_values_are_the_players(opened, written):
    _, (found, _) = written
    before = shown(opened)
    assert before["step"] == 0 and before["place"].startswith("step 0 of 19")
    opened.evaluate("slider.value = 9; slider.dispatchEvent(new Event('input')); 1")
    seen = [shown(opened)]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home", "PageDown"):
        opened.evaluate(
            f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})); 1"
        )
        seen.append(shown(opened))
    assert [s["step"] for s in seen] == [9, 10, 11, 10, 19, 0, 10]
    assert len({s["picture"] for s in seen}) == 5 and seen[5] == before
    returns = np.cumsum(found.reward)
    for now in seen:
        t = now["step"]
        for agent in range(2):
            np.testing.assert_allclose(now["bars"][agent], found.probabilities[t], atol=6e-4)
            reward, total, value, action = (text.replace("−", "-") for text in now["facts"][agent])
            assert float(reward) == found.reward[t] and float(total) == returns[t]
            assert float(value) == pytest.approx(found.value[t], abs=6e-3)
            assert action == ("left", "right", "up", "down")[found.action[t]]
    assert opened.evaluate("location.hash") == "#step=10"


def test_space_plays_and_pauses(opened):
    press = (
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', bubbles: true})); 1"
    )
    opened.evaluate("go(0); 1")
    opened.evaluate(press)
    deadline = time.monotonic() + 20
    while opened.evaluate("step") < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    opened.evaluate(press)
    paused = opened.evaluate("step")
    assert paused >= 2 and opened.evaluate("timer") is None
    assert opened.evaluate("play.getAttribute('aria-label')") == "play"


def test_maxima_are_shown_by_step_or_by_value(opened):
    picture = "document.querySelectorAll('.strip canvas')[0].toDataURL()"
    by_step = opened.evaluate(picture)
    opened.evaluate("document.querySelector('.toggle').click()")
    assert opened.evaluate(picture) != by_step
    opened.evaluate("document.querySelector('.toggle').click()")
    assert opened.evaluate(picture) == by_step


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_readable_on_every_screen(opened, width, dark):
    opened.show(width, dark)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    image = np.asarray(Image.open(io.BytesIO(opened.screenshot())).convert("L"), float)
    page, ink = image[-4, 4], image.min() if not dark else image.max()
    assert (page < 50) == dark and abs(page - ink) > 150
    columns = "getComputedStyle(document.querySelector('.agents')).gridTemplateColumns"
    assert len(opened.evaluate(columns).split()) == (2 if width == 1280 else 1)


@pytest.mark.parametrize("short, long", [("<i2", "<i4"), ("<u2", "<u4")])
def test_integers_that_need_more_bytes_get_them(short, long):
    most = np.iinfo(short).max
    for value, kind in ((most, short), (most + 1, long)):
        found = _integers(np.array([[value, 0]]), short, long)
        data = np.frombuffer(base64.b64decode(found["data"]), kind)
        assert found["type"] == kind[1:] and data.tolist() == [value, 0]
