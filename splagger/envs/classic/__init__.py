"""Tasks of the meta-RL literature that are not in the paper."""

from splagger.envs.classic.bandit import Bandit as Bandit
from splagger.envs.classic.goal_grid import GoalGrid as GoalGrid
from splagger.envs.classic.key_to_door import KeyToDoor as KeyToDoor
from splagger.envs.classic.point_robot import PointRobot as PointRobot
from splagger.envs.classic.tabular import TabularMDP as TabularMDP
