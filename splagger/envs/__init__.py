"""Environments as pure functions without a batch axis: the task is an argument, and the caller vmaps."""

from splagger.envs.checking import check_env as check_env
from splagger.envs.classic import Bandit as Bandit
from splagger.envs.classic import GoalGrid as GoalGrid
from splagger.envs.classic import KeyToDoor as KeyToDoor
from splagger.envs.classic import PointRobot as PointRobot
from splagger.envs.classic import TabularMDP as TabularMDP
from splagger.envs.endless import EndlessTMaze as EndlessTMaze
from splagger.envs.meta import AbstractMetaEnv as AbstractMetaEnv
from splagger.envs.meta import MetaEnv as MetaEnv
from splagger.envs.meta import MetaState as MetaState
from splagger.envs.meta import MetaStep as MetaStep
from splagger.envs.minemaze import MineMaze as MineMaze
from splagger.envs.mujoco import Cheetah as Cheetah
from splagger.envs.mujoco import Walker as Walker
from splagger.envs.planning import Planning as Planning
from splagger.envs.protocol import Env as Env
from splagger.envs.protocol import EnvSpec as EnvSpec
from splagger.envs.protocol import Step as Step
from splagger.envs.tmaze import TMaze as TMaze
