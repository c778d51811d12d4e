"""What the README says was measured stands in the files it names."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas

from splagger.paper.claims import evaluate_claims
from splagger.paper.verdicts import FAILS, HOLDS, UNKNOWN
from splagger.runs.folder import RunFolder, find_runs
from splagger.stats.evidence import Evidence

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose first column is called `head`."""
    (table,) = re.findall(rf"^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)+)", README, flags=re.M)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_speeds():
    for _, runs, trained, evaluated, compilation, memory, where in rows("machine"):
        found = json.loads((ROOT / re.findall(r"\((.*)\)", where)[0]).read_text())
        peak = found["peak_device_memory_gb"] or found["peak_host_memory_gb"]
        assert int(runs) == found["runs"]
        assert trained == f"{found['frames_per_second']:,.0f}"
        assert evaluated == f"{found['frames_per_second_with_evaluation']:,.0f}"
        assert compilation == f"{found['compile_seconds']:.1f} s"
        assert memory.startswith(f"{peak:.1f} GB")


def test_parts():
    parts = json.loads((ROOT / "benchmarks/results/parts-cpu.json").read_text())
    robots = json.loads((ROOT / "benchmarks/results/mujoco-cpu.json").read_text())
    text = " ".join(README.split())
    assert f"samples is {parts['hypernetwork']['speedup']:.1f} times as fast" in text
    speeds = robots["steps_per_second"]
    assert f"240 Cheetahs make {speeds['240']['training']:,.0f} training steps a second" in text
    assert f"16 make {speeds['16']['training']:,.0f}" in text
    assert f"with 16 makes {speeds['16']['gymnasium']:,.0f}" in text


def outcome(run) -> tuple[str, ...]:
    """Best rate, mean return over training, final return and seeds, as the README writes them."""
    curves = pandas.read_csv(run.curves, usecols=["update", "rate", "seed", "return"])
    by_rate = curves.groupby("rate")["return"].mean()
    best = by_rate.idxmax()
    chosen = curves[curves["rate"] == best]
    last = chosen[chosen["update"] == curves["update"].max()]["return"]
    begun = chosen["seed"].nunique()
    seeds = f"{begun}" if begun == len(last) else f"{begun}, {begun - len(last)} stopped"
    return f"{best:g}", f"{by_rate[best]:.2f}", f"{last.mean():.2f}", seeds


def chosen_runs() -> dict:
    """(environment, method) → its run of fresh seeds, or the sweep where there is none."""
    found = {}
    for env in ("t-ls", "t-latent", "t-agreement", "planning"):
        for run in find_runs(ROOT / "results" / env):
            record = run.read()
            plan, name = record["run"], (env, record["arguments"]["method"])
            tuning = len(plan["kl_weights"]) + len(plan["temperatures"]) > 2
            if record["arguments"].get("overrides") or tuning:
                continue  # an ablation, or a tuning experiment: figures show those
            if name not in found or plan["seeds"][0] > 0:
                found[name] = run
    return found


def test_results():
    recorded = {name: outcome(run) for name, run in chosen_runs().items()}
    said, env = {}, ""
    for first, method, *numbers in rows("environment"):
        env = first.strip("`") or env
        said[env, method.strip("`")] = tuple(numbers)
    assert said == recorded


def test_speeds_of_other_pages():
    """docs/performance.md and docs/faq.md tell the same measurements."""
    read = lambda name: json.loads((ROOT / "benchmarks/results" / name).read_text())  # noqa: E731
    gpu, cpu = read("train-t-ls-h200.json"), read("train-t-ls-cpu.json")
    page = (ROOT / "docs" / "performance.md").read_text()
    trained, evaluated = gpu["frames_per_second"], gpu["frames_per_second_with_evaluation"]
    compiled, memory = gpu["compile_seconds"], gpu["peak_device_memory_gb"]
    row = f"| {trained:,.0f} | {evaluated:,.0f} | {compiled:.1f} s | {memory:.1f} GB |"
    assert f"| T-LS, now {row}" in page
    planning = read("train-planning-h200.json")
    trained, evaluated = (
        planning["frames_per_second"],
        planning["frames_per_second_with_evaluation"],
    )
    assert f"| Planning Game, now | {trained:,.0f} | {evaluated:,.0f} (" in page
    assert (
        f"| {planning['compile_seconds']:.1f} s | {planning['peak_device_memory_gb']:.1f} GB |"
        in page
    )
    lstm = read("train-t-ls-lstm-h200.json")
    trained, evaluated = lstm["frames_per_second"], lstm["frames_per_second_with_evaluation"]
    memory_of_lstm = f"{lstm['peak_device_memory_gb']:.1f} GB"
    assert f"an LSTM instead | {trained:,.0f} | {evaluated:,.0f} | – | {memory_of_lstm} |" in page
    updates = [1e3 * found["seconds_per_update"] for found in (lstm, gpu)]
    assert "takes {:.0f} ms, of the GRU {:.0f}".format(*updates) in page
    again = read("train-t-ls-h200-again.json")["frames_per_second"]
    assert f"made {again:,.0f} (`benchmarks/results/train-t-ls-h200-again.json`)" in page
    answers = (ROOT / "docs" / "faq.md").read_text()
    assert f"takes {cpu['compile_seconds']:.1f} s on two CPU cores" in answers
    assert f"{compiled:.1f} s with 15" in answers and f"on T-LS: {memory:.1f} GB" in answers
    curves = RunFolder(ROOT / "results/t-ls/splagger/b34a153aa4").read_curves()
    rates = sorted({row["rate"] for row in curves}, reverse=True)
    means = [np.mean([row["return"] for row in curves if row["rate"] == r]) for r in rates]
    assert "b34a153aa4`) | " + " | ".join(f"{mean:.2f}" for mean in means) + " |" in page


def test_programs_that_share_a_card():
    """The table of docs/performance.md."""
    page = (ROOT / "docs" / "performance.md").read_text()
    found = json.loads((ROOT / "benchmarks/results/together-planning-h200.json").read_text())
    speeds = {row["programs"]: row["frames_per_second"] for row in found["rows"]}
    lines = re.findall(
        r"^\| (.*) \|$", page.partition("| programs at a time | 1 | 2 | 3 |")[2], re.M
    )
    said = {name: rest for name, *rest in (line.split(" | ") for line in lines[:4])}
    for name, method in (
        ("SplAgger", "splagger"),
        ("RNN", "rnn"),
        ("SplAgger-noRNN", "splagger-nornn"),
    ):
        measured = [speeds[n].get(method) for n in (1, 2, 3)]
        assert said[name] == [f"{speed:,.0f}" if speed else "–" for speed in measured]
    assert said["together"] == [f"{sum(speeds[n].values()):,.0f}" for n in (1, 2, 3)]
    records = [run.read() for run in find_runs(ROOT / "results" / "t-agreement")]
    six = [r for r in records if r["provenance"]["started"].startswith("2026-11-15T19:52")]
    frames = sum(record["seconds"] * record["frames_per_second"] for record in six)
    speed = frames / max(record["seconds"] for record in six) / 1e6
    assert len(six) == 6 and f"made {speed:.2f} million frames a second" in page


def test_growth():
    """The tables of docs/performance.md, and the README's sentence."""
    page = (ROOT / "docs" / "performance.md").read_text()

    def said(name, row):
        return f"| {name} | " + " | ".join(row) + " |\n"

    for what, name in (("runs", "runs in one program"), ("envs", "environments of one run")):
        found = json.loads((ROOT / f"benchmarks/results/growth-{what}-gpu.json").read_text())[
            "rows"
        ]
        speeds = [f"{row['frames_per_second']:,.0f}" for row in found]
        table = page.partition(said(name, [f"{row[what]:,}" for row in found]))[2]
        assert said("training frames/s", speeds) in table.partition("\n\n")[0] + "\n"
        times = [f"{1e3 * row['seconds_per_update']:,.0f}" for row in found]
        assert said("milliseconds an update", times) in table.partition("\n\n")[0] + "\n"
        if what == "runs":
            memory = [f"{row['peak_device_memory_gb']:.1f} GB" for row in found]
            assert said("GPU memory", memory) in table.partition("\n\n")[0] + "\n"
            assert f"135 runs in one program the H200 makes {speeds[-1]}" in README
    rows = json.loads((ROOT / "benchmarks/results/growth-length-gpu.json").read_text())["rows"]
    for name, key in (("associative scan", "scan_seconds"), ("step by step", "step_seconds")):
        assert said(name, [f"{1e3 * row[key]:.1f} ms" for row in rows]) in page


def test_why_pearl_learns():
    """The table of docs/fidelity.md."""
    said, encoder = {}, ""
    text = (ROOT / "docs" / "fidelity.md").read_text().partition("Why PEARL learns")[2]
    text = text.partition("\n## ")[0]
    for line in re.findall(r"^\| .*\d\.\d\d \|$", text, flags=re.M):
        first, latent, *numbers = (cell.strip() for cell in line.strip("|").split("|"))
        encoder = first or encoder
        noise = re.findall(r"`(.*?)`", latent)
        way = noise[0] if noise else "none" if "means" in latent else "stored"
        said[encoder.split("`")[1], way] = tuple(numbers)
    for (method, noise), numbers in said.items():
        (run,) = [
            run
            for run in find_runs(ROOT / "results" / "t-ls" / method)
            if run.read()["run"]["ppo"].get("update_noise", "stored") == noise
            and run.read()["run"]["seeds"] == [0, 1, 2]
            and len(run.read()["run"]["kl_weights"]) == 1
        ]
        best, mean, _, _ = outcome(run)
        curves = [row for row in run.read_curves() if f"{row['rate']:g}" == best]
        frames = max(row["frames"] for row in curves)
        late = [row["return"] for row in curves if row["frames"] >= 0.9 * frames]
        assert numbers == (mean, f"{np.mean(late):.2f}"), (method, noise)
    assert len(said) == 5


def test_the_planning_game_by_rate():
    """The table of docs/fidelity.md, and the entropies below it."""
    text = (ROOT / "docs" / "fidelity.md").read_text().partition("RNN on the Planning Game")[2]
    rates = [float(rate) for rate in re.findall(r"\| (0\.0\d+) ", text)]
    entropies = {}
    for method in ("rnn", "splagger", "splagger-nornn"):
        (run,) = find_runs(ROOT / "results" / "planning" / method)
        curves = pandas.read_csv(run.curves)
        late = curves[curves["frames"] >= 0.9 * curves["frames"].max()]
        of = lambda table, rate, what="return": table[table["rate"] == rate][what].mean()  # noqa: E731
        numbers = [f"{of(curves, rate):.2f} / {of(late, rate):.2f}" for rate in rates]
        assert f"| `{method}` | " + " | ".join(numbers) + " |" in text
        entropies[method] = of(late, 0.001, "entropy")
    said = "entropy is {rnn:.3f} nats with the RNN and {splagger:.3f} with SplAgger"
    assert said.format(**entropies) in text


def test_words_about_the_planning_game():
    """Of docs/fidelity.md: when the first policy is found, who breaks at the largest rate, what is earned when."""
    text = (ROOT / "docs" / "fidelity.md").read_text().partition("RNN on the Planning Game")[2]
    text, found, ends, middle = " ".join(text.split()), [], {}, 0.0
    for method in ("rnn", "splagger"):
        (run,) = find_runs(ROOT / "results" / "planning" / method)
        curves = pandas.read_csv(run.curves).set_index("frames")
        mean = curves[curves["rate"] == 0.001].groupby("frames")["return"].mean()
        found.append((mean.rolling(5).mean() >= 17.85).idxmax())
        last = curves.index.max()
        large = curves[curves["rate"] == 0.003]
        ends[method] = sorted(large[large.index >= 0.9 * last].groupby("seed")["return"].mean())
        if method == "rnn":
            middle = large.loc[10_000_000:20_000_000].groupby("seed")["return"].mean().min()
    assert f"within {max(found) / 1e6 + 0.05:.1f} M frames" in text
    assert "earn {:.2f}, {:.2f} and {:.2f} in the last tenth".format(*ends["rnn"]) in text
    assert f"having earned {middle:.1f} or more" in text
    assert f"SplAgger's {ends['splagger'][0]:.2f} to {ends['splagger'][-1]:.2f}" in text
    values = pandas.read_csv(ROOT / "results/analysis-small/adaptation/planning/values.csv")
    earned = values.groupby(["method", "step"])["value"].mean()
    sums = [earned[m].loc[a:b].sum() for a, b in ((70, 99), (20, 49)) for m in ("rnn", "splagger")]
    said = (
        "the RNN earns {:.2f} and SplAgger {:.2f}, as much as in steps 20 to 49 ({:.2f} and {:.2f})"
    )
    assert said.format(*sums) in text


def test_verdicts():
    results = evaluate_claims(
        Evidence.read(ROOT / "results", analyses=ROOT / "results" / "analysis")
    )
    counts = Counter(verdict.outcome for _, verdict in results)
    verdicts = {claim.sentence.rstrip("."): verdict.outcome for claim, verdict in results}
    told = [(verdict.strip("*"), claim) for verdict, claim in rows("verdict")]
    assert f"The paper makes {len(results)} empirical claims" in README
    assert f"the other {counts[UNKNOWN]}:" in README
    exact = [(verdict, claim) for verdict, claim in told if claim in verdicts]
    assert len(exact) >= 10 and all(verdicts[claim] == verdict for verdict, claim in exact)
    assert [claim for v, claim in told if v == FAILS] == [
        c for c, v in verdicts.items() if v == FAILS
    ]
    several = sum("(two claims)" in claim for _, claim in told)
    assert sum(v == HOLDS for v, _ in told) + several == counts[HOLDS]
