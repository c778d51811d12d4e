"""The zoo: every agent has a recipe, a card that is true, and a name that works wherever an agent is accepted."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import splagger
from splagger.agents import making
from splagger.agents.loading import load_members
from splagger.cli import main
from splagger.errors import RunError, SettingError
from splagger.files.agent_file import open_agent
from splagger.files.storage import sha256
from splagger.portable import load as load_numpy
from splagger.registry import COMPACT, ENVS
from splagger.runs.folder import RunFolder
from splagger.runs.run import Run
from splagger.zoo import RECIPES, Recipe, cards, locate, recipes
from splagger.zoo.cards import FOLDER, path_of
from tests.tiny import BATCH, SETTINGS, UPDATES

ROOT = Path(__file__).parents[2]
OURS = [name for name, recipe in RECIPES.items() if recipe.env in ENVS]
each = pytest.mark.parametrize("name", cards())


def test_every_agent_has_a_recipe_and_every_recipe_an_agent():
    files = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.npz")}
    assert set(cards()) == set(RECIPES) == files


def test_agents_are_small():
    sizes = [card.bytes for card in cards().values()]
    assert max(sizes) <= 1_000_000 and sum(sizes) <= 12_000_000


@each
def test_a_card_belongs_to_its_file(name):
    card, content = cards()[name], path_of(name).read_bytes()
    assert (card.bytes, card.sha256) == (len(content), sha256(content))
    with open_agent(path_of(name)) as file:
        training = file.description["training"]
        assert file.arrays().keys() == file.headers.keys()
    about = training["provenance"]
    assert (card.frames, card.device) == (training["frames"], about["device"])
    assert card.command == about["command"] and about["versions"]["jax"]


@pytest.mark.parametrize("name", OURS)
def test_a_recipe_describes_the_run_of_its_agent(name):
    with open_agent(path_of(name)) as file:
        assert file.description["run"] == json.loads(json.dumps(_described(RECIPES[name])))


def _described(recipe):
    return making.run_of(recipe).describe()


@each
def test_rounding_to_half_precision_does_not_change_returns(name):
    card = cards()[name]
    assert abs(card.mean - card.unrounded) <= max(card.margin, 1e-9)


def test_the_compact_network_is_that_of_small():
    run = Run.create("t-ls", "splagger", overrides=recipes.COMPACT)
    assert run.row.network == COMPACT


def check_card(name, tasks):
    """An agent earns what its card says: the intervals of both returns overlap."""
    card = cards()[name]
    score = splagger.evaluate(splagger.load(name, trust=True), tasks, seed=7)[1]
    assert abs(score.mean - card.mean) <= 2 * (score.margin + card.margin) + 1e-3


@pytest.mark.parametrize("name", ["t-ls/splagger", "planning/splagger"])
def test_two_agents_earn_what_their_cards_say(name):
    check_card(name, 200)


@pytest.mark.slow
@each
def test_all_agents_earn_what_their_cards_say(name):
    if "popgym" in RECIPES.get(name, RECIPES["t-ls/splagger"]).env:
        pytest.importorskip("popgym")
    check_card(name, 1000)


def test_agents_act_without_jax_as_they_do_with_it():
    player, numpy_player = splagger.load("t-ls/splagger"), load_numpy("t-ls/splagger")
    obs = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(12, 5)).astype(np.float32)
    for before, after in itertools.pairwise(obs):
        action = player.act(before)
        assert numpy_player.act(before) == action
        player.observe(action, 0.0, after)
        numpy_player.observe(action, 0.0, after)
    np.testing.assert_allclose(numpy_player.memory.output, player.memory.output, 1e-4, 1e-4)


def test_a_file_or_folder_comes_before_the_zoo(tmp_path, monkeypatch):
    assert locate("t-ls/splagger") == path_of("t-ls/splagger")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t-ls" / "splagger").mkdir(parents=True)
    assert locate("t-ls/splagger") == Path("t-ls/splagger")
    with pytest.raises(RunError, match="is not a run folder"):
        splagger.load("t-ls/splagger")


UNKNOWN = {
    "t-ls/splager": "did you mean t-ls/splagger",
    "t-ls": "did you mean t-ls/rnn or t-ls/splagger",
    "planing/splagger": "did you mean planning/splagger",
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("load", [splagger.load, load_numpy])
def test_unknown_names_get_suggestions(name, load):
    with pytest.raises(RunError, match=f"no such agent in the zoo; {UNKNOWN[name]}"):
        load(name)


def test_other_paths_are_returned_as_they_are():
    assert locate("nowhere") == Path("nowhere")


def test_an_agent_is_made_by_its_recipe(trained, tmp_path, monkeypatch, capsys):
    tiny = Recipe("t-ls-small", "splagger", UPDATES * BATCH, (1e-3, 3e-4), 2, {}, SETTINGS)
    asked = []
    execute = lambda run, *_, **__: asked.append(run) or (RunFolder(trained), True)  # noqa: E731
    monkeypatch.setitem(RECIPES, "tiny/splagger", tiny)
    monkeypatch.setattr(making, "execute", execute)
    monkeypatch.setattr(making, "CARD_TASKS", 64)
    monkeypatch.setattr(making, "TRIAL_TASKS", 64)
    main(["zoo", "tiny/splagger", "--make", "--out", str(tmp_path)])
    assert asked[0].digest == trained.name
    data = json.loads((tmp_path / "tiny" / "splagger.json").read_text())
    assert (data["chosen_from"], data["frames"], data["tasks"]) == (4, UPDATES * BATCH, 64)
    assert data["sha256"] in capsys.readouterr().out
    scores = [splagger.evaluate(p, 64, making.TRIAL_SEED)[1] for p in load_members(trained)]
    chosen = splagger.load(tmp_path / "tiny" / "splagger.npz").point
    best = max(range(4), key=lambda i: scores[i].mean)
    assert chosen == asked[0].points[best]


def test_the_table_has_every_agent(capsys):
    main(["zoo"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in cards())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--make"], "--make needs the name of an agent"),
        (["t-ls/splager"], "no agent in the zoo 't-ls/splager'; did you mean t-ls/splagger"),
        (["t-ls/splager", "--make"], "no agent in the zoo 't-ls/splager'; did you mean"),
    ],
)
def test_wrong_requests_are_one_line(words, message, capsys):
    with pytest.raises(SystemExit):
        main(["zoo", *words])
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_agents_that_do_not_say_how_they_were_trained_get_no_card(tmp_path):
    player = replace_path(splagger.load("t-ls/splagger"))
    with pytest.raises(SettingError, match="does not say how it was trained"):
        making.publish("t-ls/other", player, 1, tmp_path)


def replace_path(player):
    """A player that does not come from a file or folder."""
    player.path = None
    return player


def test_an_export_of_an_agent_keeps_how_it_was_trained(tmp_path):
    path = tmp_path / "copy.npz"
    main(["export", "t-ls/splagger", "--half", "-o", str(path)])
    with open_agent(path) as copy, open_agent(path_of("t-ls/splagger")) as file:
        assert copy.description["training"] == file.description["training"]
        copied, original = copy.arrays(), file.arrays()
    for name, array in original.items():
        np.testing.assert_array_equal(copied[name], array, strict=True)
