"""The port `Provider` on Prime Intellect."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from prime_train.adapters.http import is_loopback
from prime_train.adapters.pods_prime.account import PrimeAccount
from prime_train.adapters.pods_prime.account_names import ACCOUNT, WORDS, account_names
from prime_train.adapters.pods_prime.client import PrimeClient
from prime_train.adapters.pods_prime.offers import PROVIDER
from prime_train.adapters.pods_prime.pods import PrimePods
from prime_train.adapters.pods_prime.settings import Settings, read_settings
from prime_train.adapters.pods_prime.statuses import pod_of
from prime_train.adapters.rental_api.account_check import InFile, InStore, Owner
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.ports import Account, Provider, ProviderContext, SshAddress


class PrimeProvider(Provider):
    """Machines of many providers behind one API and one wallet."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> PrimePods:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        return PrimePods(self._client, self._context.install).offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return [pod_of(rented) for rented in self._client.pods()]

    def account(self) -> Account:
        return PrimeAccount(self._client, Mark.of(self._context.master), self._pods.burn_usd_per_hour)

    def connection(self, pod_id: str) -> SshAddress | None:
        return self._pods.connection(pod_id)

    def unreachable_reason(self) -> str:
        """Return why the provider's machines could not reach this control plane; empty if they could, or if the provider's API runs on this
        machine."""
        return "" if is_loopback(self._settings.base_url) else self._context.unreachable_reason()

    @cached_property
    def _pods(self) -> PrimePods:
        context = self._context
        memory = InStore(context.store(), PROVIDER) if context.store is not None else InFile(context.root / "prime-account")
        return PrimePods(
            self._client,
            context.install,
            public_key=context.public_key(),
            mark=Mark.of(context.master),
            owner=Owner(lambda: account_names(self._client), memory, WORDS, named=context.environment.get(ACCOUNT, "").strip()),
            closed=self.unreachable_reason() if context.may_rent else "",
        )

    @cached_property
    def _settings(self) -> Settings:
        environment = self._context.environment
        return read_settings(environment, Path(environment.get("HOME") or Path.home()))

    @cached_property
    def _client(self) -> PrimeClient:
        return PrimeClient(self._settings)
