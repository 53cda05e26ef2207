"""The providers of this control plane: those of the registry that are set up here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from prime_train.api_exchange import Witness
from prime_train.environment import POD_PYTHON, PROVIDER, PUBLIC_URL, STORE
from prime_train.errors import PermanentError, UsageError
from prime_train.providers.by_name import AccountOfOne, PodsByProvider, offers_of, provider_of
from prime_train.providers.kinds import LOCAL, PROVIDERS, allowed_providers, is_rented
from prime_train.providers.port import Account, Provider, ProviderContext, SshAddress
from prime_train.providers.stored_keys import has_value
from prime_train.runs.offer import Offer
from prime_train.runs.store import Store
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

if TYPE_CHECKING:
    from prime_train.providers.install.background import BackgroundPusher
    from prime_train.providers.install.push import AgentPusher
    from prime_train.providers.local.pods import LocalPods
    from prime_train.providers.ssh_client.keys import LoginKey


@dataclass(frozen=True)
class SshAccess:
    """How to log in to a machine by SSH: `known_hosts` was pinned under the pod's id when the agent was
    installed there.
    """

    connection: SshAddress
    key_file: Path
    known_hosts: Path


@dataclass(frozen=True)
class Providers:
    """The providers of a home. `root`: the home's folder. `webhook_url`: the URL that agents call; empty if
    nothing will be rented. `master`: the home's key. `waits`: wait until an agent is on its machine, for a
    process that ends soon and does not wait for `pushes`. `store`: set if the store outlives the folder.
    `witness`: see `ProviderContext`.
    """

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    master: bytes = field(repr=False)
    bucket_url: str
    webhook_url: str = ""
    waits: bool = False
    store: Callable[[], Store] | None = None
    witness: Witness | None = field(default=None, repr=False)

    def of(self, name: str) -> Provider:
        """Return the provider with this name in the registry; the same object at each call."""
        if name not in self._loaded:
            self._loaded[name] = load(name, self._context)
        return self._loaded[name]

    @property
    def pods(self) -> PodsByProvider:
        return self.pods_with(default_providers(self.environment))

    def pods_with(self, defaults: Sequence[str]) -> PodsByProvider:
        """Return the providers as one. `defaults`: those of runs that name none."""
        return PodsByProvider(
            {name: self.of(name).pods() for name in names_set_up(self.environment)}, defaults
        )

    @property
    def local(self) -> "LocalPods":
        """Return the provider whose pods run on this machine, with their disks in the home."""
        return cast("LocalPods", self.of(LOCAL).pods())

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Return the accounts to watch, of all providers that are set up and have one."""
        found = (self.of(name).account() for name in names_set_up(self.environment))
        return tuple(AccountOfOne(account) for account in found if account is not None)

    def ssh_access(self, pod_id: str, run_id: str, attempt: int) -> SshAccess | None:
        """Return how to log in; None: the pod has no SSH, is gone, or does not report yet how to reach it."""
        name, own_id = provider_of(pod_id)
        connection = self.of(name).connection(own_id) if name in names_set_up(self.environment) else None
        if connection is None:
            return None
        return SshAccess(
            connection,
            self.root / "ssh" / "id_ed25519",
            self.root / "attempts" / f"{run_id}-e{attempt}" / "known_hosts",
        )

    def unreachable_reason(self) -> str:
        """Return why a machine that is elsewhere could not work with this control plane; empty if it
        could.
        """
        if urlsplit(self.webhook_url).scheme != "https":
            return (
                f"rented machines could not call {self.webhook_url} safely; give the control plane an https "
                "address that they can reach, "
                f"and set {PUBLIC_URL} to it"
            )
        if urlsplit(self.bucket_url).scheme in ("", "file"):
            return (
                f"rented machines could not reach the bucket {self.bucket_url}; set "
                "PRIME_TRAIN_BUCKET to a bucket such as s3://name/folder"
            )
        return ""

    @cached_property
    def pushes(self) -> "BackgroundPusher":
        """Return the background installer of agents on machines."""
        from prime_train.providers.install.background import BackgroundPusher

        return BackgroundPusher(self._push)

    @cached_property
    def login_key(self) -> "LoginKey":
        from prime_train.providers.ssh_client.keys import login_key

        return login_key(self.root / "ssh", self.master)

    def _push(self, connection: SshAddress, ticket: Ticket) -> None:
        """Install the agent; creates the login key only now, because a home that rents nothing needs none."""
        self._pusher(connection, ticket)

    def _install(self, connection: SshAddress, ticket: Ticket) -> None:
        install = self._push if self.waits else self.pushes
        install(connection, ticket)

    @cached_property
    def _pusher(self) -> "AgentPusher":
        from prime_train.providers.install.push import AgentPusher, Recipe

        return AgentPusher(
            self.login_key, self.root / "attempts", recipe=Recipe(self.environment.get(POD_PYTHON, ""))
        )

    @cached_property
    def _loaded(self) -> dict[str, Provider]:
        return {}

    @property
    def _context(self) -> ProviderContext:
        return ProviderContext(
            self.root,
            self.environment,
            self.master,
            install=self._install,
            public_key=lambda: self.login_key.public,
            unreachable_reason=self.unreachable_reason,
            store=self.store,
            may_rent=bool(self.webhook_url),
            witness=self.witness,
        )


def load(name: str, context: ProviderContext) -> Provider:
    """Return a new object of the provider with this name in the registry."""
    module, _, kind = PROVIDERS[name].implementation.partition(":")
    return cast("Provider", getattr(import_module(module), kind)(context))


def is_set_up(name: str, environment: Mapping[str, str]) -> bool:
    """Return whether machines of this provider can be used. A log-in with the provider's own tool counts only
    if PRIME_TRAIN_PROVIDER names the provider: a user who once logged in should not rent machines by
    accident. Machines of the provider `local` on a remote control plane cannot be listed from here.
    """
    row = PROVIDERS[name]
    if not row.is_rented:
        return not environment.get(STORE)
    return name in providers_named(environment) or _has_credentials(name, environment)


def names_set_up(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the providers whose machines can be used."""
    return tuple(name for name in PROVIDERS if is_set_up(name, environment))


def rents(environment: Mapping[str, str]) -> bool:
    """Return whether a provider that rents out machines is set up."""
    return any(PROVIDERS[name].is_rented for name in names_set_up(environment))


def default_providers(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers of runs whose configs name none: those that PRIME_TRAIN_PROVIDER names, otherwise
    all whose credentials are there, otherwise this machine. Raises UsageError for an unknown name.
    """
    named = providers_named(environment)
    unknown = [name for name in named if name not in PROVIDERS]
    if unknown or (LOCAL in named and len(named) > 1):
        text = environment[PROVIDER]
        fix = (
            f"set it to {' or '.join(PROVIDERS)}, or to several that rent out machines, separated "
            "by commas, or unset it"
        )
        raise UsageError(f"{PROVIDER} is {text!r}", fix=fix)
    return named or tuple(name for name in PROVIDERS if _has_credentials(name, environment)) or (LOCAL,)


def providers_named(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the providers that PRIME_TRAIN_PROVIDER names."""
    return tuple(
        dict.fromkeys(name.strip() for name in environment.get(PROVIDER, "").split(",") if name.strip())
    )


def providers_to_rent_from(environment: Mapping[str, str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the providers `named`, or else those from which machines would be rented: the default ones if
    they rent out machines, otherwise all that are set up, otherwise the first in the registry.
    """
    if named:
        return tuple(named)
    default = default_providers(environment)
    if is_rented(default):
        return default
    renting = tuple(name for name, row in PROVIDERS.items() if row.is_rented)
    return tuple(name for name in renting if is_set_up(name, environment)) or renting[:1]


def lacking(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the missing credentials without which no machine can be rented; empty if those of
    at least one provider are complete.
    """
    if any(_has_credentials(name, environment) for name in PROVIDERS):
        return ()
    first = providers_to_rent_from(environment)[0]
    return tuple(name for name in PROVIDERS[first].credentials if not has_value(name, environment))


def offers_to_rent(environment: Mapping[str, str], hardware: HardwareSpec) -> Sequence[Offer]:
    """Return the offers of the providers that `hardware` names or, if it names none, of those to rent from. A
    provider that fails leaves only its own out; raises ExternalError if all fail. Nothing is read from a home
    or written to one.
    """
    context = reading_context(environment)
    names = providers_to_rent_from(environment, allowed_providers(hardware))
    return offers_of({name: load(name, context).offers for name in names}, hardware)


def offers_if_set_up(environment: Mapping[str, str], hardware: HardwareSpec) -> Sequence[Offer] | None:
    """Return the offers of the providers that `hardware` names or, if it names none, of those to rent from;
    None if none of them is set up here. Raises ExternalError if no provider answers.
    """
    names = providers_to_rent_from(environment, allowed_providers(hardware))
    if not any(PROVIDERS[name].is_rented and is_set_up(name, environment) for name in names):
        return None
    return offers_to_rent(environment, hardware.model_copy(update={"provider": None, "providers": names}))


def all_rented(environment: Mapping[str, str]) -> list[Pod]:
    """Return all pods on the accounts of the providers that are set up, including those of other people and
    tools.
    """
    renting = [name for name in names_set_up(environment) if PROVIDERS[name].is_rented]
    return [pod for name in renting for pod in load(name, reading_context(environment)).all_pods()]


def _has_credentials(name: str, environment: Mapping[str, str]) -> bool:
    names = PROVIDERS[name].credentials
    return bool(names) and all(has_value(variable, environment) for variable in names)


def reading_context(environment: Mapping[str, str]) -> ProviderContext:
    """Return the context of a process that only looks at what a provider has: nothing is read from a home or
    written to one.
    """
    return ProviderContext(
        Path(),
        environment,
        b"",
        install=_installs_nothing,
        public_key=lambda: "",
        unreachable_reason=lambda: "",
        may_rent=False,
    )


def _installs_nothing(connection: SshAddress, ticket: Ticket) -> None:
    raise PermanentError(f"a process that only reads offers cannot install an agent on {connection.pod_id}")
