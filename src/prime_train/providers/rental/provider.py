"""The port `Provider` on a rental API, as far as it is the same at every provider."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, Unpack

from prime_train.http import is_loopback
from prime_train.providers.port import Provider, ProviderContext, SshAddress
from prime_train.providers.rental.account_check import AccountWords, InFile, InStore, Owner
from prime_train.providers.rental.client import RentalClient
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec

P = TypeVar("P", bound=RentalPods[Any, Any])


class RentalProvider(Provider, ABC, Generic[P]):
    """Machines behind a rental API. `name`: the provider's name in the registry; `words`: what messages call
    its account.
    """

    name: ClassVar[str]
    words: ClassVar[AccountWords]

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> P:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        return self._make("").offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return self._make("").every()

    def account_name(self) -> str:
        return next(iter(self._account_names()), "")

    def connection(self, pod_id: str) -> SshAddress | None:
        return self._pods.connection(pod_id)

    def unreachable_reason(self) -> str:
        """Return why the provider's machines could not reach this control plane; empty if they could, or if
        the provider's API runs on this machine.
        """
        return "" if is_loopback(self._client.base_url) else self._context.unreachable_reason()

    # ---------------------------------------------------------------------------------------- what differs
    # between providers

    @property
    @abstractmethod
    def _client(self) -> RentalClient[Any]:
        """Return the client. Raises PermanentError if the settings are invalid."""

    @abstractmethod
    def _make(self, public_key: str, **plane: Unpack[Plane]) -> P:
        """Return the pods. `public_key`: this control plane's SSH key; empty if nothing is rented with
        them.
        """

    @abstractmethod
    def _account_names(self) -> Iterable[str]:
        """Return the names under which the key's account may be stored; see `Owner`."""

    # --------------------------------------------------------------------------------------------------------
    # inside

    @cached_property
    def _pods(self) -> P:
        context = self._context
        memory = (
            InStore(context.store(), self.name)
            if context.store is not None
            else InFile(context.root / f"{self.name}-account")
        )
        return self._make(
            context.public_key(),
            mark=PodMark.of(context.master),
            owner=Owner(
                self._account_names,
                memory,
                self.words,
                named=context.environment.get(self.words.variable, "").strip(),
            ),
            closed=self.unreachable_reason() if context.may_rent else "",
        )
