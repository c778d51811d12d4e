"""Learning in an environment of Gymnasium's: what must be remembered is, and not without a memory."""

import pytest

import splagger
from splagger.envs import from_gymnasium
from tests.envs import gym_probes

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
    options = {"rates": [3e-3], "seeds": 3, "frames": 40_000, "settings": SMALL}
    curves = splagger.train(env, method, out=tmp_path, show=False, **options)
    last = curves[curves.frames == curves.frames.max()]["return"]
    assert last.between(least, most).all(), last
