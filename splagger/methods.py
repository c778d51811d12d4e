"""The paper's methods and newer ones as rows of a table. A new method is one more row."""

import functools as ft
from dataclasses import dataclass, replace

from splagger.aggregators import (
    AbstractAggregator,
    GaussianProduct,
    Halves,
    Max,
    Mean,
    Softmax,
    StraightThrough,
    WeightedMean,
    WeightedSoftmax,
)
from splagger.errors import SettingError, kind_of
from splagger.memory import ENCODERS
from splagger.policy import AbstractLatent, Belief, Deterministic, Gaussian
from splagger.ranges import Factor, Size, check_fields
from splagger.tables import lookup


@dataclass(frozen=True)
class Method:
    """A memory and how it is trained. Equal rows are equal models.

    - `encoder`: constant, pointwise, gru, lstm, lstm-invariant, transformer, mingru, lru or mlstm.
    - `width`: the number of neurons.

    `skip` is the fraction of the encoder's neurons that bypass the aggregator: 0.5 is split aggregation, 0
    aggregates all neurons, and 1 none, which is a plain recurrent network.

    >>> METHODS["splagger"].skip
    0.5
    >>> METHODS["cnp"] is METHODS["splagger-nornn-avg"]
    True
    """

    name: str
    encoder: str = "gru"
    width: Size = 256
    aggregator: AbstractAggregator = Max()
    skip: Factor = 0.5  # the fraction of neurons that bypass the aggregator
    bottleneck: bool = False  # project to the latent's size before the aggregator, not after
    latent: AbstractLatent = Deterministic()
    reconstruct: bool = False  # train the memory to reconstruct transitions; with a Belief, only so

    def __post_init__(self):
        if not isinstance(self.encoder, str):
            raise SettingError(
                f"method {self.name!r}: encoder must be a name, got {kind_of(self.encoder)}; a name of your own stands for a "
                "function: splagger.memory.ENCODERS['mine'] = lambda key, inputs, width, context: …"
            )
        lookup(ENCODERS, self.encoder, "encoder")
        check_fields(self, f"method {self.name!r}: ")
        _check_name(self.name)
        kinds = {"aggregator": AbstractAggregator, "latent": AbstractLatent}
        for field, kind in kinds.items():
            value, module = getattr(self, field), kind.__module__.rpartition(".")[0]
            if not isinstance(value, kind):
                raise SettingError(
                    f"method {self.name!r}: {field} must be an instance of {module}.{kind.__name__}, got {kind_of(value)}"
                )


def _check_name(name: str) -> None:
    """Refuses names that cannot be the name of a folder of runs, or that read as an import path."""
    reserved = name in (".", "..", "checkpoints", "tensorboard")
    if reserved or not 1 <= len(name) <= 100 or not name.isprintable() or set(name) & set("/\\:"):
        raise SettingError(
            f"method {name!r:.120}: its name becomes the name of a folder; it must have 1 to 100 printable characters "
            "without / \\ and :, and must not be ., .., checkpoints or tensorboard"
        )


SPLAGGER = Method("splagger")
RNN = replace(SPLAGGER, name="rnn", skip=1.0)
PEARL = Method(
    "pearl",
    encoder="pointwise",
    aggregator=GaussianProduct(),
    skip=0.0,
    bottleneck=True,
    latent=Gaussian(),
)
_with = ft.partial(replace, SPLAGGER)
_no_rnn = ft.partial(replace, SPLAGGER, encoder="pointwise", skip=0.0)

ROWS = (
    SPLAGGER,
    RNN,
    _with(name="amrl", aggregator=StraightThrough(Max())),
    _no_rnn(name="cnp", aggregator=Mean()),
    PEARL,
    replace(PEARL, name="pearl-gru", encoder="gru"),
    replace(PEARL, name="pearl-vari", latent=Belief(), reconstruct=True),
    _with(name="splagger-nosplit", skip=0.0),
    _no_rnn(name="splagger-nornn"),
    _no_rnn(name="amrl-nornn", aggregator=StraightThrough(Max())),
    _with(name="splagger-avg", aggregator=Mean()),
    _with(name="splagger-avgmax", aggregator=Halves(Mean(), Max())),
    _with(name="splagger-softmax", aggregator=Softmax(0.1)),
    _with(name="splagger-wsoftmax", aggregator=WeightedSoftmax(0.1), width=512),
    _with(name="splagger-wavg", aggregator=WeightedMean(), width=512),
    _no_rnn(name="softmax-nornn", aggregator=Softmax(0.1)),
    _no_rnn(name="wsoftmax-nornn", aggregator=WeightedSoftmax(0.1), width=512),
    replace(RNN, name="memoryless", encoder="constant"),
    replace(RNN, name="lstm", encoder="lstm"),
    replace(RNN, name="lstm-invinit", encoder="lstm-invariant"),
    replace(RNN, name="transformer", encoder="transformer"),
    # Not in the paper: encoders without a sequential computation, alone and split.
    replace(RNN, name="mingru", encoder="mingru"),
    _with(name="splagger-mingru", encoder="mingru"),
    _with(name="amrl-mingru", encoder="mingru", aggregator=StraightThrough(Max())),
    replace(RNN, name="lru", encoder="lru"),
    _with(name="splagger-lru", encoder="lru"),
    _with(name="amrl-lru", encoder="lru", aggregator=StraightThrough(Max())),
    replace(RNN, name="mlstm", encoder="mlstm"),
    _with(name="splagger-mlstm", encoder="mlstm"),
)

# The paper's other names for the same models, which are trained only once.
ALIASES = {"splagger-nornn-avg": "cnp", "max": "splagger-nornn", "max-st": "amrl-nornn"}

METHODS: dict[str, Method] = {row.name: row for row in ROWS}
METHODS |= {alias: METHODS[name] for alias, name in ALIASES.items()}
