"""Meta-reinforcement learning whose memory is a commutative monoid.

Names are imported when they are first used, so that reading results needs no JAX.

>>> import splagger
>>> splagger.METHODS["splagger"].skip
0.5
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splagger import aggregators as aggregators
    from splagger import analysis as analysis
    from splagger import envs as envs
    from splagger import zoo as zoo
    from splagger.agent import Agent as Agent
    from splagger.agent import Interface as Interface
    from splagger.agent import build as build
    from splagger.agents import Player as Player
    from splagger.agents import evaluate as evaluate
    from splagger.agents import load as load
    from splagger.agents import save_agent as save_agent
    from splagger.agents import snapshots as snapshots
    from splagger.agents import watch as watch
    from splagger.bridges import from_gymnasium as from_gymnasium
    from splagger.bridges import from_gymnax as from_gymnax
    from splagger.bridges import from_xland as from_xland
    from splagger.errors import EnvError as EnvError
    from splagger.errors import RunError as RunError
    from splagger.errors import SettingError as SettingError
    from splagger.errors import UserError as UserError
    from splagger.inspection import inspect as inspect
    from splagger.launchers import sweep as sweep
    from splagger.memory import SequenceModel as SequenceModel
    from splagger.memory import Transition as Transition
    from splagger.methods import METHODS as METHODS
    from splagger.methods import Method as Method
    from splagger.network import Network as Network
    from splagger.plots import plot as plot
    from splagger.ppo.settings import PPOConfig as PPOConfig
    from splagger.registry import ENVS as ENVS
    from splagger.registry import SMALL as SMALL
    from splagger.registry import EnvRow as EnvRow
    from splagger.spaces import Continuous as Continuous
    from splagger.spaces import Discrete as Discrete
    from splagger.spaces import MultiDiscrete as MultiDiscrete
    from splagger.stats import compare as compare
    from splagger.training import curves as curves
    from splagger.training import train as train

_MODULES = {
    "splagger": "aggregators analysis envs zoo",
    "splagger.agent": "Agent Interface build",
    "splagger.agents": "Player evaluate load save_agent snapshots watch",
    "splagger.bridges": "from_gymnasium from_gymnax from_xland",
    "splagger.errors": "EnvError RunError SettingError UserError",
    "splagger.inspection": "inspect",
    "splagger.launchers": "sweep",
    "splagger.memory": "SequenceModel Transition",
    "splagger.methods": "METHODS Method",
    "splagger.network": "Network",
    "splagger.plots": "plot",
    "splagger.ppo.settings": "PPOConfig",
    "splagger.registry": "ENVS SMALL EnvRow",
    "splagger.spaces": "Continuous Discrete MultiDiscrete",
    "splagger.stats": "compare",
    "splagger.training": "curves train",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("splagger")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _PLACES[name]
    is_module = module == __name__
    found = importlib.import_module(f"{module}.{name}" if is_module else module)
    value = found if is_module else getattr(found, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]
