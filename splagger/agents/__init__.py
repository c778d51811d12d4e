"""Trained agents: load, play, evaluate and watch them, and save them to one file."""

from splagger.agents.evaluation import Score as Score
from splagger.agents.evaluation import evaluate as evaluate
from splagger.agents.recording import watch as watch
from splagger.agents.exports import save_agent as save_agent
from splagger.agents.loading import load as load
from splagger.agents.loading import load_seeds as load_seeds
from splagger.agents.loading import snapshots as snapshots
from splagger.agents.player import Player as Player
