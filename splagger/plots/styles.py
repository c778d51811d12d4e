"""How a method looks in every figure: one label, one color, one kind of line.

Colors are Okabe and Ito's and, where those do not suffice, Paul Tol's muted ones, chosen so that the lines of a
panel stay apart for color-blind readers too. A dashed line has no recurrent network.
"""

from typing import NamedTuple

SOLID, DASHED, DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))


class Style(NamedTuple):
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
}
SPARE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#882255")
SPARE += ("#44AA99", "#999933", "#CC6677", "#117733", "#000000", "#888888")


def style_of(method: str) -> Style:
    """The method's style; a method the paper does not know is dotted.

    >>> style_of("rnn").label, style_of("mine").label
    ('RNN', 'mine')
    """
    return STYLES.get(method) or Style(method, SPARE[0], DOTTED)
