"""The tables of docs/cluster.md."""

from docs.table_parts import markdown, measured


def cluster_storm() -> str:
    """The last storm on a Ray cluster: how often each event happened, and what was lost."""
    found = measured("cluster-storm")
    rows = [(name, f"{count:,}") for name, count in found["events"].items()]
    total, curves = sum(found["events"].values()), found["rounds"] * found["experiments"]
    rows += [
        ("**all events**", f"**{total:,}**"),
        ("experiments that finished with the same bytes", f"{found['identical']:,} of {curves:,}"),
    ]
    return markdown(("event", "how often"), rows)


def cluster_overhead() -> str:
    """Seconds per experiment in one process, and on a Ray cluster."""
    found = measured("cluster-cpu")
    rows = [
        (name, f"{found[key]['processor']:.1f} s", f"{found[key]['elapsed']:.1f} s")
        for name, key in (("`--on local`", "local"), ("`--on ray`", "ray"))
    ]
    head = (f"one experiment of {found['updates']} updates", "processor time", "elapsed time")
    return markdown(head, rows)


def cluster_cost() -> str:
    """Hours for the whole paper, by number of GPUs."""
    found = measured("cluster-cost")
    hours = {
        (row["part"], row["gpus"], row["programs"]): row["seconds"] / 3600 for row in found["rows"]
    }
    experiments = {name: sum(numbers) for name, numbers in found["jobs"].items()}
    parts = {
        "without robots": f"without the robots, {experiments['without robots']} experiments",
        "all": f"with the robots, {experiments['all']} experiments",
        "divided": f"with the robots, each of their experiments on {found['divided_by']} GPUs",
    }
    gpus = sorted({key[1] for key in hours})
    rows = [
        (title, f"{n}", *(f"{hours[part, number, n]:.1f} h" for number in gpus))
        for part, title in parts.items()
        for n in ((1,) if part == "divided" else (1, 3))
    ]
    titles = [f"{number} GPU{'s' * (number > 1)}" for number in gpus]
    return markdown(("the paper", "programs per GPU", *titles), rows)
