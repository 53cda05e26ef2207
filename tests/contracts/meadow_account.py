"""An account at the provider that prime-train does not have, with a stock of machines of each kind set by the
test.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from prime_train.providers.port import ProviderContext
from tests.adapters.rental_apis.shared import PUBLIC_KEY
from tests.cli.new_provider import KEY, URL, MeadowPods, MeadowProvider
from tests.cli.new_provider.server import API_KEY, Meadow

# Leaves a line on its machine's disk, and stays.
AGENT = "import sys, signal; open(sys.argv[-1] + '/started', 'a').write('x'); signal.pause()"


class MeadowAccount:
    """An account, asked by the provider as a control plane makes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fake = Meadow(folder / "machines", [sys.executable, "-c", AGENT])
        self._fake.__enter__()

    def pods(self, stock: Mapping[str, int], boot_s: int) -> MeadowPods:
        self._fake.stock, self._fake.boot_s = dict(stock), boot_s
        environment = {KEY: API_KEY, URL: self._fake.url}
        context = ProviderContext(
            self._folder,
            environment,
            b"m" * 32,
            lambda connection, ticket: None,
            lambda: PUBLIC_KEY,
            lambda: "nobody is there",
        )
        return MeadowProvider(context).pods()

    def disk(self, pod_id: str) -> Path | None:
        """Return the folder that is the machine's disk; None before its agent was started."""
        processes = self._fake.machines[pod_id].processes
        return self._fake.host.disk(processes.pod_id) if processes is not None else None

    def close(self) -> None:
        self._fake.__exit__(None, None, None)
        assert self._fake.violations == []
