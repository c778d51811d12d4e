"""Several processes train one experiment: shares, settings of the connection, and equal results."""

import itertools
import os
import signal
import socket
import time

import numpy as np
import pytest

import splagger
from splagger import hosts
from splagger.errors import RunError, SettingError
from splagger.runs.folder import RunFolder, find_runs
from splagger.training import program as programs
from splagger.training import runner
from splagger.training.program import spread
from tests.tiny import BATCH, bits, finish, start, tiny


@pytest.mark.parametrize(("members", "processes"), [(1, 1), (4, 2), (5, 2), (15, 4), (2, 3)])
def test_shares_have_one_size_and_cover_all_members(members, processes):
    shares = [hosts.share(range(members), index, processes) for index in range(processes)]
    assert len({len(share) for share in shares}) == 1
    assert list(itertools.chain(*shares))[:members] == list(range(members))


def test_a_process_alone_gathers_its_own_value():
    assert hosts.gather("x") == ["x"] and hosts.from_first(lambda: 3) == 3
    assert hosts.anywhere(True, False) == [True, False]
    assert hosts.is_first() and hosts.count() == 1
    hosts.join()  # nothing to connect to


BY_HAND = {hosts.ADDRESS: "a:1", hosts.COUNT: "2", hosts.INDEX: "1"}
SLURM = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2", "SLURM_PROCID": "0"}


def test_how_a_process_knows_that_it_is_one_of_several():
    found = hosts.settings_of(BY_HAND)
    assert (found["coordinator_address"], found["num_processes"], found["process_id"]) == (
        "a:1",
        2,
        1,
    )
    assert hosts.settings_of({}) is None
    assert hosts.settings_of(SLURM) == {"local_device_ids": []}  # all devices of the machine
    assert hosts.settings_of(SLURM | {"SLURM_STEP_NUM_TASKS": "8"}) == {}  # one device each
    assert hosts.settings_of(SLURM | {"SLURM_STEP_NUM_TASKS": "1"}) is None
    assert hosts.settings_of({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}) is None  # outside of srun
    assert hosts.settings_of({"OMPI_COMM_WORLD_SIZE": "2"}) == {}


@pytest.mark.parametrize("change", [{hosts.COUNT: "two"}, {hosts.INDEX: "2"}, {hosts.INDEX: "-1"}])
def test_a_wrong_connection_is_refused_in_one_line(change):
    with pytest.raises(SettingError, match=hosts.INDEX):
        hosts.settings_of(BY_HAND | change)
    with pytest.raises(SettingError, match="set all three"):
        hosts.settings_of({hosts.ADDRESS: "a:1"})


def test_processes_that_train_different_experiments_are_refused(monkeypatch):
    commands = [("a", "splagger train x"), ("b", "splagger train y")]
    monkeypatch.setattr(hosts, "gather", lambda value: [value, commands[1]])
    with pytest.raises(
        RunError, match=r"process 0 `splagger train x`, process 1 `splagger train y`"
    ):
        hosts.check_same(*commands[0])
    monkeypatch.setattr(hosts, "gather", lambda value: [value, value])
    hosts.check_same(*commands[0])


class Pretend:
    """Two processes inside of one: values are exchanged through lists."""

    def __init__(self, monkeypatch):
        self.patch, self.sent = monkeypatch, {}

    def be(self, index, others=None):
        share = lambda members: SHARE(members, index, 2)  # noqa: E731
        self.patch.setattr(programs.hosts, "share", share)
        self.patch.setattr(programs.hosts, "gather", others or (lambda value: [value, value]))


SHARE = hosts.share


def test_processes_exchange_metrics_and_states(monkeypatch):
    """Two halves, each of which trains two of four members, have the states and metrics of the whole."""
    run = tiny()
    whole = runner.compile_grid(run.config, run.points)
    half = runner.compile_grid(run.config, run.points[:2])
    pretend = Pretend(monkeypatch)
    halves = []
    for index in range(2):
        pretend.be(index)
        halves.append(spread(half.bind(SHARE(run.points, index, 2)), run.points))
    states = [one.init() for one in halves]
    local = [programs.named_leaves(half.pack(state)) for state in states]
    pretend.be(0, lambda value: local)
    saved = halves[0].pack(states[0])
    assert bits(saved) == bits(whole.pack(whole.init()))
    for index in range(2):
        pretend.be(index)
        again = spread(half, run.points).unpack(saved)
        assert bits(half.pack(again)) == bits(half.pack(states[index]))
    assert [leaf.shape for leaf in programs.jax.tree.leaves(halves[0].example)] == [
        leaf.shape for leaf in programs.jax.tree.leaves(whole.example)
    ]


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def arguments(rates, updates):
    from tests import tiny as small

    return ["t-ls-small", "splagger", *small.arguments(updates * BATCH, rates)]


def together(out, rates=("1e-3", "3e-4"), updates=12, processes=2):
    """Starts the processes of one experiment."""
    address = f"localhost:{free_port()}"
    command = ["train", *arguments(rates, updates), "--out", str(out)]
    places = [
        {hosts.ADDRESS: address, hosts.COUNT: str(processes), hosts.INDEX: str(index)}
        for index in range(processes)
    ]
    return [start(*command, **place) for place in places]


@pytest.mark.slow
def test_two_processes_give_the_curves_of_one(tmp_path):
    """Each process has two members, and the program of two members is the same: so are all bits."""
    ends = [finish(process, 600) for process in together(tmp_path / "both")]
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert "Results" in ends[0][1] and "Results" not in ends[1][1]
    (folder,) = find_runs(tmp_path / "both")
    both = splagger.curves(folder.path)
    assert folder.record().finished and folder.record().provenance["device"].startswith("2 ")
    for rate in (1e-3, 3e-4):
        alone = splagger.train(
            "t-ls-small",
            "splagger",
            rates=rate,
            seeds=2,
            frames=12 * BATCH,
            settings=dict(tiny().overrides),
            out=tmp_path,
            show=False,
        )
        part = both[both["rate"] == rate].reset_index(drop=True)
        assert part.equals(alone.reset_index(drop=True))


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_a_signal_to_any_process_stops_all_and_the_same_command_continues(tmp_path, index):
    whole = [finish(process, 600)[0] for process in together(tmp_path / "whole", updates=400)]
    assert whole == [0, 0]
    processes = together(tmp_path / "cut", updates=400)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:  # until the first events of training are written
        events = (tmp_path / "cut").glob("*/*/*/tensorboard/*/*")
        if any(path.stat().st_size > 2000 for path in events):
            break
        time.sleep(0.1)
    processes[index].send_signal(signal.SIGTERM)
    ends = [finish(process, 120) for process in processes]
    assert [code for code, _, _ in ends] == [130, 130], ends
    (folder,) = find_runs(tmp_path / "cut")
    update = folder.record().update
    assert 0 < update < 400 and folder.saved_updates()[-1] == update
    assert [finish(process, 600)[0] for process in together(tmp_path / "cut", updates=400)] == [
        0,
        0,
    ]
    (other,) = find_runs(tmp_path / "whole")
    one, two = [(f.path / "curves.csv").read_bytes() for f in (folder, other)]
    assert one == two and RunFolder(folder.path).record().finished


@pytest.mark.slow
def test_a_killed_process_ends_the_others(tmp_path):
    processes = together(tmp_path, updates=100_000)
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("*/*/*/tensorboard/*/*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3.0)
    os.kill(processes[1].pid, signal.SIGKILL)
    code, _, err = finish(processes[0], 120)
    finish(processes[1])
    assert code not in (0, None) and "has ended" in err, err
    (folder,) = find_runs(tmp_path)
    with folder.locked():  # nobody holds the folder any more
        assert np.isfinite(folder.record().seconds)
