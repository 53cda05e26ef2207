"""SSH to machines that were just rented: one key pair, host keys pinned on first use, commands and files with limits."""

from prime_train.adapters.ssh.keys import LoginKey, derived_public_key, login_key
from prime_train.adapters.ssh.known_hosts import KnownHosts, known_keys
from prime_train.adapters.ssh.shell import Address, CommandResult, Fetched, Shell, connect

__all__ = [
    "Address",
    "CommandResult",
    "Fetched",
    "KnownHosts",
    "LoginKey",
    "Shell",
    "connect",
    "derived_public_key",
    "known_keys",
    "login_key",
]
