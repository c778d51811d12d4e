"""Images, text and actions of several numbers in Gymnasium environments, from the space to the agent file."""

import json

import jax
import jax.random as jr
import numpy as np
import pytest
from gymnasium import spaces

from splagger.agents.interface import SavedInterface, interface_of
from splagger.bridges import from_gymnasium, trial
from splagger.bridges.gym.checked_env import CheckedEnv
from splagger.bridges.gym.creation import Package, package_of, registered
from splagger.bridges.gym.gym_env import layout
from splagger.bridges.gym.space_data import action_space, flatten, space_data, to_action
from splagger.errors import EnvError
from splagger.images import Image
from splagger.runs.run import Run
from splagger.spaces import MultiDiscrete
from splagger.tables import duration_in_words
from splagger.training.announcements import announce
from tests.bridges import foreign_envs

GALLERY = Image(6, 7, 3)


def env(kind="Gallery", **options):
    return from_gymnasium(getattr(foreign_envs, kind), **({"max_steps": 1} | options))


def test_images_come_first_and_text_is_left_out():
    found = env(episodes=2)
    assert found.obs_size == 6 * 7 * 3 + 3 + 1 and found.images == (GALLERY,)
    obs, _ = foreign_envs.Gallery().reset(seed=3)
    flat = found.flatten(obs, done=True)
    np.testing.assert_array_equal(flat[:126].reshape(6, 7, 3), obs["picture"])
    assert flat[126:].tolist() == [0, 1, 0, 1] and flat.dtype == np.float32


def test_the_note_names_the_text_and_says_what_to_do():
    (note,) = env().notes
    assert "does not see text (title)" in note and "wrap the environment" in note
    assert env("Stack").notes == ()


def test_text_alone_is_flattened_into_its_characters_as_by_gymnasium():
    assert env("OnlyText").obs_size == 20


def test_frames_one_after_another_are_channels():
    assert env("Stack").images == (Image(8, 9, 2, channels_first=True),)


IMAGES = {
    (84, 84, 4): Image(84, 84, 4),
    (4, 84, 84): Image(84, 84, 4, channels_first=True),
    (84, 84): Image(84, 84, 1),
    (7, 7, 20): Image(7, 7, 20),
    (7, 7, 3): Image(7, 7, 3),
}


@pytest.mark.parametrize("shape", IMAGES)
def test_boxes_of_bytes_are_images(shape):
    from splagger.bridges.gym.space_data import images_of

    data = space_data(spaces.Box(0, 255, shape, np.uint8))
    assert data is not None and images_of(data) == (IMAGES[shape],)


@pytest.mark.parametrize(
    "box", [spaces.Box(0, 255, (128,), np.uint8), spaces.Box(0, 1, (84, 84, 3), np.float32)]
)
def test_other_boxes_are_not_images(box):
    assert "image" not in (space_data(box) or {})


ACTIONS = [
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, -1], [5, 0]]),
    spaces.MultiBinary(3),
    spaces.MultiBinary((2, 2)),
]


@pytest.mark.parametrize("space", ACTIONS, ids=str)
def test_every_action_of_the_agent_is_one_of_the_environment(space):
    data = json.loads(json.dumps(space_data(space)))
    ours = action_space(data)
    assert isinstance(ours, MultiDiscrete)
    seen = set()
    for action in np.ndindex(*ours.sizes):
        converted = to_action(data, np.array(action))
        assert space.contains(converted)
        seen.add(converted.tobytes())
    assert len(seen) == np.prod(ours.sizes)


@pytest.mark.parametrize("kind", ["Gallery", "Stack"])
def test_the_batch_takes_actions_of_several_numbers(kind):
    found = env(kind)
    state = jax.vmap(found.reset)(jr.split(jr.key(0), 2))
    actions = np.ones((2, len(found.space.sizes)), np.int32)
    state, step = jax.vmap(found.step)(jr.split(jr.key(1), 2), state, actions)
    assert step.task_done.all() and state.obs.shape == (2, found.obs_size)


WRONG = {
    "FailsAtOnce": r"FailsAtOnce: reset\(\) raised OSError: the assets are missing \(.*\) at step 0",
    "FourValues": r"FourValues: step\(\) must return \(observation, reward, .* at step 1 of episode 1",
    "WrongPicture": r"WrongPicture: observation does not fit its space \(.*shape is \(6, 7\)",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_trial_finds_what_is_wrong_before_anything_is_compiled(kind):
    with pytest.raises(EnvError, match=WRONG[kind]) as raised:
        Run.create(env(kind), "splagger")
    assert "\n" not in str(raised.value)


def test_a_trial_measures_a_step():
    assert 0 < trial(env()) < 1


def test_a_limit_of_the_environment_itself_is_used():
    assert from_gymnasium(foreign_envs.LimitsItself).horizon == 12
    assert from_gymnasium(foreign_envs.LimitsItself, max_steps=5).horizon == 5


def test_ids_of_known_packages_are_imported_from_them():
    assert registered("MiniGrid-MemoryS7-v0").endswith("MiniGrid-MemoryS7-v0")
    assert registered("NoSuch-v0") == "NoSuch-v0" == registered("NoSuch-v0")
    assert registered("my_package:MiniGrid-Own-v0") == "my_package:MiniGrid-Own-v0"
    assert package_of("minigrid:MiniGrid-MemoryS7-v0") == Package("minigrid", codes=11)
    assert package_of("CartPole-v1") is None


def test_an_agent_file_remembers_images_and_sizes_of_actions():
    found = interface_of(env())
    again = SavedInterface.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found and again.images == (GALLERY,) and again.space == MultiDiscrete((2, 3))
    obs, _ = foreign_envs.Gallery().reset(seed=3)
    np.testing.assert_array_equal(again.flatten(obs), env().flatten(obs))
    assert foreign_envs.Gallery().action_space.contains(again.action(np.array([1, 2])))


LIES = [
    {"images": 3},
    {"images": [[6, 7, 3]]},
    {"images": [[6, 7, 3, -1.0, False, 0]]},
    {"images": [[6000, 7, 3, 255.0, False, 0]]},
    {"images": [[True, 7, 3, 255.0, False, 0]]},
    {"images": [[6, 7, 3, 255.0, False, 10**6]]},
    {"space": {"kind": "MultiDiscrete", "size": 5, "sizes": []}},
    {"space": {"kind": "MultiDiscrete", "size": 5, "sizes": [2, "3"]}},
    {"space": {"kind": "MultiDiscrete", "size": 5, "sizes": [3, 2]}},
    {"actions": {"kind": "MultiBinary", "shape": [10**9], "dtype": "int8"}},
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_damaged_interfaces_are_refused(lie):
    with pytest.raises(ValueError, match=r"its (images|action space|actions)"):
        SavedInterface.from_json(interface_of(env()).to_json() | lie)


def test_images_change_the_digest_and_other_environments_keep_theirs():
    assert "images" in env().env.describe()
    plain = from_gymnasium("CartPole-v1").env.describe()
    assert set(plain) == {"kind", "name", "task", "max_steps"}


def test_the_duration_is_printed_before_training(capsys):
    name = "gym:tests.bridges.foreign_envs:LimitsItself"
    announce(Run.create(name, "splagger", frames=4096, rates=[1e-3], seeds=1))
    printed = capsys.readouterr().err
    assert "does not see text (title)" in printed and f"{name}: full size: about " in printed
    announce(Run.create(name, "splagger", frames=10**8))
    assert "days here; --small: about " in capsys.readouterr().err
    announce(Run.create("t-ls-small", "splagger"))
    assert not capsys.readouterr().err


def test_durations_in_words():
    assert [duration_in_words(s) for s in (0, 89, 91, 5399, 5401)] == [
        "1 s",
        "89 s",
        "2 min",
        "90 min",
        "2 h",
    ]


def test_the_flattening_of_other_spaces_is_gymnasiums():
    """Environments without images and text keep the order of their numbers."""
    space = spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Box(-1, 1, (2, 2))})
    obs = space.sample()
    np.testing.assert_array_equal(flatten(space_data(space) or {}, obs), spaces.flatten(space, obs))
    assert layout(from_gymnasium("CartPole-v1").env).texts == ()


def test_parts_of_a_tuple_may_differ_in_shape():
    obs = CheckedEnv(env("Ragged").env, episodes=1).reset(seed=3)
    assert obs.tolist() == [0.5, 0.5, 0.5, 0, 0, 1, 1, 0, 0.25, -0.25]
