"""Pods on Lambda Cloud: on-demand virtual machines with GPUs, which are billed afterwards."""

from prime_train.adapters.pods_lambda.account_names import account_names
from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.pods import LambdaPods
from prime_train.adapters.pods_lambda.settings import Settings, read_settings
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey

__all__ = ["LambdaClient", "LambdaPods", "OwnSshKey", "Settings", "account_names", "read_settings"]
