"""The port `Provider` on RunPod."""

from collections.abc import Sequence
from functools import cached_property

from prime_train.adapters.http import is_loopback
from prime_train.adapters.pods_runpod.account import ACCOUNT, WORDS, RunPodAccount, account_names
from prime_train.adapters.pods_runpod.client import RunPodClient
from prime_train.adapters.pods_runpod.offers import PROVIDER
from prime_train.adapters.pods_runpod.pods import RunPodPods
from prime_train.adapters.pods_runpod.settings import Settings, read_settings
from prime_train.adapters.pods_runpod.statuses import pod_of
from prime_train.adapters.rental_api.account_check import InFile, InStore, Owner
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.ports import Account, Provider, ProviderContext, SshAddress


class RunPodProvider(Provider):
    """Machines of RunPod and its partners, with one balance."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> RunPodPods:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        return RunPodPods(self._client, self._context.install, clouds=self._settings.clouds).offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return [pod_of(rented) for rented in self._client.pods()]

    def account(self) -> Account:
        return RunPodAccount(self._client, self._pods.burn_usd_per_hour)

    def connection(self, pod_id: str) -> SshAddress | None:
        return self._pods.connection(pod_id)

    def unreachable_reason(self) -> str:
        """Return why the provider's machines could not reach this control plane; empty if they could, or if the provider's API runs on this
        machine."""
        return "" if is_loopback(self._settings.base_url) else self._context.unreachable_reason()

    @cached_property
    def _pods(self) -> RunPodPods:
        context = self._context
        memory = InStore(context.store(), PROVIDER) if context.store is not None else InFile(context.root / "runpod-account")
        return RunPodPods(
            self._client,
            context.install,
            public_key=context.public_key(),
            mark=Mark.of(context.master),
            owner=Owner(lambda: account_names(self._client), memory, WORDS, named=context.environment.get(ACCOUNT, "").strip()),
            closed=self.unreachable_reason() if context.may_rent else "",
            clouds=self._settings.clouds,
        )

    @cached_property
    def _settings(self) -> Settings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> RunPodClient:
        return RunPodClient(self._settings)
