"""Trains two methods on a short T-Maze. All seeds of a method train in one compiled program."""

import tempfile

import splagger

with tempfile.TemporaryDirectory() as folder:
    for method in ("splagger", "rnn"):
        curves = splagger.train(
            "t-ls-small", method, rates=[1e-3], seeds=2, frames=50_000, out=folder, show=False
        )
        last = curves[curves.frames == curves.frames.max()]
        print(
            f"{method}: return {last['return'].mean():.1f} of 16 after {last.frames.iloc[0]:,} frames"
        )
