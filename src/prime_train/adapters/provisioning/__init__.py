"""Brings the agent to a machine that was just rented, by SSH, and starts it there."""

from prime_train.adapters.provisioning.parcel import Parcel, pack
from prime_train.adapters.provisioning.push import AgentPusher, Recipe

__all__ = ["AgentPusher", "Parcel", "Recipe", "pack"]
