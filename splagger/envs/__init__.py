"""Environments as pure functions: the task is an argument, the caller vmaps. And bridges to those of others."""

from splagger.envs.checking import check_env as check_env
from splagger.envs.gymnax import from_gymnax as from_gymnax
from splagger.envs.live import EnvError as EnvError
from splagger.envs.host import HostMetaEnv as HostMetaEnv
from splagger.envs.host import from_gymnasium as from_gymnasium
from splagger.envs.host import plain_failures as plain_failures
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
