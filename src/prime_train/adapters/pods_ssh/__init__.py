"""Machines of one's own, which are reached by SSH: a file lists them, and each is given to one attempt at a time."""

from prime_train.adapters.pods_ssh.hosts import Host, Kind, read_hosts
from prime_train.adapters.pods_ssh.pods import Enter, SshPods

__all__ = ["Enter", "Host", "Kind", "SshPods", "read_hosts"]
