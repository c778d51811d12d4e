"""Meta-reinforcement learning whose memory is a commutative monoid.

>>> import splagger
>>> sorted(splagger.METHODS)[:3]
['amrl', 'amrl-nornn', 'cnp']
"""

import sys as _sys

from splagger import aggregators as aggregators
from splagger import analysis as analysis
from splagger import envs as envs
from splagger.agent import Agent as Agent
from splagger.agent import Interface as Interface
from splagger.agent import Network as Network
from splagger.agent import build as build
from splagger.envs import EnvError as EnvError
from splagger.experiments.api import curves as curves
from splagger.experiments.api import evaluate as evaluate
from splagger.experiments.api import load as load
from splagger.experiments.api import save_agent as save_agent
from splagger.experiments.api import train as train
from splagger.experiments.api import watch as watch
from splagger.experiments.player import Player as Player
from splagger.figures.compare import compare as compare
from splagger.methods import METHODS as METHODS
from splagger.methods import Method as Method
from splagger.ppo.types import PPOConfig as PPOConfig
from splagger.recorded import RunError as RunError
from splagger.registry import ENVS as ENVS
from splagger.registry import EnvRow as EnvRow
from splagger.sequence import SequenceModel as SequenceModel
from splagger.sequence import Transition as Transition
from splagger.spaces import Continuous as Continuous
from splagger.spaces import Discrete as Discrete

if "gymnasium" in _sys.modules:  # then our environments are wanted there too
    import splagger.interop.gymnasium  # noqa: F401
