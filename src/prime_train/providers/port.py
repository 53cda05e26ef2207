"""What a provider of machines must do: list offers, create, list and end machines, and tell what an account
has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prime_train.api_exchange import Witness
from prime_train.errors import TemporaryError
from prime_train.runs.funds import Bill, Funds
from prime_train.runs.offer import Offer
from prime_train.runs.store import Store
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec


class PartlyListed(TemporaryError):
    """Some of several providers could not list their pods. `listed` are the pods of the others; `failed` says
    why, by provider.
    """

    def __init__(self, listed: "Sequence[Pod]", failed: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in failed.items()))
        self.listed, self.failed = listed, failed


class Pods(Protocol):
    """A provider of machines. The control plane chooses pod names (`pt-<run>-e<attempt>-a<identity>`), the
    provider chooses ids.
    """

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]: ...

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> "Pod":
        """Rent one machine. After NoCapacity, NoFunds or PermanentError nothing was created; after
        TemporaryError that is unknown.
        """

    def list(self) -> "Sequence[Pod]":
        """Return every pod of this control plane. The list may lag behind: absence from it proves nothing."""

    def get(self, pod_id: str) -> "Pod | None":
        """Return the pod, or None if the provider no longer has an id that it once gave out. A pod that it
        still lists as ended is GONE, with the time of its end if the provider reports one.
        """

    def put_agent(self, pod: "Pod", ticket: Ticket) -> None:
        """Start the agent with this ticket; does nothing if it runs already. May return before the agent is
        up, which its heartbeat shows.
        """

    def terminate(self, pod_id: str) -> None:
        """Request the end of the pod; does nothing if the pod is already gone."""


SSH_PORT = 22


@dataclass(frozen=True)
class SshAddress:
    """The SSH address of one pod. The user is not always root. `host_keys`: those that its server may show,
    each as its type and the key; empty: the first one that it shows is pinned.
    """

    pod_id: str
    user: str
    host: str
    port: int = SSH_PORT
    host_keys: tuple[str, ...] = ()


class Installer(Protocol):
    """Installs the agent on a machine by SSH and starts it with the ticket; if it runs already, nothing
    happens.

    Raises TemporaryError if the machine could not be reached or the outcome is unknown, PermanentError if the
    agent cannot run there.
    """

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None: ...


@dataclass(frozen=True)
class ProviderContext:
    """The part of a control plane that a provider may use. `root`: the control plane's folder; a provider
    writes only into a folder of its own below it. `master`: the key from which the marks are derived that a
    provider puts on its machines. `store`: set if the store outlives the folder.
    """

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    master: bytes = field(repr=False)
    install: Installer
    """A function that installs agents on machines that are reached by SSH."""
    public_key: Callable[[], str]
    """A function that returns the public SSH key, in OpenSSH's format, that such machines must accept."""
    unreachable_reason: Callable[[], str]
    """A function that returns why a machine elsewhere could not reach this control plane; empty if it
    could.
    """
    store: "Callable[[], Store] | None" = None
    may_rent: bool = True
    """Whether machines may be rented; otherwise they are only queried."""
    witness: Witness | None = field(default=None, repr=False)
    """A function that is told every exchange with the provider's API."""


@dataclass(frozen=True)
class Portable:
    """Credentials that mean the same on every machine, by the names of their variables. `hosts`: the hosts
    that are called with them. `logs_in`: whether the user has to let the control plane's own SSH key in
    there.
    """

    values: Mapping[str, str] = field(repr=False)
    hosts: tuple[str, ...] = ()
    logs_in: bool = False


class Provider(Protocol):
    """A provider of machines, as its row of the registry names it. Every provider implements `pods`; the
    other methods have defaults.
    """

    def pods(self) -> Pods:
        """Return the provider's machines; the same object at each call. Raises PermanentError if the settings
        are invalid.
        """

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return its offers with the credentials alone: nothing is read from the control plane's folder or
        written to it.
        """
        return self.pods().offers(hardware)

    def all_pods(self) -> Sequence["Pod"]:
        """Return all pods of the account, including those of other people and tools, with the credentials
        alone.
        """
        return self.pods().list()

    def account(self) -> "Account | None":
        """Return the account that pays, or None if there is none to watch."""
        return None

    def account_name(self) -> str:
        """Return the name of the account that the credentials belong to; empty if the provider does not tell.
        Raises ExternalError.
        """
        return ""

    def missing_rights(self) -> Sequence[str]:
        """Return the rights that renting needs and the credentials lack, in words; empty if they have all, or
        the provider does not tell. Raises ExternalError.
        """
        return ()

    def portable(self) -> Portable | None:
        """Return the credentials with the contents of all files that they name, for a control plane on
        another machine; None if they name none. Asks nobody. Raises PermanentError if they can only be used
        on this machine.
        """
        return None

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address; None: it has none, is gone, or does not report yet how to reach
        it.
        """
        return None

    def unreachable_reason(self) -> str:
        """Return why its machines could not work with this control plane; empty if they could."""
        return ""


class Account(Protocol):
    """The paying account at one provider. Both methods may be called in every sweep: an adapter limits its
    own requests to the provider.
    """

    @property
    def provider(self) -> str:
        """The provider's name, as in `Offer.provider`."""

    def funds(self) -> Funds | None:
        """Return the wallet's current state; None if the account has no wallet."""

    def bills(self) -> Sequence[Bill]:
        """Return recently ended pods with their costs; empty also if there is nothing new."""
