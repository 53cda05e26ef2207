"""Which providers are set up here, and where each of their credentials comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.providers.configured import is_set_up
from prime_train.providers.kinds import PROVIDERS, ProviderKind
from prime_train.providers.stored_keys import file_of, has_value, stored
from prime_train.text.nearest import nearest
from prime_train.text.redaction import LOOKS

NAME_CHARS_MAX = 32


class CredentialOrigin(StrEnum):
    """Where a credential comes from."""

    ENVIRONMENT = "environment"
    STORED = "stored"
    MISSING = "not set"


@dataclass(frozen=True)
class ProviderSetup:
    """A provider. `sources`: where each of its credentials comes from, by the name of its variable.
    `overridden`: stored credentials that are not used, because the environment sets them.
    """

    name: str
    kind: ProviderKind
    is_set_up: bool
    sources: dict[str, CredentialOrigin]
    overridden: tuple[Path, ...]

    @property
    def has_credentials(self) -> bool:
        return bool(self.sources) and CredentialOrigin.MISSING not in self.sources.values()


def rows(root: Path, environment: Mapping[str, str], process: Mapping[str, str]) -> list[ProviderSetup]:
    """Return all providers that rent out machines. `environment`: with the credentials that the home at
    `root` stores; `process`: the same without them.
    """
    kept = stored(root)
    return [
        _row(name, root, environment, process, kept)
        for name, kind in PROVIDERS.items()
        if kind.is_rented or kind.credentials
    ]


def known(name: str) -> ProviderKind:
    """Return the provider's row in the registry. Raises UsageError if there is none, without repeating what
    may be a key.
    """
    if name in PROVIDERS:
        return PROVIDERS[name]
    similar = nearest(name, PROVIDERS)
    others = ", ".join(one for one, kind in PROVIDERS.items() if kind.credentials)
    fix = f"did you mean {similar[0]}?" if similar else f"write one of {others}"
    if len(name) > NAME_CHARS_MAX or LOOKS.search(name):
        raise UsageError(
            "this is not the name of a provider, and it may be a key, which others can see on a command line",
            fix=fix,
        )
    raise UsageError(f"there is no provider {name!r}", fix=fix)


def _row(
    name: str, root: Path, environment: Mapping[str, str], process: Mapping[str, str], kept: Mapping[str, str]
) -> ProviderSetup:
    names = PROVIDERS[name].credentials
    sources = {
        variable: CredentialOrigin.ENVIRONMENT
        if has_value(variable, process)
        else CredentialOrigin.STORED
        if variable in kept
        else CredentialOrigin.MISSING
        for variable in names
    }
    overridden = tuple(
        file_of(root, variable) for variable in names if has_value(variable, process) and variable in kept
    )
    return ProviderSetup(name, PROVIDERS[name], is_set_up(name, environment), sources, overridden)
