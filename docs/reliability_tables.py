"""The tables of docs/reliability.md."""

from docs.table_parts import markdown, measured


def storm() -> str:
    """The last storm: tries, failures and ends of every part."""
    rows = []
    for part in measured("storm")["parts"]:
        ends = ", ".join(f"{count:,} {end}" for end, count in part["counts"].items() if count)
        rows.append((part["name"], f"{part['tries']:,}", f"{len(part['failures']):,}", ends))
    return markdown(("part", "tries", "failures", "ends"), rows)


def saving() -> str:
    """The cost of digests in a checkpoint of 15 full-size runs."""
    found = measured("saving-cpu")
    size = f"{found['bytes'] / 1e9:.2f} GB"
    rows = [
        (f"writing a checkpoint of {size}", found["saving"], found["without_digests"]),
        ("reading it", found["restoring"], found["without_verifying"]),
    ]
    text = [
        (name, f"{with_:.2f} s", f"{without:.2f} s", f"{with_ / without - 1:+.0%}")
        for name, with_, without in rows
    ]
    return markdown(("15 runs of full-size SplAgger", "with digests", "without", "cost"), text)
