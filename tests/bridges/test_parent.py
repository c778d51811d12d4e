"""Children of a process that is killed end within seconds, and workers outlive the thread that started them."""

import os
import signal
import subprocess
import sys
import time

from splagger.files.parent import end_with_parent, parent_is_gone

# A process with a Gymnasium worker, which a thread started that has ended, and a child of `train_all`.
CODE = """
import multiprocessing, threading, time
from concurrent.futures import ProcessPoolExecutor
import numpy as np
from splagger.bridges.gym.gym_env import GymEnv
from splagger.bridges.gym.workers import WorkerPool
from splagger.launchers.local import _start_child

spawn = multiprocessing.get_context("spawn")
arguments = (1, spawn.Event(), spawn.Event())
children = ProcessPoolExecutor(1, spawn, initializer=_start_child, initargs=arguments)
children.submit(int).result()  # raises an error if the child cannot start
children.submit(time.sleep, 1000)
pools, source = [], GymEnv("tests.bridges.gym_probes:Walk", max_steps=4, workers=1)
thread = threading.Thread(target=lambda: pools.append(WorkerPool(source, 2)))
thread.start()
thread.join()
assert pools[0].reset(np.arange(3)).obs.shape == (3, 4)  # the worker is there, the thread is not
print(*(process.pid for process in multiprocessing.active_children()), flush=True)
time.sleep(1000)
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_until(condition, patience=10.0) -> bool:
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_workers_and_jobs_end_when_their_parent_is_killed():
    process = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        children = [int(word) for word in process.stdout.readline().split()]
        assert len(children) == 2 and all(map(is_running, children))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert wait_until(lambda: not any(map(is_running, children)))


def test_a_process_that_was_not_spawned_has_no_parent_to_wait_for():
    end_with_parent(grace=0.0)
    assert not parent_is_gone()
