"""The forest plot of all claims: rows, regions, colors and numbers agree with the verdicts."""

import csv
import io
import math

import pytest

from splagger.cli import main
from splagger.paper.claims import CLAIMS, Claim, evaluate_claims
from splagger.paper.comparisons import Beats, Fails, Sooner
from splagger.paper.forest import LOOKS, UNITS, claims_csv, claims_picture, forest_panels
from splagger.paper.trends import Ordered
from splagger.paper.verdicts import FAILS, HOLDS, UNDECIDED, Finding, Verdict, decide
from splagger.plots.forest import NARROW, WIDE
from splagger.runs.analyses import AnalysisKey
from splagger.stats.estimates import Estimate
from splagger.stats.evidence import Evidence, Series
from tests.synthetic import learning, write_run

FASTER = Beats(Series("t-ls", "splagger"), (Series("t-ls", "rnn"),))
RESULTS = [
    (
        Claim("faster", "5.2", "SplAgger learns faster.", FASTER),
        Verdict(HOLDS, (Finding("against RNN", HOLDS, Estimate(0.5, 0.4, 0.6)),)),
    ),
    (
        Claim("fails", "5.2", "The RNN fails.", Fails("t-ls", ("rnn",), 14.6)),
        Verdict(FAILS, (Finding("RNN", FAILS, Estimate(16.0, 15.3, 16.0)),)),
    ),
    (
        Claim("unknown", "4", "Nothing is known.", FASTER),
        Verdict(UNDECIDED, (Finding("against RNN", UNDECIDED, note="no run"),)),
    ),
]


def test_every_test_has_a_unit_with_a_panel_and_a_region_that_decides():
    assert {claim.test.unit for claim in CLAIMS} == set(UNITS)
    assert all(claim.test.region.low < claim.test.region.high for claim in CLAIMS)


def test_regions_are_those_of_the_decisions():
    sooner = Sooner(Series("t-ls", "splagger"), (Series("t-ls", "cnp"),), 14.6, factor=2.0)
    assert sooner.region == (1.0, math.inf)
    order = Ordered(AnalysisKey("permutation", "initialization"), ("rnn", "splagger"), margin=0.3)
    assert order.region == (0.3, math.inf)


def test_rows_have_the_effects_of_their_claims():
    """Returns are placed on the scale of T-LS, where guessing earns 2 and the best policy 16."""
    first, second = forest_panels(RESULTS)
    (row,), (level,) = first.rows, second.rows
    assert row.region == (0.02, math.inf) and row.look == LOOKS[HOLDS]
    assert row.intervals == (("RNN", 0.4, 0.5, 0.6, LOOKS[HOLDS]),)
    assert level.region == pytest.approx((-math.inf, 0.9)) and level.look == LOOKS[FAILS]
    assert level.intervals[0][1:4] == pytest.approx((0.95, 1.0, 1.0))


@pytest.mark.parametrize("index", [0, 1])
def test_intervals_are_drawn_where_the_verdict_says(index):
    """An interval lies in the drawn region if and only if its comparison holds."""
    panel = forest_panels(RESULTS)[index]
    for row in panel.rows:
        for one in row.intervals:
            effect = Estimate(one.value, one.low, one.high)
            assert LOOKS[decide(effect, type(CLAIMS[0].test.region)(*row.region))] == one.look


def test_the_picture_lists_claims_without_data_and_is_the_same_every_time():
    one, two = (claims_picture(RESULTS[1:], "svg", NARROW) for _ in range(2))
    assert one == two
    assert len({one, *(claims_picture(RESULTS[1:2], "svg", on) for on in (WIDE, NARROW))}) == 3


def test_the_csv_has_one_row_per_comparison():
    rows = list(csv.DictReader(io.StringIO(claims_csv(RESULTS))))
    assert [row["claim"] for row in rows] == ["faster", "fails", "unknown"]
    assert (rows[1]["value"], rows[1]["low"], rows[1]["region_high"]) == ("16", "15.3", "14.6")
    assert rows[2]["value"] == "" and rows[2]["outcome"] == UNDECIDED


def test_the_command_draws_claims_only_if_there_are_data(tmp_path, capsys):
    write_run(tmp_path / "runs", "t-ls", "rnn", learning(3))
    assert forest_panels(evaluate_claims(Evidence.read(tmp_path / "runs")))
    where = ["--analyses", str(tmp_path), "--out", str(tmp_path / "out")]
    main(["figure", "claims", "--runs", str(tmp_path / "runs"), *where])
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        f"claims.{kind}" for kind in ("png", "pdf", "csv")
    }
    (tmp_path / "none").mkdir()
    main(["figure", "claims", "--runs", str(tmp_path / "none"), *where])
    assert capsys.readouterr().out.endswith("claims: nothing to draw\n")
