"""A run in one line."""

from collections import defaultdict

import numpy as np

from splagger.experiments.records import RunFolder


def best_rate(rows: list[dict]) -> float:
    """The rate with the highest return, averaged over all evaluations and seeds (the paper's choice)."""
    by_rate = defaultdict(list)
    for row in rows:
        by_rate[row["rate"]].append(row["return"])
    return max(by_rate, key=lambda rate: np.mean(by_rate[rate]))


def summarize(folder: RunFolder) -> tuple[str, ...]:
    """(environment, method, best rate, mean return of training, final return, speed, folder)."""
    record, rows = folder.read(), folder.read_curves()
    arguments = record["arguments"]
    rate = best_rate(rows)
    mine = [row for row in rows if row["rate"] == rate]
    final = [row["return"] for row in mine if row["update"] == max(r["update"] for r in mine)]
    return (
        arguments["env"],
        arguments["method"],
        f"{rate:g}",
        f"{np.mean([row['return'] for row in mine]):.2f}",
        f"{np.mean(final):.2f} ({len(final)} seeds)",
        f"{record.get('frames_per_second') or 0:,.0f}",
        str(folder.path),
    )
