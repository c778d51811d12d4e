"""Bridges to other libraries: Gymnasium and gymnax environments in, our environments out as Gymnasium ids."""

from splagger.bridges.gym_env import GymEnv as GymEnv
from splagger.bridges.gymnax_env import GymnaxEnv as GymnaxEnv
from splagger.bridges.gymnax_env import from_gymnax as from_gymnax
from splagger.bridges.host import HostMetaEnv as HostMetaEnv
from splagger.bridges.host import from_gymnasium as from_gymnasium
from splagger.bridges.host import trial as trial
from splagger.bridges.host import unwrapped_errors as unwrapped_errors
from splagger.bridges.resolve import resolve as resolve
