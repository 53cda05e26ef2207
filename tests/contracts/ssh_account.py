"""Machines of one's own, with as many of each kind as the test says."""

from collections.abc import Mapping
from pathlib import Path

from prime_train.providers.ssh.pods import SshPods
from tests.adapters.pods_ssh.lab import Lab, kinds_of
from tests.contracts.rented_account import Started


class SshAccount:
    """Machines, and the agents that were `started` on them."""

    def __init__(self, folder: Path) -> None:
        self.started = Started()
        self._lab = Lab(folder)

    def pods(self, stock: Mapping[str, int], boot_s: int) -> SshPods:
        assert boot_s == 0, "a machine of one's own does not boot"
        return SshPods(kinds_of(self._lab, stock), self._lab.enter, self.started)
