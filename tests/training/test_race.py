"""Races: who stops, and that those who stay end as if nobody had stopped."""

import json

import numpy as np
import pytest

from splagger import errors
from splagger.agents import loading
from splagger.runs.run import Run
from splagger.stats.members import best_rate, default_settings, members_of
from splagger.training import race, runner
from tests.tiny import BATCH, UPDATES, bits, tiny

STAYS, STOPS = 1e-3, 3e-4
SEEDS = len(tiny().points)  # a group of a race then has the program that other tests compile


def by_definition(curves, margin):
    """The rates that are clearly behind, seed by seed."""
    evaluations = curves[next(iter(curves))].shape[1]
    last = range(evaluations - max(1, evaluations // 4), evaluations)
    so_far = {r: [sum(c) / evaluations for c in rows] for r, rows in curves.items()}
    recent = {r: [sum(c[i] for i in last) / len(last) for c in rows] for r, rows in curves.items()}
    leader = max(curves, key=lambda r: sum(so_far[r]))
    start = sum(c[0] for c in curves[leader]) / len(curves[leader])
    gained = abs(sum(recent[leader]) / len(recent[leader]) - start)
    return [
        rate
        for rate in curves
        if all(a < b for a in so_far[rate] for b in so_far[leader])
        and all(a < b - margin * gained for a in recent[rate] for b in recent[leader])
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_rate_is_behind_by_definition(seed):
    random = np.random.default_rng(seed)
    slopes = random.normal(size=5)
    noise = random.normal(size=(5, 3, 11)) * random.choice([0.1, 1.0, 5.0])
    curves = {i: slope * np.arange(11.0) + noise[i] for i, slope in enumerate(slopes)}
    assert race.clearly_behind(curves, 0.2) == by_definition(curves, 0.2)


def test_a_rate_that_overlaps_or_is_close_stays():
    leader = np.linspace(0, 10, 9) * np.ones((3, 1))
    for other in (leader, leader * 0.9, leader * [[0.1], [0.1], [1.2]]):
        assert race.clearly_behind({"leader": leader, "other": other}) == []
    assert race.clearly_behind({"leader": leader, "other": leader * 0.5}) == ["other"]
    assert race.clearly_behind({"only": leader}) == []


def test_rates_race_for_each_setting_and_at_set_updates():
    run = tiny(rates=(1e-3, 3e-4), seeds=1, entropy_weights=(0.0, 0.1), race=True)
    racing = race.Race(run)
    assert racing.rounds == {2, 3, 6}  # 10, 25 and 50% of twelve updates
    earned = {(1e-3, 0.0): 9.0, (3e-4, 0.0): 1.0, (1e-3, 0.1): 0.4, (3e-4, 0.1): 0.5}
    rows = [
        {"update": u, **p._asdict(), "return": u * earned[p.rate, p.entropy_weight]}
        for u in range(3)
        for p in run.points
    ]
    assert [(p.rate, p.entropy_weight) for (p,) in racing.losers(rows, 2)] == [(3e-4, 0.0)]
    assert racing.losers(rows, 1) == []
    assert race.Race(tiny()).rounds == set()
    # One that diverged counts with its return before training.
    alive = [row for row in rows if row["rate"] == 3e-4 or row["update"] == 0]
    assert {p.rate for (p,) in racing.losers(alive, 2)} == {1e-3}


def test_a_rate_that_diverged_does_not_lead():
    """Even if agents earn less in training than before it."""
    healthy, dead = np.linspace(9, 5, 9) * np.ones((2, 1)), np.full((2, 9), np.nan)
    dead[:, 0] = 9.0
    partly = np.stack([dead[0], np.full(9, 9.0)])
    assert race.clearly_behind({"healthy": healthy, "dead": dead}) == []
    assert race.clearly_behind({"healthy": healthy, "partly": partly}) == []
    assert race.clearly_behind({"dead": dead - 5, "partly": partly}) == ["dead"]
    assert race.clearly_behind({"dead": dead, "also": dead - 5}) == []


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same race with one rate that always stops, and with none."""
    out, run = tmp_path_factory.mktemp("race"), tiny(seeds=SEEDS, race=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "clearly_behind", lambda curves: [])
        full, _ = runner.execute(run, out / "full", show=False)
        patch.setattr(race, "clearly_behind", lambda curves: [r for r in curves if r == STOPS])
        folder, _ = runner.execute(run, out, show=False, save_every=0)
        yield run, (folder, full)


def member(folder, run, point):
    trained = loading._Trained(folder.path)
    return bits(trained.player(run.points.index(point)).agent)


def test_survivors_end_as_if_nobody_had_stopped(both):
    run, folders = both
    tables = [folder.curves() for folder in folders]
    kept = tables[1][(tables[1]["rate"] != STOPS) | (tables[1]["update"] <= 2)]
    assert tables[0].equals(kept.reset_index(drop=True))
    for point in run.points:
        same = member(folders[0], run, point) == member(folders[1], run, point)
        assert same == (point.rate == STAYS)


def test_the_record_says_who_stopped_and_counts_what_was_trained(both):
    run, (folder, _) = both
    record = json.loads((folder.path / "run.json").read_text())
    assert set(record["raced"].values()) == {2} and len(record["raced"]) == SEEDS
    assert all(f"rate={STOPS!r}" in name for name in record["raced"])
    assert record["run"]["race"] == {"at": [0.1, 0.25, 0.5], "margin": 0.2}
    assert record["finished"] and not record["stopped"]
    trained = SEEDS * (UPDATES + 2) * BATCH
    assert record["frames_per_second"] == pytest.approx(trained / record["seconds"], rel=0.01)
    assert "--race" in run.command() and Run.create(**run.arguments()) == run


def test_a_stopped_rate_counts_as_not_chosen(both):
    _, (folder, _) = both
    record = folder.record()
    members = members_of(folder, record)[default_settings(record)]
    assert STOPS in members.rates and best_rate(members) != STOPS
    assert np.isnan(members.returns[STOPS, 0][-1])


@pytest.mark.parametrize("stop_at", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_race_ends_with_the_same_bits(both, stop_at, tmp_path, monkeypatch):
    run, (undisturbed, _) = both
    saves = []

    def save_and_stop(folder, update, *rest):
        saves.append(update)
        save(folder, update, *rest)
        if update == stop_at:
            raise KeyboardInterrupt

    save = runner.save_checkpoint
    monkeypatch.setattr(runner, "save_checkpoint", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        runner.execute(run, tmp_path, show=False, save_every=0)
    monkeypatch.setattr(runner, "save_checkpoint", save)
    folder, _ = runner.execute(run, tmp_path, show=False, save_every=0)
    assert saves[-1] == stop_at
    ends = [(f.path / "curves.csv").read_bytes() for f in (folder, undisturbed)]
    assert ends[0] == ends[1]
    for point in run.points:
        assert member(folder, run, point) == member(undisturbed, run, point)


def test_a_race_needs_two_rates():
    with pytest.raises(errors.SettingError, match="at least two rates"):
        tiny(rates=(1e-3,), race=True)
    assert tiny(race=False).digest == tiny().digest
