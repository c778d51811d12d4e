"""What recorded runs cost: agents, frames, and hours by kind of device."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from splagger.runs.record import RunRecord
from splagger.stats.recorded import RecordedRun
from splagger.tables import count

DEVICES = re.compile(r"(\d{1,4}) × ")  # provenance names devices as "2 × NVIDIA H200"
KINDS = {"gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU", "cpu": "CPU"}


class Effort(NamedTuple):
    """The cost of runs."""

    runs: int
    agents: int
    frames: int  # of all agents
    hours: dict[str, float]  # kind of device → hours of training, times the number of devices

    def words(self) -> str:
        """Returns one line.

        >>> Effort(2, 30, 45_000_000, {"GPU": 0.75, "CPU": 2.0}).words()
        '2 runs with 30 agents, 45 million frames, 0.8 GPU hours, 2.0 CPU hours'
        """
        large = self.frames >= 1e9
        frames = f"{self.frames / 1e9:.1f} billion" if large else f"{self.frames / 1e6:.3g} million"
        hours = [f"{hours:.1f} {kind} hours" for kind, hours in self.hours.items()]
        agents = f"{count(self.runs, 'run')} with {count(self.agents, 'agent')}"
        return ", ".join([agents, f"{frames} frames", *hours])


def effort(runs: Sequence[RecordedRun]) -> Effort:
    """Returns the cost of `runs`. CPUs count as one device each; runs of unknown devices add no hours."""
    agents = [sum(len(members.returns) for members in run.members.values()) for run in runs]
    frames = sum(n * run.record.frames for n, run in zip(agents, runs, strict=True))
    hours: Counter[str] = Counter()
    for run in runs:
        if kind := KINDS.get(str(run.record.provenance.get("platform")).lower()):
            hours[kind] += _devices(run.record) * run.record.seconds / 3600
    return Effort(len(runs), sum(agents), frames, dict(sorted(hours.items(), reverse=True)))


def _devices(record: RunRecord) -> int:
    found = DEVICES.match(str(record.provenance.get("device", "")))
    return int(found[1]) if found else 1
