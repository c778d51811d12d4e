"""Gymnasium environments: their description, spaces, tasks and checks, and the processes that step them."""

from splagger.bridges.gym.gym_env import GymEnv as GymEnv
from splagger.bridges.gym.host import HostMetaEnv as HostMetaEnv
from splagger.bridges.gym.host import from_gymnasium as from_gymnasium
from splagger.bridges.gym.host import trial as trial
from splagger.bridges.gym.host import unwrapped_errors as unwrapped_errors
