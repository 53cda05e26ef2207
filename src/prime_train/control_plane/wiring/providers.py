"""The providers of this control plane: its own machine, and Prime Intellect if there is an API key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.adapters.pods_by_provider import PodsByProvider
    from prime_train.adapters.pods_local import LocalPods
    from prime_train.adapters.pods_prime import BackgroundPusher, Connection, PrimeClient, PrimePods, Settings
    from prime_train.adapters.provisioning import AgentPusher
    from prime_train.adapters.ssh import LoginKey
    from prime_train.core.offers import Offer
    from prime_train.core.spec import HardwareSpec
    from prime_train.core.wire import Ticket
    from prime_train.ports import Account, Pods, Store

PROVIDER = "PRIME_TRAIN_PROVIDER"
STORE = "PRIME_TRAIN_STORE"
"""The variable for the place of the store: unset, in the home; dynamodb://table; or the address of a remote control plane."""
PUBLIC_URL = "PRIME_TRAIN_URL"
POD_PYTHON = "PRIME_TRAIN_POD_PYTHON"
LOCAL, PRIME = "local", "prime"


@dataclass(frozen=True)
class Reach:
    """How to log in to a machine by SSH: `known_hosts` was pinned under the pod's id when the agent was installed there."""

    connection: "Connection"
    key_file: Path
    known_hosts: Path


@dataclass(frozen=True)
class Providers:
    """The providers of a home. `root`: the home's folder. `webhook_url`: the URL that agents call; empty if nothing will be rented.
    `master`: the home's key. `waits`: wait until an agent is on its machine, for a process that ends soon and does not wait for `pushes`.
    `store`: set if the store outlives the folder."""

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    master: bytes = field(repr=False)
    bucket_url: str
    webhook_url: str = ""
    waits: bool = False
    store: "Callable[[], Store] | None" = None

    @property
    def default(self) -> str:
        return default_provider(self.environment)

    @property
    def pods(self) -> "PodsByProvider":
        from prime_train.adapters.pods_by_provider import PodsByProvider

        # Machines that are a remote control plane's own box cannot be listed from here.
        found: dict[str, Pods] = {} if self.environment.get(STORE) else {LOCAL: self.local}
        return PodsByProvider(found | {PRIME: self.prime} if has_prime(self.environment) else found, self.default)

    @property
    def local(self) -> "LocalPods":
        from prime_train.adapters.pods_local import LocalPods

        return LocalPods(self.root / "pods")

    @cached_property
    def prime(self) -> "PrimePods":
        """Return the machines at Prime Intellect. Raises PermanentError if the settings are invalid."""
        from prime_train.adapters.pods_prime import ACCOUNT, InFile, InStore, Mark, Owner, PrimePods

        memory = InStore(self.store()) if self.store is not None else InFile(self.root / "prime-account")
        return PrimePods(
            self._client,
            self._pusher if self.waits else self.pushes,
            public_key=self.login_key.public,
            mark=Mark.of(self.master),
            owner=Owner(self._client, memory, named=self.environment.get(ACCOUNT, "").strip()),
            closed=self.unreachable() if self.webhook_url else "",
        )

    @cached_property
    def pushes(self) -> "BackgroundPusher":
        """Return the background installer of agents on machines."""
        from prime_train.adapters.pods_prime import BackgroundPusher

        return BackgroundPusher(self._push)

    def _push(self, connection: "Connection", ticket: "Ticket") -> None:
        """Install the agent; creates the login key only now, because a home that rents nothing needs none."""
        self._pusher(connection, ticket)

    @cached_property
    def _pusher(self) -> "AgentPusher":
        from prime_train.adapters.provisioning import AgentPusher, Recipe

        return AgentPusher(self.login_key, self.root / "attempts", recipe=Recipe(self.environment.get(POD_PYTHON, "")))

    @property
    def account(self) -> "Account | None":
        from prime_train.adapters.pods_by_provider import AccountOfOne
        from prime_train.adapters.pods_prime import Mark, PrimeAccount

        if not has_prime(self.environment):
            return None
        return AccountOfOne(PrimeAccount(self._client, Mark.of(self.master), self.prime.burn_usd_per_hour))

    @cached_property
    def login_key(self) -> "LoginKey":
        from prime_train.adapters.ssh import login_key

        return login_key(self.root / "ssh", self.master)

    def reach(self, pod_id: str, run_id: str, attempt: int) -> Reach | None:
        """Return how to log in; None: the pod has no SSH, is gone, or does not report yet how to reach it."""
        from prime_train.adapters.pods_by_provider import provider_of

        provider, own_id = provider_of(pod_id)
        connection = self.prime.connection(own_id) if provider == PRIME and has_prime(self.environment) else None
        if connection is None:
            return None
        return Reach(connection, self.root / "ssh" / "id_ed25519", self.root / "attempts" / f"{run_id}-e{attempt}" / "known_hosts")

    @cached_property
    def _settings(self) -> "Settings":
        return _settings(self.environment)

    @cached_property
    def _client(self) -> "PrimeClient":
        from prime_train.adapters.pods_prime import PrimeClient

        return PrimeClient(self._settings)

    def unreachable(self) -> str:
        """Return why a machine of Prime Intellect could not work with this control plane; empty if it could, and if the provider itself is
        on this machine."""
        from prime_train.adapters.http import is_loopback

        if is_loopback(self._settings.base_url):
            return ""
        if urlsplit(self.webhook_url).scheme != "https":
            return (
                f"rented machines could not call {self.webhook_url} safely; give the control plane an https address that they can reach, "
                f"and set {PUBLIC_URL} to it"
            )
        if urlsplit(self.bucket_url).scheme in ("", "file"):
            return f"rented machines could not reach the bucket {self.bucket_url}; set PRIME_TRAIN_BUCKET to one such as s3://name/folder"
        return ""


def for_rent(environment: Mapping[str, str], hardware: "HardwareSpec") -> "Sequence[Offer]":
    """Return the offers of Prime Intellect, requested with the API key alone: nothing is read from a home or written to one."""
    from prime_train.adapters.pods_prime import PrimeClient, PrimePods

    return PrimePods(PrimeClient(_settings(environment)), _rents_nothing).offers(hardware)


def has_prime(environment: Mapping[str, str]) -> bool:
    """Return whether Prime Intellect is configured. A log-in of its own tool counts only if PRIME_TRAIN_PROVIDER says so, so that nobody
    pays for having logged in once."""
    return bool(environment.get("PRIME_API_KEY")) or environment.get(PROVIDER) == PRIME


def default_provider(environment: Mapping[str, str]) -> str:
    """Return the name of the default provider. Raises UsageError for an unknown name."""
    named = environment.get(PROVIDER, "")
    if named not in ("", LOCAL, PRIME):
        raise UsageError(f"{PROVIDER} is {named!r}", fix=f"set it to {LOCAL} or {PRIME}, or not at all")
    return named or (PRIME if environment.get("PRIME_API_KEY") else LOCAL)


def _settings(environment: Mapping[str, str]) -> "Settings":
    from prime_train.adapters.pods_prime import read_settings

    return read_settings(environment, Path(environment.get("HOME") or Path.home()))


def _rents_nothing(connection: "Connection", ticket: "Ticket") -> None:
    raise AssertionError(f"no agent is brought to {connection.pod_id} by who only looks")
