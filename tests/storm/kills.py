"""Signals at every kind of moment: whatever stops a run, the same command ends it with the same bytes.

python -m tests.storm.kills --tries 100 --seed 0
"""

import random
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from splagger.errors import UserError
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.folder import RunFolder
from splagger.training import runner
from tests.storm.outcome import Outcome, parse_arguments
from tests.tiny import BATCH, arguments, bits, example, finish, start, tiny

UPDATES = 40
SIGNALS = ("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT", "two SIGINT", "SIGSTOP and SIGKILL")
MOMENTS = ("start", "training", "writing", "commit")


def run_of():
    return tiny(frames=UPDATES * BATCH)


def launch(out: Path) -> subprocess.Popen:
    options = ["--out", str(out), "--save-every", "0"]
    return start("train", "t-ls-small", "splagger", *options, *arguments(UPDATES * BATCH))


def wait_for(moment: str, process: subprocess.Popen, folder: RunFolder, rng: random.Random) -> None:
    """Returns at the wanted moment, or when the process has ended."""
    if moment == "start":
        time.sleep(rng.uniform(0.0, 12.0))
        return
    before = max(folder.saved_updates(), default=-1)
    wanted = before + rng.randint(1, 8)
    while process.poll() is None and max(folder.saved_updates(), default=-1) < wanted:
        time.sleep(0.001)
    if moment == "training":
        time.sleep(rng.uniform(0.0, 0.2))
    while moment == "writing" and process.poll() is None:
        if any(folder.path.glob("**/.*.tmp")):
            return


def send(name: str, process: subprocess.Popen, rng: random.Random) -> None:
    for part in name.replace("two SIGINT", "SIGINT and SIGINT").split(" and "):
        process.send_signal(getattr(signal, part))
        time.sleep(rng.uniform(0.0, 0.3))


def survive(folder: RunFolder, kills: int, rng: random.Random) -> list[str]:
    """Stops a run `kills` times and lets it end; returns what went wrong."""
    problems = []
    for _ in range(kills):
        process, moment, name = (
            launch(folder.path.parents[2]),
            rng.choice(MOMENTS),
            rng.choice(SIGNALS),
        )
        wait_for(moment, process, folder, rng)
        send(name, process, rng)
        _, _, err = finish(process)
        if "Traceback" in err:
            problems.append(f"{name} during {moment}: a traceback: {err.strip().splitlines()[-1]}")
        try:
            if folder.exists:
                folder.record(), folder.curves()
        except UserError as error:
            problems.append(f"{name} during {moment}: unreadable: {error}")
    code, _, err = finish(launch(folder.path.parents[2]))
    if code:
        problems.append(f"it does not continue: {err.strip().splitlines()[-1]}")
    return problems


def content(folder: RunFolder) -> tuple:
    found = restore_checkpoint(folder, example())
    return (folder.path / "curves.csv").read_bytes(), found.update, bits(found.state)


def storm(tries: int, seed: int = 0, together: int = 2) -> Outcome:
    """Sends `tries` signals to small runs, several per run and `together` runs at a time."""
    with tempfile.TemporaryDirectory() as place:
        reference = content(runner.execute(run_of(), Path(place) / "reference", show=False)[0])

        def one(number: int, kills: int) -> list[str]:
            folder = RunFolder(run_of().folder(Path(place) / str(number)))
            problems = survive(folder, kills, random.Random(f"{seed} {number}"))
            if not problems and content(folder) != reference:
                problems = ["it ended with other bytes"]
            repeat = f"python -m tests.storm.kills --tries {tries} --seed {seed}, run {number}"
            return [f"{problem} ({repeat})" for problem in problems]

        parts = [5] * (tries // 5) + [tries % 5] * (tries % 5 > 0)
        with ThreadPoolExecutor(together) as pool:
            found = list(pool.map(one, range(len(parts)), parts))
    return Outcome("signals", tries, [problem for problems in found for problem in problems])


if __name__ == "__main__":
    print(storm(*parse_arguments(tries=100)))
