"""The examples for W&B and MLflow, in their offline modes; skipped where these are not installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ROWS = [
    {"update": 10 * i, "frames": 800 * i, "rate": rate, "seed": 0, "return": 4.0 * i}
    for i in (0, 1, 2)
    for rate in (3e-3, 1e-3)
]


def logger_of(name, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return runpy.run_path(str(EXAMPLES / f"{name.lower()}_logging.py"))[f"{name}Logger"]


@pytest.mark.filterwarnings("default")  # those of the libraries
def test_wandb_receives_every_row(monkeypatch, tmp_path):
    """Offline, W&B writes one folder per run; its summary has the last value of each metric."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with logger_of("Wandb", monkeypatch, tmp_path)("project", "group") as logger:
        for row in ROWS:
            logger(row)
        runs = list(logger.runs.values())
        assert [run.config["rate"] for run in runs] == [3e-3, 1e-3]
        assert [(run.summary["return"], run.step) for run in runs] == [
            (8.0, 1601)
        ] * 2  # the next step
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 2


@pytest.mark.filterwarnings("default")  # those of the libraries
def test_mlflow_receives_every_row(monkeypatch, tmp_path):
    pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with logger_of("Mlflow", monkeypatch, tmp_path)("experiment", uri) as logger:
        for row in ROWS:
            logger(row)
    runs = logger.client.search_runs([logger.experiment])
    assert sorted(run.data.params["rate"] for run in runs) == ["0.001", "0.003"]
    for run in runs:
        history = logger.client.get_metric_history(run.info.run_id, "return")
        assert [(m.step, m.value) for m in history] == [(0, 0.0), (800, 4.0), (1600, 8.0)]
        assert run.info.status == "FINISHED"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_example_runs_as_it_is(name, monkeypatch, tmp_path):
    pytest.importorskip(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}_logging.py"), run_name="__main__")
    assert list(tmp_path.iterdir())
