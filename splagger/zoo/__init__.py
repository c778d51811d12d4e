"""Trained agents inside the package: their names, files, cards, and the recipes that make them. Needs no JAX."""

from splagger.zoo.cards import Card as Card
from splagger.zoo.cards import cards as cards
from splagger.zoo.cards import locate as locate
from splagger.zoo.recipes import RECIPES as RECIPES
from splagger.zoo.recipes import Recipe as Recipe
