"""Pods on RunPod: containers with GPUs in its data centres (secure cloud) or on machines of its partners (community cloud)."""

from prime_train.adapters.pods_runpod.account import RunPodAccount
from prime_train.adapters.pods_runpod.client import RunPodClient
from prime_train.adapters.pods_runpod.pods import RunPodPods
from prime_train.adapters.pods_runpod.settings import Settings, read_settings

__all__ = ["RunPodAccount", "RunPodClient", "RunPodPods", "Settings", "read_settings"]
