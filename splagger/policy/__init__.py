"""Policies: latents, hypernetworks, and distributions over actions."""

from splagger.nn import Moments as Moments
from splagger.policy.actor_critic import ActorCritic as ActorCritic
from splagger.policy.distributions import Categorical as Categorical
from splagger.policy.distributions import DiagonalGaussian as DiagonalGaussian
from splagger.policy.distributions import Distribution as Distribution
from splagger.policy.distributions import ProductOfCategoricals as ProductOfCategoricals
from splagger.policy.hyper_policy import HyperPolicy as HyperPolicy
from splagger.policy.hypernetwork import Hypernetwork as Hypernetwork
from splagger.policy.latent import AbstractLatent as AbstractLatent
from splagger.policy.latent import Belief as Belief
from splagger.policy.latent import Deterministic as Deterministic
from splagger.policy.latent import Gaussian as Gaussian
