"""The tables of docs/beyond.md, made from recorded runs and analyses."""

import numpy as np

from docs.table_parts import ROOT, evidence, markdown
from splagger.plots.styles import style_of
from splagger.report.tables import interval
from splagger.runs.analyses import read_values
from splagger.stats.estimates import at_the_end, estimate, interquartile_mean, over_training
from splagger.stats.evidence import Series

ALONE = ("rnn", "mingru", "lru", "mlstm")
SPLIT = ("splagger", "splagger-mingru", "splagger-lru", "splagger-mlstm")
ENDLESS = ("splagger", "splagger-mingru", "rnn", "mingru", "memoryless")


def beyond_encoders() -> str:
    """Returns of encoders alone and split on T-LS, on fresh seeds."""
    return _returns("t-ls", (*ALONE, *SPLIT))


def beyond_endless() -> str:
    """Returns on the Endless T-Maze."""
    return _returns("t-endless", ENDLESS)


def _returns(env: str, methods: tuple[str, ...]) -> str:
    rows = []
    for method in methods:
        chosen = evidence().unbiased(Series(env, method))
        assert chosen is not None
        numbers = [over_training(chosen.curves), at_the_end(chosen.curves)]
        texts = [interval(estimate(interquartile_mean, n), ".2f") for n in numbers]
        seeds = f"{len(chosen.curves)} ({chosen.source})"
        rows.append((style_of(method).label, *texts, f"{chosen.rate:g}", seeds))
    return markdown(("memory", "return over training", "at the end", "rate", "seeds"), rows)


def beyond_gradients() -> str:
    """The norm of the gradient with respect to the first input, by the number of later inputs."""
    table = read_values(ROOT / "results" / "analysis-beyond" / "gradient-first" / "initialization")
    steps = (0, 20, 50, 99)
    rows = []
    for method in dict.fromkeys(table["method"]):
        part = table[table["method"] == method]
        means = [part[part["step"] == step]["value"].mean() for step in steps]
        rows.append((style_of(method).label, *(_small(mean) for mean in means)))
    return markdown(("untrained memory", *(f"{step} later inputs" for step in steps)), rows)


def _small(number: float) -> str:
    return "0" if number == 0 else f"{number:.2g}" if number >= 1e-3 else f"10{_power(number)}"


def _power(number: float) -> str:
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"{round(np.log10(number))}".translate(digits)
