"""PPO for agents with a memory. `splagger.ppo.train` is the loop; the other files are its parts."""

from splagger.ppo.evaluation import episode_returns as episode_returns
from splagger.ppo.rollout import ActorState as ActorState
from splagger.ppo.rollout import Rollout as Rollout
from splagger.ppo.rollout import collect as collect
from splagger.ppo.settings import Config as Config
from splagger.ppo.settings import PPOConfig as PPOConfig
from splagger.ppo.settings import Tunables as Tunables
from splagger.ppo.train import TrainState as TrainState
