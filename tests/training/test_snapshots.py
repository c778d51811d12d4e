"""Snapshots are the agents that trained, whatever stopped the run, and change nothing about training."""

import shlex
import shutil
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import splagger
from splagger.agents.loading import load_seeds
from splagger.analysis.api import _call
from splagger.analysis.subjects import trained as trained_subject
from splagger.cli import main
from splagger.errors import RunError, SettingError
from splagger.files.agent_file import open_agent
from splagger.inspection.api import _look
from splagger.runs.checkpoints import restore_checkpoint, restore_snapshot, save_checkpoint
from splagger.runs.folder import RunFolder, find_runs
from splagger.runs.record import check_arguments
from splagger.runs.run import Run
from splagger.training import race, runner
from tests.tiny import BATCH, SETTINGS, SHORT, UPDATES, arguments, bits, contents, example, tiny

EVERY = SHORT * BATCH
KEPT = [0, SHORT, 2 * SHORT]


def agents(folder: RunFolder, update: int):
    return bits(restore_snapshot(folder, update, example()))


def last_agents(folder: RunFolder):
    state = restore_checkpoint(folder, example()).state
    return bits((state.agent, state.normalizers))


@pytest.fixture(scope="module")
def kept(compiled_once, tmp_path_factory) -> RunFolder:
    """The finished run of `trained`, with snapshots. Tests must not write to it."""
    run = tiny(snapshot_every=EVERY)
    return runner.execute(run, tmp_path_factory.mktemp("kept"), show=False)[0]


def test_snapshots_do_not_change_training(kept, trained):
    assert kept.path.name == trained.name
    assert (kept.path / "curves.csv").read_bytes() == (trained / "curves.csv").read_bytes()
    assert last_agents(kept) == last_agents(RunFolder(trained))
    assert not RunFolder(trained).snapshots()


def test_a_snapshot_is_the_agent_of_a_run_that_ends_there(kept, tmp_path):
    assert kept.snapshots() == KEPT
    short, _ = runner.execute(tiny(frames=EVERY), tmp_path, show=False)
    assert agents(kept, SHORT) == last_agents(short)
    assert agents(kept, 0) != agents(kept, SHORT) != agents(kept, 2 * SHORT)


@pytest.mark.parametrize("every", [1, 79, 80, 81, 160, 250, 960, 10_000])
@pytest.mark.parametrize("interval", [1, 3])
def test_when_snapshots_are_due(every, interval):
    """At the start, and at the first evaluation at or after every multiple."""
    run = tiny(snapshot_every=every, overrides=SETTINGS | {"ppo.eval_interval": interval})
    evaluations = range(0, UPDATES + 1, interval)
    multiples = range(0, UPDATES * BATCH + 1, every)
    expected = {
        next((u for u in evaluations if u * BATCH >= multiple), None) for multiple in multiples
    }
    assert {u for u in evaluations if run.has_snapshot(u)} == expected - {None}
    assert not any(map(tiny().has_snapshot, evaluations))


@pytest.mark.parametrize("checkpoint", [2, SHORT])
def test_a_resumed_run_has_the_same_snapshots(kept, tmp_path, monkeypatch, checkpoint):
    """Also where it had written one that is newer than its last checkpoint."""
    run = tiny(snapshot_every=EVERY)

    def save(folder, update, *rest):
        if update > checkpoint:
            raise KeyboardInterrupt
        write(folder, update, *rest)

    write, keep = runner.save_checkpoint, runner.save_snapshot
    monkeypatch.setattr(runner, "save_checkpoint", save)
    if checkpoint == SHORT:  # a later snapshot that this run has not made
        shutil.copytree(kept.path / "snapshots", run.folder(tmp_path) / "snapshots")
    with pytest.raises(KeyboardInterrupt):
        runner.execute(run, tmp_path, save_every=0, show=False)
    monkeypatch.setattr(runner, "save_checkpoint", write)
    stopped = RunFolder(run.folder(tmp_path))
    assert stopped.saved_updates()[-1] == checkpoint
    assert stopped.snapshots() == [u for u in KEPT if u <= checkpoint]
    broken = stopped.path / "snapshots" / f"{2 * SHORT}.safetensors"
    broken.write_bytes(b"of another process")

    def no_later_one(folder, update, state):
        assert not broken.exists()
        keep(folder, update, state)

    monkeypatch.setattr(runner, "save_snapshot", no_later_one)
    folder, _ = runner.execute(run, tmp_path, show=False)
    assert contents(folder.path / "snapshots") == contents(kept.path / "snapshots")


def test_a_longer_run_keeps_its_snapshots(kept, tmp_path):
    runner.execute(tiny(frames=EVERY, snapshot_every=EVERY), tmp_path, show=False)
    folder, _ = runner.execute(tiny(snapshot_every=EVERY), tmp_path, show=False)
    assert contents(folder.path / "snapshots") == contents(kept.path / "snapshots")
    runner.execute(tiny(frames=EVERY), tmp_path, force=True, show=False)
    assert not folder.snapshots()


def test_snapshots_of_a_race_have_all_members(kept, tmp_path, monkeypatch):
    """Rates that have stopped stay as they were."""
    monkeypatch.setattr(race, "clearly_behind", lambda curves: [r for r in curves if r == 3e-4])
    run = tiny(race=True, snapshot_every=EVERY)
    folder, _ = runner.execute(run, tmp_path, show=False)
    assert len(folder.record().raced) == 2
    for rate in run.rates:
        first, last = (splagger.load(folder.path, rate, 0, at=at) for at in (EVERY, 2 * EVERY))
        assert (bits(first.agent) == bits(last.agent)) == (rate == 3e-4)
    assert bits(splagger.load(folder.path, 3e-4, 1, at=1e9).agent) == bits(
        splagger.load(folder.path, 3e-4, 1).agent
    )


def test_loading_takes_the_nearest_snapshot(kept):
    frames = [update * BATCH for update in KEPT]
    assert splagger.snapshots(kept.path) == frames
    for at, expected in ((0, 0), (190, 0), (210, EVERY), (1e12, 800)):
        player = splagger.load(kept.path, rate=3e-4, seed=1, at=at)
        assert player.at == expected and f", at {expected:,} frames, from" in repr(player)
        saved = restore_snapshot(kept, expected // BATCH, example())
        index = tiny().points.index(player.point)
        assert bits(player.agent) == bits(_member(saved.agent, index))
        assert bits(player.normalizers) == bits(_member(saved.normalizers, index))
    assert player.with_env(length=6).at == player.at
    assert splagger.load(kept.path).at is None and "frames" not in repr(splagger.load(kept.path))
    assert [p.at for p in load_seeds(kept.path, at=EVERY)] == [EVERY] * 2


def _member(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def test_a_member_that_diverged_later_still_has_its_snapshots(kept, tmp_path):
    shutil.copytree(kept.path, tmp_path / "run")
    folder, name = RunFolder(tmp_path / "run"), tiny().member(tiny().points[0])
    folder.write_record(replace(folder.record(), stopped={name: SHORT + 1}))
    point = tiny().points[0]
    assert splagger.load(folder.path, point.rate, point.seed, at=EVERY).at == EVERY
    for at in (2 * EVERY, None):
        with pytest.raises(RunError, match=f"had diverged by update {SHORT + 1}"):
            splagger.load(folder.path, point.rate, point.seed, at=at)


def test_without_snapshots_loading_says_how_to_make_them(trained, kept, tmp_path):
    assert splagger.snapshots(trained) == splagger.snapshots("t-ls/splagger") == []
    with pytest.raises(RunError, match=r"has no snapshots; .* --snapshot-every FRAMES"):
        splagger.load(trained, at=100)
    with pytest.raises(SettingError, match="is one agent"):
        splagger.load("t-ls/splagger", at=100)
    for wrong in (-1, float("nan")):
        with pytest.raises(SettingError, match="at must be "):
            splagger.load(kept.path, at=wrong)
    shutil.copytree(kept.path, tmp_path / "run")
    (tmp_path / "run" / "snapshots" / f"{SHORT}.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(RunError, match=rf"{SHORT}.safetensors is damaged .*load another snapshot"):
        splagger.load(tmp_path / "run", at=EVERY)


def test_an_exported_snapshot_says_how_long_it_was_trained(kept, tmp_path):
    for at, frames in ((EVERY, EVERY), (None, UPDATES * BATCH)):
        splagger.save_agent(splagger.load(kept.path, at=at), tmp_path / "agent.npz")
        with open_agent(tmp_path / "agent.npz") as file:
            training = file.description["training"]
        assert training["frames"] == frames and ("seconds" in training) == (at is None)


def test_the_command_makes_the_same_run_again(tmp_path):
    run = tiny(snapshot_every=250.0)
    assert Run.create(**run.arguments()) == run
    assert " --snapshot-every 250 " in f"{run.command()} "
    assert "snapshot_every" not in tiny().arguments() and run.digest == tiny().digest
    with pytest.raises(SettingError, match="snapshot_every must be positive, got 0"):
        tiny(snapshot_every=0)
    with pytest.raises(ValueError, match="its snapshot_every are 'often'"):
        check_arguments(run.arguments() | {"snapshot_every": "often"})


def test_commands_about_snapshots(kept, tmp_path, capsys):
    given = ["--out", str(tmp_path), "--snapshot-every", str(EVERY)]
    main(["train", "t-ls-small", "splagger", *given, *arguments()])
    (folder,) = find_runs(tmp_path)
    assert contents(folder.path / "snapshots") == contents(kept.path / "snapshots")
    assert f"--snapshot-every {EVERY}" in folder.record().provenance["command"]
    capsys.readouterr()

    run = [str(folder.path), "--rate", "1e-3", "--seed", "0"]
    main(["evaluate", *run, "--tasks", "4", "--every-snapshot"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[3:]] == ["0", "400", "800"]
    main(["evaluate", *run, "--tasks", "4", "--at", "390"])
    out = capsys.readouterr().out
    assert "4 tasks, rate 0.001, seed 0, at 400 frames" in out
    assert out.split()[-3:] == rows[4][-3:]
    main(["evaluate", str(folder.path), "--tasks", "4", "--every-seed", "--at", "390"])
    assert "2 seeds, at 400 frames" in capsys.readouterr().out
    main(["export", *run, "--at", "400", "-o", str(tmp_path / "agent.npz")])
    assert "seed 0, at 400 frames, " in capsys.readouterr().out
    for other in ("--every-seed", "--at=3"):
        with pytest.raises(SystemExit):
            main(["evaluate", *run, "--every-snapshot", other])
        assert f"it takes no {other.partition('=')[0]}" in capsys.readouterr().err


def test_the_size_of_many_snapshots_is_announced(kept, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runner, "LARGE", 0)
    runner.execute(tiny(snapshot_every=EVERY), tmp_path, show="lines")
    (size,) = {path.stat().st_size for path in (kept.path / "snapshots").iterdir()}
    leaves = restore_snapshot(kept, 0, example())
    arrays = sum(leaf.nbytes for leaf in jax.tree.leaves(leaves))
    assert 0.5 * size < arrays < size
    assert f"3 snapshots of {arrays / 1e6:,.0f} MB each" in "".join(capsys.readouterr())


def test_analyses_of_snapshots(kept, tmp_path, capsys):
    subject = trained_subject(kept.path, every_seed=True, at=EVERY)
    assert subject.origin.endswith(", at 400 frames")
    players = load_seeds(kept.path, at=EVERY)
    assert bits(subject.agents)[0] == bits(_stacked([player.agent for player in players]))[0]
    assert "at=400)" in _call(players[0]) and "at=" not in _call(splagger.load(kept.path))

    command = ["analyse", "permutation", "--out", str(tmp_path), "--length", "4"]
    main([*command, "--run", str(kept.path), "--at", "400"])
    text = (tmp_path / "permutation" / "t-ls-small" / "analysis.json").read_text()
    assert "at 400 frames" in text and shlex.join(["--at", "400.0"]) in text
    with pytest.raises(SystemExit):
        main([*command, "--at", "400"])
    assert "--at takes snapshots of trained agents" in capsys.readouterr().err


def _stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def killed(monkeypatch, run: Run, out, checkpoint: int, last: int) -> RunFolder:
    """Returns the folder of a run that was killed after the snapshot of update `last`."""
    write, keep = runner.save_checkpoint, runner.save_snapshot

    def save(folder, update, *rest):
        if update <= checkpoint:
            write(folder, update, *rest)

    def snapshot(folder, update, state):
        if update > last:
            raise KeyboardInterrupt
        keep(folder, update, state)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "save_checkpoint", save)
        patch.setattr(runner, "save_snapshot", snapshot)
        with pytest.raises(KeyboardInterrupt):
            runner.execute(run, out, save_every=0 if checkpoint else 120, show=False)
    return RunFolder(run.folder(out))


def test_a_command_without_the_option_keeps_and_makes_snapshots(kept, tmp_path, monkeypatch):
    """A run that was begun with snapshots has the same ones, whoever continues it."""
    folder = killed(monkeypatch, tiny(snapshot_every=EVERY), tmp_path, 0, SHORT)
    assert folder.snapshots() == [0, SHORT]
    runner.execute(tiny(), tmp_path, show=False)
    assert contents(folder.path / "snapshots") == contents(kept.path / "snapshots")


def test_snapshots_that_are_not_made_again_stay(kept, tmp_path):
    """A longer run starts over where its checkpoints are gone, with other snapshots."""
    run = tiny(snapshot_every=EVERY)
    shutil.copytree(kept.path, run.folder(tmp_path))
    shutil.rmtree(run.folder(tmp_path) / "checkpoints")
    longer = tiny(frames=(UPDATES + 1) * BATCH, snapshot_every=7 * BATCH)
    folder, _ = runner.execute(longer, tmp_path, show=False)
    assert folder.snapshots() == sorted({*KEPT, 0, 7})


def test_the_last_two_intact_checkpoints_are_kept(tmp_path):
    """A damaged one that is newer than they are would only be in their way."""
    folder, _ = runner.execute(tiny(), tmp_path, save_every=0, show=False)
    newest = folder.path / "checkpoints" / f"{UPDATES}.safetensors"
    newest.write_bytes(b"damaged")
    save_checkpoint(folder, UPDATES - 1, {"x": np.ones(2)})
    assert folder.saved_updates() == [UPDATES - 1] and not newest.exists()


def test_an_agent_that_diverged_after_the_last_record_is_not_loaded(tmp_path, monkeypatch):
    """Snapshots are written at once, and the record with every checkpoint."""
    run = tiny(rates=(1e38, 1e-3), snapshot_every=BATCH)
    folder = killed(monkeypatch, run, tmp_path, 0, 3)
    assert not folder.record().stopped and folder.snapshots() == [0, 1, 2, 3]
    with pytest.raises(RunError, match="seed 0 had diverged by update 3"):
        splagger.load(folder.path, rate=1e38, seed=0, at=1e9)
    assert splagger.load(folder.path, rate=1e-3, seed=0, at=1e9).at == 3 * BATCH
    with pytest.raises(RunError, match="no evaluation is saved yet, so the best agent is unknown"):
        splagger.load(folder.path, at=0)


def test_every_row_shows_the_same_agent_or_why_there_is_none(kept, tmp_path, capsys, monkeypatch):
    shutil.copytree(kept.path, tmp_path / "run")
    best = splagger.load(kept.path).point
    (tmp_path / "run" / "snapshots" / f"{SHORT}.safetensors").write_bytes(b"damaged")
    shown, evaluate = [], splagger.agents.evaluate

    def meanwhile(player, *rest, **named):
        shown.append(player.point)
        (tmp_path / "run" / "curves.csv").unlink(missing_ok=True)  # the best one is then unknown
        return evaluate(player, *rest, **named)

    monkeypatch.setattr(splagger.agents, "evaluate", meanwhile)
    main(["evaluate", str(tmp_path / "run"), "--tasks", "2", "--every-snapshot"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()][3:]
    assert [row[0] for row in rows] == ["0", "400", "800"] and shown == [best, best]
    assert rows[1][1:3] == ["not", "evaluated:"] and "damaged" in rows[1]


def test_an_agent_that_a_race_stopped_is_as_old_as_it_was_then(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(race, "clearly_behind", lambda curves: [r for r in curves if r == 3e-4])
    folder, _ = runner.execute(tiny(race=True, snapshot_every=EVERY), tmp_path, show=False)
    (update,) = set(folder.record().raced.values())
    for at in (1e9, None):
        player = splagger.load(folder.path, 3e-4, 0, at=at)
        assert player.at == (at and update * BATCH)
        splagger.save_agent(player, tmp_path / "agent.npz")
        with open_agent(tmp_path / "agent.npz") as file:
            assert file.description["training"]["frames"] == update * BATCH
    main(["evaluate", str(folder.path), "--rate", "3e-4", "--tasks", "2", "--every-snapshot"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()][3:]
    assert [row[0] for row in rows] == ["0"]


def test_a_run_that_lacks_snapshots_says_so(trained, tmp_path, capsys):
    shutil.copytree(trained, tiny().folder(tmp_path))
    given = ["--out", str(tmp_path), "--snapshot-every", str(EVERY), *arguments()]
    main(["train", "t-ls-small", "splagger", *given])
    assert "more --frames extend it, it has no snapshots): " in capsys.readouterr().out
    longer = tiny(frames=(UPDATES + SHORT) * BATCH, snapshot_every=EVERY)
    runner.execute(longer, tmp_path, show="lines")
    assert f"snapshots begin after {UPDATES * BATCH:,} frames" in "".join(capsys.readouterr())
    for name in ("frames", "snapshot_every"):
        with pytest.raises(SettingError, match=f"{name} must be a number of frames, got True"):
            tiny(**{name: True})


def test_a_full_disk_costs_no_more_than_the_snapshot(kept, tmp_path, capsys, monkeypatch):
    def full(folder, update, state):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "save_snapshot", full)
    folder, _ = runner.execute(tiny(snapshot_every=EVERY), tmp_path, show="lines")
    assert folder.record().finished and not folder.snapshots()
    out = "".join(capsys.readouterr())
    assert "no snapshot after 400 frames: cannot write it (No space left on device)" in out


def test_python_passes_the_options_on(tmp_path):
    given = {"rates": [1e-3], "seeds": 1, "frames": EVERY, "settings": SETTINGS, "out": tmp_path}
    curves = splagger.train("t-ls-small", "rnn", snapshot_every=EVERY, show=False, **given)
    assert splagger.snapshots(curves.attrs["folder"]) == [0, EVERY]
    given["rates"] = [1e-3, 3e-4]
    found = splagger.sweep("t-ls-small", "rnn", race=True, snapshot_every=EVERY, **given)
    assert RunFolder(found["folder"][0]).record().arguments["race"]
    assert splagger.snapshots(found["folder"][0]) == [0, EVERY]


def test_an_inspected_snapshot_has_its_age_in_its_label(kept):
    at = [_look(splagger.load(kept.path, at=at))[0] for at in (0, EVERY)]
    assert at[0].endswith(", 0 frames)") and at[1].endswith(", 400 frames)")
