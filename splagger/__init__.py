"""Meta-reinforcement learning whose memory is a commutative monoid.

>>> import splagger
>>> sorted(splagger.METHODS)[:3]
['amrl', 'amrl-nornn', 'cnp']
"""

from splagger import aggregators as aggregators
from splagger.agent import Agent as Agent
from splagger.agent import Interface as Interface
from splagger.agent import Network as Network
from splagger.agent import build as build
from splagger.methods import METHODS as METHODS
from splagger.methods import Method as Method
from splagger.sequence import SequenceModel as SequenceModel
from splagger.sequence import Transition as Transition
from splagger.spaces import Continuous as Continuous
from splagger.spaces import Discrete as Discrete
