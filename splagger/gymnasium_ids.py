"""Our environments by Gymnasium id: `gymnasium.make("splagger.gymnasium_ids:splagger/T-LS-v0")`.

Importing this module registers the ids; nothing else does. Needs no JAX: the code of an environment is imported when
the environment is made.
"""

import gymnasium

# Gymnasium id → name in `splagger.ENVS`. An episode ends by itself, so Gymnasium adds no time limit.
IDS = {
    "splagger/T-LS-v0": "t-ls",
    "splagger/T-Agreement-v0": "t-agreement",
    "splagger/T-Latent-v0": "t-latent",
    "splagger/Planning-v0": "planning",
    "splagger/Planning-NoObs-v0": "planning-noobs",
    "splagger/MC-LS-v0": "mc-ls",
    "splagger/Cheetah-Dir-v0": "cheetah-dir",
    "splagger/Walker-v0": "walker",
    "splagger/Bandit-5-v0": "bandit-5",
    "splagger/Bandit-50-v0": "bandit-50",
    "splagger/Tabular-MDP-v0": "tabular-mdp",
    "splagger/Goal-Grid-v0": "goal-grid",
    "splagger/Dark-Room-v0": "dark-room",
    "splagger/Key-to-Door-v0": "key-to-door",
    "splagger/Point-Robot-v0": "point-robot",
    "splagger/T-Endless-v0": "t-endless",
}


def register() -> None:
    """Makes every id known to `gymnasium.make` and `gymnasium.make_vec`."""
    for identifier, name in IDS.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point="splagger.bridges.meta_episode:MetaEpisode",
                kwargs={"name": name},
            )


register()
