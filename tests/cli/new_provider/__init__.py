"""A provider that prime-train does not have. Everything about it is in this package, and `ROW` is its row in the registry.

Its machines are real folders with real processes, in a folder that stands for the provider: whoever knows the key sees them, and they can
be taken away. They offer a GPU only on paper.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from prime_train.adapters.pods_local import LocalPods
from prime_train.core.funds import Bill, Funds
from prime_train.core.offers import Offer
from prime_train.core.registry.definitions import ProviderKind
from prime_train.ports import Account, PermanentError, Provider, ProviderContext

NAME = "meadow"
KEY, FOLDER = "MEADOW_KEY", "MEADOW_FOLDER"
BALANCE_USD = 42.0
AGENT = (sys.executable, "-m", "tests.cli.new_provider.agent")
OFFERS = (
    Offer(NAME, "clover", 0.40, spot=True, gpu="H100_80GB", gpu_count=1, gpu_gb=80, disk_gib=200, machine="clover-7"),
    Offer(NAME, "thistle", 0.90, spot=False, gpu="H100_80GB", gpu_count=1, gpu_gb=80, disk_gib=200),
)


class MeadowProvider(Provider):
    def __init__(self, context: ProviderContext) -> None:
        if context.environment.get(KEY) != "let me in":
            raise PermanentError(f"the meadow does not know this key; look at {KEY}")
        self._pods = LocalPods(Path(context.environment[FOLDER]), offers=OFFERS, agent_command=AGENT)

    def pods(self) -> LocalPods:
        return self._pods

    def account(self) -> Account:
        return MeadowAccount(self._pods)


class MeadowAccount:
    provider = NAME

    def __init__(self, pods: LocalPods) -> None:
        self._pods = pods

    def funds(self) -> Funds | None:
        return Funds(NAME, BALANCE_USD, sum(pod.usd_per_hour for pod in self._pods.list()))

    def bills(self) -> Sequence[Bill]:
        return ()


ROW = ProviderKind(
    "tests.cli.new_provider:MeadowProvider",
    "the meadow",
    credentials=(KEY,),
    advice=f"set {KEY}",
    documentation="https://meadow.example",
)
