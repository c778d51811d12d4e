"""Styles: each method has the same label, color and dashes in every figure.

Colors are Okabe and Ito's, complemented by Paul Tol's muted ones. They are chosen so that color-blind readers can
distinguish the lines of a panel. Methods with dashed lines have no recurrent network; those with dashes and dots have
one that is linear in its state.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

SOLID, DASHED, DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))
DASHDOT = (0, (4, 1.2, 1, 1.2))


class Style(NamedTuple):
    """The label, color and dashes of a line."""

    label: str
    color: str
    dash: str | tuple = SOLID


STYLES = {
    "splagger": Style("SplAgger", "#0072B2"),
    "rnn": Style("RNN", "#D55E00"),
    "amrl": Style("AMRL", "#009E73"),
    "cnp": Style("CNP", "#E69F00", DASHED),
    "pearl": Style("PEARL", "#CC79A7", DASHED),
    "pearl-gru": Style("PEARL-GRU", "#CC79A7"),
    "pearl-vari": Style("PEARL-vari", "#882255", DASHED),
    "splagger-nosplit": Style("SplAgger-noSplit", "#882255"),
    "splagger-nornn": Style("SplAgger-noRNN", "#56B4E9", DASHED),
    "amrl-nornn": Style("AMRL-noRNN", "#117733", DASHED),
    "splagger-avg": Style("SplAgger-avg", "#C9A800"),
    "splagger-avgmax": Style("SplAgger-avgmax", "#44AA99"),
    "splagger-softmax": Style("SplAgger-softmax", "#CC6677"),
    "splagger-wsoftmax": Style("SplAgger-wsoftmax", "#000000"),
    "splagger-wavg": Style("SplAgger-wavg", "#332288"),
    "softmax-nornn": Style("softmax", "#CC6677", DASHED),
    "wsoftmax-nornn": Style("wsoftmax", "#000000", DASHED),
    "lstm": Style("LSTM", "#BBBBBB"),
    "lstm-invinit": Style("LSTM, invariant initialization", "#666666"),
    "transformer": Style("Transformer", "#666666", DASHED),
    "memoryless": Style("memoryless", "#888888", DOTTED),
    "mingru": Style("minGRU", "#D55E00", DASHDOT),
    "splagger-mingru": Style("SplAgger-minGRU", "#0072B2", DASHDOT),
    "amrl-mingru": Style("AMRL-minGRU", "#009E73", DASHDOT),
    "lru": Style("LRU", "#999933", DASHDOT),
    "splagger-lru": Style("SplAgger-LRU", "#332288", DASHDOT),
    "amrl-lru": Style("AMRL-LRU", "#44AA99", DASHDOT),
    "mlstm": Style("mLSTM", "#CC6677", DASHDOT),
    "splagger-mlstm": Style("SplAgger-mLSTM", "#882255", DASHDOT),
}
SPARE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#882255")
SPARE += ("#44AA99", "#999933", "#CC6677", "#117733", "#000000", "#888888")


def styles_of(methods: Sequence[str]) -> list[Style]:
    """Returns the styles of several methods in one figure; those that are not in the paper get different colors.

    >>> [style.color for style in styles_of(["mine", "splagger", "other"])]
    ['#D55E00', '#0072B2', '#009E73']
    """
    styles = [style_of(method) for method in methods]
    own = {style.color for method, style in zip(methods, styles, strict=True) if method in STYLES}
    spare = itertools.cycle([color for color in SPARE if color not in own] or SPARE)
    known = [method in STYLES for method in methods]
    return [s if k else s._replace(color=next(spare)) for s, k in zip(styles, known, strict=True)]


def style_of(method: str) -> Style:
    """Returns the style of a method; methods that are not in the paper are dotted.

    >>> style_of("rnn").label, style_of("custom").label
    ('RNN', 'custom')
    """
    return STYLES.get(method) or Style(method, SPARE[0], DOTTED)
