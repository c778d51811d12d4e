"""Bridges to other libraries: Gymnasium, gymnax and XLand-MiniGrid environments in, ours out as Gymnasium ids."""

from splagger.bridges.gym import GymEnv as GymEnv
from splagger.bridges.gym import HostMetaEnv as HostMetaEnv
from splagger.bridges.gym import from_gymnasium as from_gymnasium
from splagger.bridges.gym import trial as trial
from splagger.bridges.gym import unwrapped_errors as unwrapped_errors
from splagger.bridges.gymnax_env import GymnaxEnv as GymnaxEnv
from splagger.bridges.gymnax_env import from_gymnax as from_gymnax
from splagger.bridges.resolve import resolve as resolve
from splagger.bridges.xland_env import XLandEnv as XLandEnv
from splagger.bridges.xland_env import from_xland as from_xland
