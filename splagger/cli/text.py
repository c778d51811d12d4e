"""What commands print, and texts of the command line as values."""


def number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} takes numbers or 'paper', got {text!r}") from None


def assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    return name, value


def assignments(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [assignment(text) for text in texts]
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"--set gives {', '.join(twice)} twice")
    return dict(pairs)


def table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as their widest entry; plain text, so that it can be piped."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows] if any(head) else rows:
        print(
            "  "
            + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def summary(folders: list) -> None:
    """One line a run folder: the best rate by mean return over training, and where its agents ended."""
    from splagger.experiments.summary import summarize

    rows = [summarize(folder) for folder in folders]
    table(
        "Results",
        ("environment", "method", "best rate", "mean return", "final return", "frames/s", "folder"),
        rows,
    )
