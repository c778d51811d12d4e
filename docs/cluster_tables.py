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
