"""Whether the providers that are set up here accept their credentials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import ExternalError, PermanentError
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.look import Look, look_at_all
from prime_train.providers.setup import CredentialOrigin, ProviderSetup, rows
from prime_train.providers.stored_keys import exposed, has_value
from prime_train.spec.spec import HardwareSpec


@dataclass(frozen=True)
class ProviderHealth:
    """What asking a provider has shown. `source`: where its credentials come from; `remedy`: what to do;
    empty: nothing.
    """

    name: str
    found: Look | ExternalError
    source: str
    remedy: str

    @property
    def is_wrong(self) -> bool:
        return isinstance(self.found, ExternalError)

    @property
    def status(self) -> str:
        return "wrong" if self.is_wrong else "well"


def health(
    root: Path,
    environment: Mapping[str, str],
    process: Mapping[str, str],
    hardware: HardwareSpec,
    names: Sequence[str] = (),
) -> list[ProviderHealth]:
    """Ask the named providers, or all that are set up here, side by side. `environment` and `process`: as for
    `rows`.
    """
    open_to_others = {path.name for path in exposed(root)}
    there = {
        row.name: row
        for row in rows(root, environment, process)
        if (row.name in names if names else row.is_set_up)
    }
    return [
        _one(there[name], found, open_to_others)
        for name, found in look_at_all(list(there), environment, hardware)
    ]


def health_of(values: Mapping[str, str], hardware: HardwareSpec) -> list[ProviderHealth]:
    """Ask the providers whose credentials are among these values, such as those of a deployment's secret."""
    names = [
        name
        for name, kind in PROVIDERS.items()
        if kind.credentials and all(has_value(one, values) for one in kind.credentials)
    ]
    return [
        ProviderHealth(name, found, "the secret", "") for name, found in look_at_all(names, values, hardware)
    ]


def _one(row: ProviderSetup, found: Look | ExternalError, open_to_others: set[str]) -> ProviderHealth:
    source = (
        ", ".join(f"{name} ({source.value})" for name, source in row.sources.items())
        if row.has_credentials
        else "those of its own tool"
    )
    return ProviderHealth(row.name, found, source, _remedy(row, found, open_to_others))


def _remedy(row: ProviderSetup, found: Look | ExternalError, open_to_others: set[str]) -> str:
    if isinstance(found, PermanentError):
        by_environment = [
            name for name, source in row.sources.items() if source is CredentialOrigin.ENVIRONMENT
        ]
        return (
            f"set {' and '.join(by_environment)} anew"
            if by_environment
            else "add the provider again with a new key"
        )
    if isinstance(found, ExternalError):
        return "runs rent from the other providers meanwhile; check again later"
    if open_to_others & row.sources.keys():
        return "others on this machine may read the stored file; add the provider again"
    return ""
