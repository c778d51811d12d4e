"""Learning in an environment of Gymnasium's: what must be remembered is, and not without a memory."""

import pytest

import splagger
from splagger.bridges import from_gymnasium
from tests.bridges import gym_probes

SMALL = {
    "network.width_factor": 0.125,
    "network.state_embedding": 16,
    "network.hidden": (16,),
    "network.latent_embedding": 8,
    "ppo.steps": 32,
    "ppo.eval_tasks": 64,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "method, least, most", [("splagger", 0.9, 1), ("rnn", 0.9, 1), ("memoryless", -0.6, 0.6)]
)
def test_a_sign_seen_once_is_recalled_by_those_that_remember(method, least, most, tmp_path):
    env = from_gymnasium(gym_probes.Recall, max_steps=4)
    options = {"rates": [1e-3], "seeds": 3, "frames": 80_000, "settings": SMALL}
    curves = splagger.train(env, method, out=tmp_path, show=False, **options)
    # What was learned, not how one evaluation went: a greedy policy may fail between two updates.
    late = curves[curves.frames > 0.6 * curves.frames.max()]
    usual = late.groupby("seed")["return"].median()
    assert len(late) >= 18 and usual.between(least, most).all(), late
