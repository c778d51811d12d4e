"""A custom method is one row: an encoder, an aggregator and the fraction that skips it. Here, an LSTM and a mean."""

import tempfile

import splagger
from splagger.aggregators import Mean

method = splagger.Method("lstm-mean", encoder="lstm", aggregator=Mean(), skip=0.25)
splagger.METHODS[method.name] = method  # `train` and `load` now accept its name

with tempfile.TemporaryDirectory() as folder:
    curves = splagger.train(
        "t-ls-small", method.name, rates=[3e-3], seeds=1, frames=20_000, out=folder, show=False
    )
    agent = splagger.load(curves.attrs["folder"])
last = curves[curves.frames == curves.frames.max()]
print(
    f"{method.name}: return {last['return'].mean():.1f} of 16 after {last.frames.iloc[0]:,} frames"
)
print(f"its first action is {agent.act([1, 0, 0, 0, 0])}")
