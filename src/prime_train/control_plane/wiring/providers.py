"""From whom this control plane rents: its own machine, and Prime Intellect where there is a key."""

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
"""Where the store is: unset, in the home; dynamodb://table; or the address of a control plane elsewhere."""
PUBLIC_URL = "PRIME_TRAIN_URL"
POD_PYTHON = "PRIME_TRAIN_POD_PYTHON"
LOCAL, PRIME = "local", "prime"


@dataclass(frozen=True)
class Reach:
    """How to log in to a machine by SSH: `known_hosts` is pinned by whoever brought the agent there, under the pod's id."""

    connection: "Connection"
    key_file: Path
    known_hosts: Path


@dataclass(frozen=True)
class Providers:
    """`root`: the home's folder. `webhook_url`: what agents are to call; empty where nothing will be rented. `master`: the home's key.
    `waits`: until an agent is on its machine, for a process that ends soon and does not wait for `pushes`. `store`: where the store
    outlives the folder."""

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

        # The machines of a control plane elsewhere that are its own box cannot be seen from here.
        found: dict[str, Pods] = {} if self.environment.get(STORE) else {LOCAL: self.local}
        return PodsByProvider(found | {PRIME: self.prime} if has_prime(self.environment) else found, self.default)

    @property
    def local(self) -> "LocalPods":
        from prime_train.adapters.pods_local import LocalPods

        return LocalPods(self.root / "pods")

    @cached_property
    def prime(self) -> "PrimePods":
        """Raises PermanentError where the settings are not understood."""
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
        """The agents that are being brought to machines."""
        from prime_train.adapters.pods_prime import BackgroundPusher

        return BackgroundPusher(self._push)

    def _push(self, connection: "Connection", ticket: "Ticket") -> None:
        """Only now is there a key to log in with: a home that rents nothing needs none."""
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
        """None: the pod is not reached by SSH, is gone, or does not say yet how to reach it."""
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
        """Why a machine of Prime's could do nothing for us; empty also where the provider itself is on this machine."""
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
    """What Prime Intellect has for rent, asked with the key alone: of a home nothing is read, and nothing is kept there."""
    from prime_train.adapters.pods_prime import PrimeClient, PrimePods

    return PrimePods(PrimeClient(_settings(environment)), _rents_nothing).offers(hardware)


def has_prime(environment: Mapping[str, str]) -> bool:
    """A log-in of Prime's own tool is used only where PRIME_TRAIN_PROVIDER says so: nobody pays for having been logged in once."""
    return bool(environment.get("PRIME_API_KEY")) or environment.get(PROVIDER) == PRIME


def default_provider(environment: Mapping[str, str]) -> str:
    """Raises UsageError for a name that is none."""
    named = environment.get(PROVIDER, "")
    if named not in ("", LOCAL, PRIME):
        raise UsageError(f"{PROVIDER} is {named!r}", fix=f"set it to {LOCAL} or {PRIME}, or not at all")
    return named or (PRIME if environment.get("PRIME_API_KEY") else LOCAL)


def _settings(environment: Mapping[str, str]) -> "Settings":
    from prime_train.adapters.pods_prime import read_settings

    return read_settings(environment, Path(environment.get("HOME") or Path.home()))


def _rents_nothing(connection: "Connection", ticket: "Ticket") -> None:
    raise AssertionError(f"no agent is brought to {connection.pod_id} by who only looks")
