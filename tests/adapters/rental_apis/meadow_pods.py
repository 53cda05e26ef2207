"""The provider of `tests/cli/new_provider`, as the tests of all rental APIs use it."""

import sys
from pathlib import Path
from typing import Any

from prime_train.providers.port import ProviderContext
from prime_train.providers.rental.account_check import InFile, Owner
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis.shared import PUBLIC_KEY
from tests.cli.new_provider import KEY, TITLE, URL, MeadowClient, MeadowPods, MeadowProvider
from tests.cli.new_provider.server import API_KEY, Meadow

HARDWARE = HardwareSpec(gpus=("H100_80GB",), disk_gib=50)


def fake_of(folder: Path) -> Meadow:
    return Meadow(folder / "machines", [sys.executable, "-c", "import signal; signal.pause()"])


def guarded(fake: Meadow, folder: Path, **options: Any) -> MeadowPods:
    """Return the pods of a new process, which compares the account with the one in the folder."""
    client = MeadowClient(TITLE, fake.url, API_KEY, pause_s=0.0)
    owner = Owner(lambda: [client.wallet().id], InFile(folder / "account"), MeadowProvider.words)
    return MeadowPods(client, client.start_agent, **{"owner": owner, **options})


def account_of(fake: Meadow) -> MeadowProvider:
    environment = {KEY: API_KEY, URL: fake.url}
    return MeadowProvider(
        ProviderContext(Path(), environment, b"m" * 32, lambda _, ticket: None, lambda: PUBLIC_KEY, str)
    )
