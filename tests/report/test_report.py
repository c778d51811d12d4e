"""The report: self-contained, complete, and safe for any content of a run folder."""

import json
import re
from html.parser import HTMLParser

import pytest

from splagger.cli import main
from splagger.errors import RunError
from splagger.paper.claims import CLAIMS
from splagger.paper.figures import FIGURES
from splagger.report.html import Markup, tag
from splagger.report.page import report
from splagger.report.tables import methods_table
from splagger.stats.evidence import Evidence, Series
from splagger.stats.returns import across, recorded_series, returns
from tests.synthetic import learning, write_analysis, write_run

EVIL = "</td><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>\"&"


class Page(HTMLParser):
    """The elements with attributes and the texts of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in ("img", "meta", "link", "source"):
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        return [attributes for element, attributes in self.elements if element == name]


def write_everything(root):
    """Writes runs of all baselines on T-LS, swept and with fresh seeds, and one analysis."""
    finals = {"splagger": 16, "rnn": 3, "amrl": 15, "cnp": 14, "pearl": 12}
    for method, final in finals.items():
        curve = learning(final, start=2, noise=0.2)
        write_run(root / "runs", "t-ls", method, curve, rates=(3e-3, 1e-3))
        fresh = dict(rates=(3e-3,), seeds=range(10, 20), name="fresh")
        write_run(root / "runs", "t-ls", method, curve, **fresh)
    flat = {method: lambda step: 1.0 for method in ("splagger", "rnn", "amrl", "splagger-nornn")}
    write_analysis(root / "analyses", "gradient-inputs", "initialization", flat)
    return root


def spoil(folder):
    """Replaces every text in run.json by a hostile one."""

    def evil(value):
        if isinstance(value, dict):
            return {f"{k}": evil(v) for k, v in value.items()} | {EVIL: EVIL}
        return EVIL if isinstance(value, str) else value

    record = json.loads((folder / "run.json").read_text())
    for part in ("arguments", "provenance"):
        record[part] = {k: EVIL if isinstance(v, str) else v for k, v in record[part].items()}
    record["run"]["method"] = evil(record["run"]["method"])
    record["run"]["environment"] = evil({"kind": "Maze"})
    record["run"]["ppo"][EVIL] = EVIL
    (folder / "run.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_everything(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def evidence(folder):
    return Evidence.read(folder / "runs", analyses=folder / "analyses")


MISSING = {"memory": ["splagger train mc-ls rnn"]}


@pytest.fixture(scope="module")
def text(evidence):
    return report(evidence, MISSING)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_is_well_formed_and_its_links_have_targets(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {"content", "claims", "figures", "returns", "settings", "runs"} <= set(ids)
    targets = [a["href"] for a in page.all("a")]
    assert targets and all(target.lstrip("#") in ids for target in targets)
    assert (
        page.all("html") == [{"lang": "en"}] and len(page.all("h1")) == len(page.all("title")) == 1
    )


def test_the_page_fetches_nothing_and_runs_nothing(page):
    assert page.all("script") == page.all("iframe") == []
    for _, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        for key in ("src", "srcset", "href"):
            assert attributes.get(key, "#").startswith(("#", "data:"))
    (policy,) = [a["content"] for a in page.all("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")


def test_every_drawable_figure_is_embedded_with_an_alternative_text(page):
    images = page.all("img")
    assert len(images) == 6  # claims, memory, tuning, pearl-vari, transformer and gradients
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in images)
    assert "holds: On T-LS, SplAgger has the highest sample efficiency." in images[0]["alt"]
    assert "SplAgger ends at 15.9" in images[1]["alt"] and "T-LS" in images[1]["alt"]


def test_every_figure_is_listed_with_the_commands_for_missing_runs(page):
    ids = {a.get("id") for a in page.all("article")}
    assert ids == {f"figure-{name}" for name in FIGURES}
    assert "splagger train mc-ls rnn" in page.texts


def test_every_claim_is_listed_with_its_verdict(page):
    for claim in CLAIMS:
        assert claim.sentence in page.texts
    verdicts = [text for text in page.texts if text in ("holds", "does not hold", "not decided")]
    assert len(verdicts) >= len(CLAIMS)
    assert "does not hold" in verdicts and "holds" in verdicts


def test_every_run_is_listed_with_its_provenance(page, evidence):
    for run in evidence.runs:
        assert run.record.provenance["command"] in page.texts
    for text in ("abc123", "1 × device", "12.5 s", "3,200", "finished", "ppo.clip"):
        assert text in page.texts


def test_every_analysis_is_listed_with_its_provenance(page, tmp_path):
    for text in ("gradient-inputs · initialization", "splagger analyse gradient-inputs", "def456"):
        assert text in page.texts
    assert "length 100, independent False" in page.texts
    write_analysis(tmp_path, "permutation", EVIL.replace("/", ""), {"rnn": lambda step: 1.0})
    (path,) = tmp_path.glob("*/*/analysis.json")
    for content in ('{"options": {"x": "<script>"}}', "{}"):
        path.write_text(content)
        assert Page(report(Evidence.read(analyses=tmp_path), {})).all("script") == []
    for content in ("{", "[]"):
        path.write_text(content)
        with pytest.raises(
            RunError, match=r"analysis\.json is damaged .* make that analysis again"
        ):
            report(Evidence.read(analyses=tmp_path), {})


@pytest.mark.parametrize("independent, words", [(False, "the same in all"), (True, "indep")])
def test_the_caption_of_an_analysis_names_the_kind_of_noise(tmp_path, independent, words):
    folder = write_analysis(
        tmp_path, "gradient-first", "initialization", {"rnn": lambda t: t + 1.0}
    )
    record = json.loads((folder / "analysis.json").read_text())
    record["options"]["independent"] = independent
    (folder / "analysis.json").write_text(json.dumps(record))
    page = report(Evidence.read(analyses=tmp_path), {})
    _, caption = re.findall(
        "<figcaption>(.*?)</figcaption>", page
    )  # the first is that of the claims
    assert re.search(f"inputs: noise, .*{words}", caption)


def test_methods_without_an_aggregator_show_none(tmp_path):
    path = write_run(tmp_path, "t-ls", "rnn", learning(9)) / "run.json"
    record = json.loads(path.read_text())
    for skip, expected in ((1, "skip 1, aggregator none"), (0.5, "skip 0.5, aggregator Max()")):
        record["run"]["method"] = {"skip": skip, "aggregator": {"kind": "Max"}}
        path.write_text(json.dumps(record))
        assert methods_table(Evidence.read(tmp_path)).rows == [("rnn", expected)]


def test_table_cells_are_labeled_for_narrow_screens_and_reachable_by_keyboard(page):
    assert all("data-label" in cell for cell in page.all("td"))
    regions = [a for a in page.all("div") if a.get("class") == "scroll"]
    assert len(regions) == len(page.all("table")) + len(page.all("img"))
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)


def test_the_same_runs_give_the_same_page(text, folder):
    again = Evidence.read(folder / "runs", analyses=folder / "analyses")
    assert report(again, MISSING) == text


def test_hostile_texts_are_escaped(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    spoil(write_run(tmp_path, "t-ls", "evil", learning(9)))
    page = Page(report(Evidence.read(tmp_path), {"memory": [EVIL]}))
    assert page.all("script") == [] and len(page.all("img")) > 0
    assert all(set(image) == {"src", "alt"} for image in page.all("img"))
    assert sum(EVIL in text for text in page.texts) >= 5  # name, command, commit, device, settings


def test_a_page_without_runs_lists_all_figures(tmp_path):
    page = Page(report(Evidence.read(tmp_path), {}))
    assert page.all("img") == [] and len(page.all("article")) == len(FIGURES)


@pytest.mark.parametrize("text", ["<b>", "a & b", "\"'", EVIL])
def test_texts_are_escaped_once_and_markup_is_not(text):
    built = tag("p", text, tag("i", text), title=text)
    page = Page(built)
    assert page.texts == [text, text] and page.all("p") == [{"title": text}]
    assert isinstance(built, Markup) and tag("br") == "<br></br>"


def test_every_environment_has_the_same_weight_in_the_aggregate(tmp_path):
    for env, final, seeds in (("t-ls", 16.0, range(30)), ("mc-ls", 5.0, range(3))):
        write_run(tmp_path / env, env, "splagger", learning(final), seeds=seeds)
    score = lambda *roots: across(Evidence.read(*roots), ("splagger",))[1]["splagger"].value  # noqa: E731
    roots = tmp_path / "t-ls", tmp_path / "mc-ls"
    alone = [score(root) for root in roots]
    assert alone[0] > alone[1] + 0.2 and score(*roots) == pytest.approx(sum(alone) / 2)


def test_returns_are_reported_as_in_the_paper_and_on_fresh_seeds(evidence):
    rows = {row.series.method: row for row in returns(evidence)}
    assert list(rows) == ["splagger", "amrl", "cnp", "pearl", "rnn"]
    assert rows["rnn"].probability == 1.0 and rows["splagger"].probability is None
    for row in rows.values():
        assert (len(row.as_in_paper.curves), len(row.unbiased.curves)) == (3, 10)
        assert row.training.low <= row.training.value <= row.training.high


def test_environments_are_aggregated_if_all_methods_were_run_on_them(evidence, tmp_path):
    envs, found = across(evidence, ("splagger", "rnn"))
    assert envs == ["t-ls"] and found["splagger"].value > 0.7 > 0.3 > found["rnn"].value
    assert across(evidence, ("splagger", "transformer")) == ([], {})
    write_run(tmp_path, "custom", "own", learning(9))
    assert recorded_series(Evidence.read(tmp_path)) == [Series("custom", "own")]


def test_the_command_writes_the_page(folder, tmp_path, capsys):
    path = tmp_path / "page.html"
    where = ["--runs", str(folder / "runs"), "--analyses", str(folder / "analyses")]
    main(["report", *where, "-o", str(path)])
    out = capsys.readouterr().out
    assert re.search(r"page\.html: 10 runs with 80 agents, .* million frames.*\n$", out)
    assert "of 61 claims are decided" in out and "  holds  " in out
    page = Page(path.read_text())
    assert len(page.all("img")) == 6
    assert any("splagger train mc-ls splagger --out" in t for t in page.texts)


def test_a_report_without_runs_is_refused(tmp_path, capsys):
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(SystemExit) as end:
        main(
            ["report", "--runs", nowhere, "--analyses", nowhere, "-o", str(tmp_path / "page.html")]
        )
    assert end.value.code == 2 and not (tmp_path / "page.html").exists()
    assert f"no run folder in {nowhere}" in capsys.readouterr().err


def test_environments_that_are_not_in_the_paper_have_curves(tmp_path):
    for method, final in (("splagger", 9), ("custom", 7)):
        write_run(tmp_path, "gym:Custom-v0", method, learning(final))
    write_run(tmp_path, "t-ls", "rnn", learning(3))
    page = report(Evidence.read(tmp_path), {})
    section = page.partition('id="other-environments"')[2].partition("</section>")[0]
    assert section.count("<img") == 1
    assert "gym:Custom-v0: splagger ends at 8.93, custom ends at 6.94" in section
    (tmp_path / "gym:Custom-v0").rename(tmp_path.parent / f"{tmp_path.name}-away")
    assert "Other environments" not in report(Evidence.read(tmp_path), {})
