"""Pods on Prime Intellect: machines of many providers behind one API and one wallet."""

from prime_train.adapters.pods_prime.account import PrimeAccount
from prime_train.adapters.pods_prime.account_check import ACCOUNT, InFile, InStore, Owner
from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.adapters.pods_prime.offers import Terms
from prime_train.adapters.pods_prime.pod_names import Mark
from prime_train.adapters.pods_prime.pods import PrimePods
from prime_train.adapters.pods_prime.settings import Settings, read_settings

__all__ = [
    "ACCOUNT",
    "InFile",
    "InStore",
    "Mark",
    "Owner",
    "PrimeAccount",
    "PrimeClient",
    "PrimePods",
    "Settings",
    "Terms",
    "read_settings",
]
