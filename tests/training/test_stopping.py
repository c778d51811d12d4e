"""Signals: handled while a computation runs, and obeyed soon even if it takes long."""

import contextlib
import functools as ft
import os
import signal
import threading
import time

import jax
import pytest

import splagger
from splagger.errors import Interrupted
from splagger.runs.folder import find_runs
from splagger.training import runner, stopping
from splagger.training.compiler import CONTEXTS
from splagger.training.progress import Silent
from splagger.training.stopping import AbandonedError, StopRequest
from tests.tiny import BATCH, UPDATES, tiny


def send(number: int, after: float = 0.1) -> None:
    """Sends this process a signal a little later."""
    threading.Timer(after, os.kill, (os.getpid(), number)).start()


def test_signals_are_handled_while_a_computation_runs():
    """The computation waits for a signal that only the main thread can handle."""
    received = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: received.set())
    try:
        send(signal.SIGUSR1)
        assert StopRequest(Silent()).call(received.wait, 20)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_computation_has_the_settings_of_jax_of_its_caller():
    changed = {
        "enable_x64": True,
        "default_matmul_precision": "float32",
        "default_device": jax.devices()[0],
        "default_prng_impl": "rbg",
        "threefry_partitionable": not jax.config.jax_threefry_partitionable,
        "numpy_rank_promotion": "raise",
        "numpy_dtype_promotion": "strict",
        "debug_nans": True,
        "debug_infs": True,
        "log_compiles": True,
    }
    assert set(changed) == set(CONTEXTS)
    found = lambda: {name: getattr(jax.config, f"jax_{name}") for name in CONTEXTS}  # noqa: E731
    with contextlib.ExitStack() as stack:
        for name, value in changed.items():
            stack.enter_context(getattr(jax, name)(value))
        assert StopRequest(Silent()).call(found) == changed
    assert StopRequest(Silent()).call(found) == found() != changed


def test_errors_of_the_computation_are_raised():
    with pytest.raises(ZeroDivisionError):
        StopRequest(Silent()).call(lambda: 1 / 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_computation_that_ends_soon_is_waited_for(number):
    with StopRequest(Silent(), patience=20.0) as stop:
        send(number)
        assert stop.call(lambda: time.sleep(0.5) or "result") == "result"
        assert stop.requested


@pytest.mark.parametrize("options", [{"patience": 0.3}, {"patience": 60.0}])
def test_a_computation_that_takes_long_is_abandoned(options):
    release = threading.Event()
    with StopRequest(Silent(), **options) as stop:
        send(signal.SIGTERM)
        with pytest.raises(AbandonedError):
            stop.call(release.wait, 60, worthwhile=options["patience"] < 60)
    release.set()


def test_a_second_signal_stops_at_once():
    release = threading.Event()
    with StopRequest(Silent(), patience=60.0) as stop:
        send(signal.SIGINT)
        send(signal.SIGINT, after=0.4)
        with pytest.raises(KeyboardInterrupt):
            stop.call(release.wait, 60)
    release.set()


def test_a_second_sigterm_changes_nothing():
    """Clusters may send it several times."""
    with StopRequest(Silent(), patience=20.0) as stop:
        send(signal.SIGTERM)
        send(signal.SIGTERM, after=0.3)
        assert stop.call(lambda: time.sleep(0.6) or "result") == "result"


def test_clusters_give_more_time_than_a_stop_takes():
    assert stopping.PATIENCE < 10


@pytest.mark.parametrize(
    "blocks, message", [(0, "before the first checkpoint"), (3, "update 3 of")]
)
def test_a_run_that_is_stopped_in_a_long_block_keeps_its_last_checkpoint(
    tmp_path, monkeypatch, trained, blocks, message
):
    real, release, calls = runner.compile_grid(tiny().config, tiny().points), threading.Event(), []

    def block(state):
        calls.append(0)
        if len(calls) > blocks:
            os.kill(os.getpid(), signal.SIGTERM)
            release.wait(60)
        return real.block(state)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "compile_grid", lambda *_: real._replace(block=block))
        patch.setattr(runner, "StopRequest", ft.partial(StopRequest, patience=0.2))
        with pytest.raises(Interrupted, match=message) as caught:
            runner.execute(tiny(), tmp_path, save_every=0, show=False)
    release.set()
    assert caught.value.abandoned
    (folder,) = find_runs(tmp_path)
    assert folder.record().update == blocks and not folder.record().finished
    runner.execute(tiny(), tmp_path, show=False)
    assert splagger.curves(folder.path).equals(splagger.curves(trained))
    assert folder.record().frames == UPDATES * BATCH
