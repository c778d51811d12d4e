"""Logs a sweep to Weights & Biases: one W&B run per learning rate and seed. Needs `pip install wandb`.

Without an account it works offline: `wandb sync wandb/offline-run-*` uploads the runs later.
"""

import os
import tempfile
from typing import Any

import wandb

import splagger


class WandbLogger:
    """Sends each row of the curves to the W&B run of its rate and seed; use it in a `with` block."""

    def __init__(self, project: str, group: str):
        self.project, self.group = project, group
        self.runs: dict[tuple[float, int], Any] = {}

    def __enter__(self):
        return self

    def __call__(self, row: dict[str, Any]) -> None:
        metrics = dict(row)
        rate, seed, frames = (metrics.pop(name) for name in ("rate", "seed", "frames"))
        if (rate, seed) not in self.runs:
            self.runs[rate, seed] = wandb.init(
                project=self.project,
                group=self.group,
                name=f"rate {rate:g}, seed {seed}",
                config={"rate": rate, "seed": seed},
                reinit="create_new",  # several runs are open at the same time
            )
        self.runs[rate, seed].log(metrics, step=frames, commit=True)

    def __exit__(self, *_):
        for run in self.runs.values():
            run.finish()


if __name__ == "__main__":
    os.environ.setdefault("WANDB_MODE", "offline")
    with (
        tempfile.TemporaryDirectory() as out,
        WandbLogger("splagger", "t-ls-small, splagger") as logger,
    ):
        splagger.train(
            "t-ls-small",
            "splagger",
            rates=[3e-3],
            seeds=2,
            frames=20_000,
            out=out,
            on_metrics=logger,
        )
