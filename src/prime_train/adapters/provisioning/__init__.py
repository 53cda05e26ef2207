"""Installs the agent over SSH on a machine that was just rented, and starts it there."""

from prime_train.adapters.provisioning.agent_bundle import Parcel, pack
from prime_train.adapters.provisioning.background import BackgroundPusher, Failure
from prime_train.adapters.provisioning.push import AgentPusher, Recipe

__all__ = ["AgentPusher", "BackgroundPusher", "Failure", "Parcel", "Recipe", "pack"]
