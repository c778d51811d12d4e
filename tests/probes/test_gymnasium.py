"""Learning in a Gymnasium environment that requires memory, with and without one."""

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
def test_only_methods_with_a_memory_recall_a_sign_shown_once(method, least, most, tmp_path):
    env = from_gymnasium(gym_probes.Recall, max_steps=4)
    options = {"rates": [1e-3], "seeds": 3, "frames": 80_000, "settings": SMALL}
    curves = splagger.train(env, method, out=tmp_path, show=False, **options)
    # The median over late evaluations: a greedy policy may fail in a single one.
    late = curves[curves.frames > 0.6 * curves.frames.max()]
    medians = late.groupby("seed")["return"].median()
    assert len(late) >= 18 and medians.between(least, most).all(), late
