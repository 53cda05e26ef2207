"""Pods on Prime Intellect: machines of many providers behind one API and one wallet."""

from prime_train.adapters.pods_prime.account import PrimeAccount
from prime_train.adapters.pods_prime.account_names import ACCOUNT, WORDS, account_names
from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.adapters.pods_prime.offers import Terms
from prime_train.adapters.pods_prime.pods import PrimePods
from prime_train.adapters.pods_prime.settings import Settings, read_settings

__all__ = ["ACCOUNT", "WORDS", "PrimeAccount", "PrimeClient", "PrimePods", "Settings", "Terms", "account_names", "read_settings"]
