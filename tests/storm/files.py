"""Damaged files: each is read as it was written, replaced by an intact copy with a warning, or refused in one line.

python -m tests.storm.files --tries 1000 --seed 0
"""

import contextlib
import io
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import splagger
from splagger.agents.exports import save_agent
from splagger.errors import UserError
from splagger.runs.analyses import Value, read_description, read_values, write_analysis
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.folder import RunFolder
from splagger.training import runner
from tests.storm.outcome import Outcome, parse_arguments
from tests.tiny import bits, example, tiny


class Kind(NamedTuple):
    """A kind of file: where it is, and a function that returns everything that is read from it."""

    name: str
    pattern: str
    read: Callable[[Path], Any]


def read_run(folder: Path) -> Any:
    run = RunFolder(folder)
    record = run.record()
    return record.update, record.plan, record.stopped, run.curves().to_csv()


def read_checkpoint(folder: Path) -> Any:
    found = restore_checkpoint(RunFolder(folder), example())
    return found.update, bits(found.state), found.curves


def read_agent(folder: Path) -> Any:
    player = splagger.load(folder / "agent.npz")
    return bits((player.agent, player.normalizers)), player.point


def read_analysis(folder: Path) -> Any:
    path = folder / "analysis"
    return read_values(path).to_csv(), read_description(path)


KINDS = (
    Kind("checkpoint", "checkpoints/*.safetensors", read_checkpoint),
    Kind("curves", "curves.csv", read_run),
    Kind("record", "run.json", read_run),
    Kind("agent", "agent.npz", read_agent),
    Kind("analysis", "analysis/*", read_analysis),
)


def flip_bit(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def change_byte(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def remove_range(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randint(1, 4096)]


def insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.randbytes(rng.randint(1, 64))


def zero_block(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    length = min(rng.randint(1, 4096), len(data) - start)
    data[start : start + length] = bytes(length)


def empty(data: bytearray, rng: random.Random) -> None:
    del data[:]


def garbage(data: bytearray, rng: random.Random) -> None:
    data[:] = rng.randbytes(len(data))


def swap_lines(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    data[:] = b"\n".join(lines)


def remove_line(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    del lines[rng.randrange(len(lines))]
    data[:] = b"\n".join(lines)


DAMAGES = (flip_bit, change_byte, truncate, remove_range, insert, zero_block, empty, garbage)
DAMAGES += (flip_bit, flip_bit, swap_lines, remove_line)


def make(folder: Path) -> Path:
    """Writes one file of each kind; returns the folder of the run."""
    run, _ = runner.execute(tiny(), folder, save_every=0.0, show=False)
    save_agent(splagger.load(run.path), run.path / "agent.npz")
    values = [Value("rnn", seed, step, 0, 0.5 * step) for seed in (0, 1) for step in range(40)]
    write_analysis(run.path / "analysis", values, {"analysis": "memory", "seeds": [0, 1]})
    return run.path


UNHARMED = "read as written, or from an intact copy"
OLDER = "older checkpoint, with a warning"
REFUSED = "refused in one line"
ENDS = (UNHARMED, OLDER, REFUSED)


class Truth:
    """What the intact files say. The checkpoint before the newest may be used if a warning says so."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.read = {kind.name: kind.read(folder) for kind in KINDS}
        older = shutil.copytree(folder, folder.parent / "older")
        newest = RunFolder(older).saved_updates()[-1]
        (older / f"checkpoints/{newest}.safetensors").unlink()
        self.older = read_checkpoint(older)

    def end(self, kind: Kind, folder: Path) -> str:
        """Reads a damaged file; returns one of `ENDS`, or what is wrong with the result."""
        warnings = io.StringIO()
        try:
            with contextlib.redirect_stderr(warnings):
                found = kind.read(folder)
        except UserError as error:
            return REFUSED if "\n" not in str(error) else f"an error of several lines: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if found == self.read[kind.name]:
            return UNHARMED
        if kind.name == "checkpoint" and found == self.older:
            return OLDER if "using the one of update" in warnings.getvalue() else "no warning"
        return "read silently as something else"


def storm(tries: int, seed: int = 0) -> Outcome:
    """Damages `tries` files in random ways and reads each."""
    failures, ends = [], Counter()
    with tempfile.TemporaryDirectory() as place:
        truth = Truth(make(Path(place) / "runs"))
        for number in range(tries):
            rng = random.Random(f"{seed} {number}")
            copy = Path(shutil.copytree(truth.folder, Path(place) / "copy"))
            kind = rng.choice(KINDS)
            path = rng.choice(sorted(copy.glob(kind.pattern)))
            damage, data = rng.choice(DAMAGES), bytearray(path.read_bytes())
            damage(data, rng)
            path.write_bytes(data)
            end = truth.end(kind, copy)
            ends[end] += end in ENDS
            if end not in ENDS:
                repeat = f"python -m tests.storm.files --tries {number + 1} --seed {seed}"
                failures.append(f"{kind.name}, {damage.__name__}: {end} ({repeat})")
            shutil.rmtree(copy)
    return Outcome("damaged files", tries, failures, {end: ends[end] for end in ENDS})


if __name__ == "__main__":
    print(storm(*parse_arguments(tries=1000)))
