"""Pods on Vast.ai: containers on machines of many hosts, at a fixed price or by a bid."""

from prime_train.adapters.pods_vast.account import VastAccount
from prime_train.adapters.pods_vast.client import VastClient
from prime_train.adapters.pods_vast.pods import VastPods
from prime_train.adapters.pods_vast.search import Searches
from prime_train.adapters.pods_vast.settings import Settings, read_settings

__all__ = ["Searches", "Settings", "VastAccount", "VastClient", "VastPods", "read_settings"]
