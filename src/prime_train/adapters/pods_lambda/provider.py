"""The port `Provider` on Lambda Cloud. There is no account to watch: machines are billed afterwards."""

from collections.abc import Sequence
from functools import cached_property

from prime_train.adapters.http import is_loopback
from prime_train.adapters.pods_lambda.account_names import ACCOUNT, WORDS, account_names
from prime_train.adapters.pods_lambda.client import LambdaClient
from prime_train.adapters.pods_lambda.offers import PROVIDER
from prime_train.adapters.pods_lambda.pods import LambdaPods
from prime_train.adapters.pods_lambda.settings import Settings, read_settings
from prime_train.adapters.pods_lambda.ssh_key import OwnSshKey
from prime_train.adapters.pods_lambda.statuses import pod_of
from prime_train.adapters.rental_api.account_check import InFile, InStore, Owner
from prime_train.adapters.rental_api.pod_names import Mark
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.ports import Provider, ProviderContext, SshAddress


class LambdaProvider(Provider):
    """On-demand machines of Lambda Cloud."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> LambdaPods:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        return LambdaPods(self._client, self._context.install, own_key=OwnSshKey(self._client, "")).offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return [pod_of(rented) for rented in self._client.instances()]

    def connection(self, pod_id: str) -> SshAddress | None:
        return self._pods.connection(pod_id)

    def unreachable_reason(self) -> str:
        """Return why the provider's machines could not reach this control plane; empty if they could, or if the provider's API runs on this
        machine."""
        return "" if is_loopback(self._settings.base_url) else self._context.unreachable_reason()

    @cached_property
    def _pods(self) -> LambdaPods:
        context = self._context
        memory = InStore(context.store(), PROVIDER) if context.store is not None else InFile(context.root / "lambda-account")
        own_key = OwnSshKey(self._client, context.public_key())
        return LambdaPods(
            self._client,
            context.install,
            own_key=own_key,
            mark=Mark.of(context.master),
            owner=Owner(lambda: account_names(own_key), memory, WORDS, named=context.environment.get(ACCOUNT, "").strip()),
            closed=self.unreachable_reason() if context.may_rent else "",
        )

    @cached_property
    def _settings(self) -> Settings:
        return read_settings(self._context.environment)

    @cached_property
    def _client(self) -> LambdaClient:
        return LambdaClient(self._settings)
