"""Robots simulated by MuJoCo: its C library on all cores, one call for a whole batch of environments."""

from splagger.envs.mujoco.cheetah import Cheetah as Cheetah
from splagger.envs.mujoco.walker import Walker as Walker
