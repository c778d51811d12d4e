"""Launching many experiments: in this process, side by side, on a Ray cluster, or on SLURM."""

from splagger.launchers.api import sweep as sweep
from splagger.launchers.api import train_all as train_all
from splagger.launchers.protocol import Launcher as Launcher
from splagger.launchers.protocol import parse as parse
