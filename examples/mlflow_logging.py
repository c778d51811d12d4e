"""Logs a sweep to MLflow: one MLflow run per learning rate and seed. Needs `pip install mlflow`.

`mlflow ui --backend-store-uri sqlite:///mlflow.db` shows them. MLFLOW_TRACKING_URI selects a server instead.
"""

import os
import tempfile
from typing import Any

from mlflow import MlflowClient

import splagger


class MlflowLogger:
    """Sends each row of the curves to the MLflow run of its rate and seed; use it in a `with` block."""

    def __init__(self, experiment: str, uri: str):
        self.client, self.runs = MlflowClient(uri), {}
        found = self.client.get_experiment_by_name(experiment)
        self.experiment = (
            found.experiment_id if found else self.client.create_experiment(experiment)
        )

    def __enter__(self):
        return self

    def __call__(self, row: dict[str, Any]) -> None:
        metrics = dict(row)
        rate, seed, frames = (metrics.pop(name) for name in ("rate", "seed", "frames"))
        if (rate, seed) not in self.runs:
            run = self.client.create_run(self.experiment, run_name=f"rate {rate:g}, seed {seed}")
            self.runs[rate, seed] = run.info.run_id
            for name in ("rate", "seed"):
                self.client.log_param(run.info.run_id, name, row[name])
        for name, value in metrics.items():
            self.client.log_metric(self.runs[rate, seed], name, value, step=frames)

    def __exit__(self, *_):
        for run in self.runs.values():
            self.client.set_terminated(run)


if __name__ == "__main__":
    uri = os.environ.get("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    with (
        tempfile.TemporaryDirectory() as out,
        MlflowLogger("t-ls-small, splagger", uri) as logger,
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
