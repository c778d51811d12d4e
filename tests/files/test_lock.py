"""The lock of a shared folder: never two owners, dead owners are replaced, and paused owners notice."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from splagger.files import lock, processes
from splagger.files.lock import LockedError, LostLockError, find_holder, held
from splagger.files.processes import Process, is_gone, this_process

# Enters and leaves the lock many times. Inside, a file that only one process may create witnesses the exclusion.
RACE = """
import os, pathlib, sys
from splagger.files import lock
lock.POLL = 0.0005
path = pathlib.Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    with lock.held(path / "owner", wait=60):
        os.close(os.open(path / "inside", os.O_CREAT | os.O_EXCL))
        with open(path / "count", "a") as file:
            file.write("x")
        os.unlink(path / "inside")
"""

# Holds the lock as a process of another machine; writes once its input says so.
ELSEWHERE = """
import pathlib, sys
from splagger.files import lock
here = lock.this_process()
lock.this_process = lambda: here._replace(host="elsewhere", boot="another")
path = pathlib.Path(sys.argv[1])
with lock.held(path / "owner") as mine:
    print("in", flush=True)
    sys.stdin.readline()
    mine.check()
    (path / "written").touch()
"""


def start(code, *args):
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@contextlib.contextmanager
def owner(tmp_path, code=ELSEWHERE):
    """Another process that holds the lock."""
    with start(code, tmp_path) as process:
        try:
            assert process.stdout.readline() == "in\n"
            yield process
        finally:
            process.kill()


def age_heartbeat(path, seconds):
    (file,) = path.iterdir()
    os.utime(file, (time.time() - seconds,) * 2)


def test_processes_that_race_are_never_both_inside(tmp_path):
    racers = [start(RACE, tmp_path, 100) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        _, err = racer.communicate(timeout=60)
        assert racer.returncode == 0, err
    assert (tmp_path / "count").read_text() == "x" * 200
    assert sorted(p.name for p in tmp_path.iterdir()) == ["count"]


def test_processes_that_find_a_dead_owner_do_not_both_replace_it(tmp_path, monkeypatch):
    """All see the same dead owner, and only one becomes the next."""
    monkeypatch.setattr(lock, "POLL", 0.001)
    path = tmp_path / "owner"
    for _ in range(20):
        path.mkdir()
        (path / "dead").touch()
        age_heartbeat(path, lock.LIMIT + 1)
        inside, seen = [], []
        barrier = threading.Barrier(4)

        def enter(path=path, barrier=barrier, inside=inside, seen=seen):
            barrier.wait()
            with held(path, wait=30):
                inside.append(1)
                time.sleep(0.001)
                seen.append(len(inside))
                inside.pop()

        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [1] * 4 and not path.exists()


def test_a_busy_lock_names_its_owner(tmp_path):
    with held(tmp_path / "owner"), pytest.raises(LockedError) as caught, held(tmp_path / "owner"):
        pass
    here = this_process()
    assert caught.value.holder.process == here
    assert f"process {os.getpid()} on {here.host} holds" in str(caught.value)


def test_the_lock_of_a_killed_process_of_this_machine_is_free_at_once(tmp_path):
    with owner(tmp_path, ELSEWHERE.replace("lock.this_process = ", "_ = ")) as process:
        with pytest.raises(LockedError), held(tmp_path / "owner"):
            pass
        process.kill()
        process.wait()
        assert find_holder(tmp_path / "owner").is_dead
        with held(tmp_path / "owner"):
            pass


def test_the_lock_of_a_stopped_process_of_this_machine_is_not_taken_over(tmp_path):
    """As after Ctrl-Z: it sends no heartbeat, but may go on."""
    with owner(tmp_path, ELSEWHERE.replace("lock.this_process = ", "_ = ")) as process:
        process.send_signal(signal.SIGSTOP)
        age_heartbeat(tmp_path / "owner", lock.LIMIT + 1)
        if not this_process().started:
            pytest.skip("needs /proc, which tells stopped processes from ended ones")
        assert not find_holder(tmp_path / "owner").is_dead
        with pytest.raises(LockedError), held(tmp_path / "owner"):
            pass
        process.send_signal(signal.SIGCONT)


def test_a_process_of_another_machine_is_dead_without_heartbeats(tmp_path):
    with owner(tmp_path) as process:
        process.kill()
        process.wait()
        path = tmp_path / "owner"
        with pytest.raises(LockedError, match="on elsewhere holds"), held(path):
            pass
        age_heartbeat(path, lock.LIMIT - 5)
        with pytest.raises(LockedError), held(path):
            pass
        age_heartbeat(path, lock.LIMIT + 1)
        with held(path):
            pass


def test_a_paused_owner_whose_lock_was_taken_over_does_not_write(tmp_path):
    with owner(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        age_heartbeat(tmp_path / "owner", lock.LIMIT + 1)
        with held(tmp_path / "owner") as mine:
            process.send_signal(signal.SIGCONT)
            _, err = process.communicate("write\n", timeout=30)
            mine.check()  # the loser did not remove the winner's lock either
        assert process.returncode == 1 and not (tmp_path / "written").exists()
        assert f"LostLockError: this process has lost {tmp_path}" in err.replace(
            "splagger.files.lock.", ""
        )
        assert f"process {os.getpid()} on" in err


def test_heartbeats_keep_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.01)
    with held(tmp_path / "owner"):
        age_heartbeat(tmp_path / "owner", 1000)
        deadline = time.monotonic() + 10
        while find_holder(tmp_path / "owner").age > 100 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert find_holder(tmp_path / "owner").age < 100


def test_waiting_for_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "POLL", 0.01)
    entered = []

    def wait():
        with held(tmp_path / "owner", 30):
            entered.append(True)

    with held(tmp_path / "owner"):
        thread = threading.Thread(target=wait)
        thread.start()
        with pytest.raises(LockedError), held(tmp_path / "owner", wait=0.05):
            pass
        assert not entered
    thread.join(10)
    assert entered


def test_a_lock_whose_owner_left_or_cannot_be_read(tmp_path):
    path = tmp_path / "owner"
    path.mkdir()
    with held(path) as mine:  # an empty directory is a free lock
        mine.check()
        mine.file.write_bytes(b"\xff not json")
        with pytest.raises(LockedError, match="an unknown process holds"), held(path):
            pass
        mine.file.unlink()
        with pytest.raises(LostLockError, match="another process took over"):
            mine.check()
    assert find_holder(path) is None and find_holder(tmp_path / "nothing") is None


def test_private_directories_of_killed_processes_are_removed(tmp_path):
    old, new = tmp_path / ".owner.1", tmp_path / ".owner.2"
    for path in (old, new):
        path.mkdir()
    os.utime(old, (time.time() - 2 * lock.LIMIT,) * 2)
    with held(tmp_path / "owner"):
        assert new.exists() and not old.exists()


def test_processes_are_told_apart(monkeypatch):
    here = this_process()
    assert not is_gone(here)
    assert is_gone(here._replace(started="1")) == bool(here.started)  # the id is used again
    assert is_gone(here._replace(pid=2**22 + 1))  # above the largest id of Linux
    for name in ("host", "boot", "namespace"):
        assert not is_gone(here._replace(**{name: "another", "pid": 2**22 + 1}))
    monkeypatch.setattr(processes, "_read", lambda path: "")  # systems without /proc
    assert this_process() == Process(here.host, here.pid, "", here.namespace, "")
    assert not is_gone(this_process())


def test_a_process_that_ended_but_was_not_collected_is_gone():
    with start(
        "from splagger.files.processes import *; print(*this_process(), sep='|')"
    ) as process:
        fields = process.stdout.read().strip().split("|")
        described = Process(fields[0], int(fields[1]), *fields[2:])
        deadline = time.monotonic() + 10
        while not is_gone(described) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert is_gone(described) or not described.started
