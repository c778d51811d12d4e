"""Robots simulated by MuJoCo's C library on all cores, with one call per step of a whole batch."""

from splagger.envs.mujoco.cheetah import Cheetah as Cheetah
from splagger.envs.mujoco.walker import Walker as Walker
