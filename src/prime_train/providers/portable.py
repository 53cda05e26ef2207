"""Credentials for a control plane on another machine, where the files that they name on this one are not."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.errors import PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.configured import load, reading_context
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.stored_keys import has_value


@dataclass(frozen=True)
class Carried:
    """Values that mean the same on every machine. `private`: hosts that are called with them, and that only a
    network of their own reaches. `logs_in`: whether the user has to let the control plane's own SSH key in on
    some.
    """

    values: Mapping[str, str] = field(repr=False)
    private: tuple[str, ...] = ()
    logs_in: bool = False


def carried(values: Mapping[str, str], environment: Mapping[str, str]) -> Carried:
    """Return the values with the contents of all files that credentials of providers among them name. Raises
    UsageError if some can only be used on this machine, with the reason.
    """
    found, hosts, logs_in = dict(values), list[str](), False
    for name in _given(values):
        try:
            made = load(name, reading_context({**environment, **values})).portable()
        except PermanentError as error:
            message = f"{PROVIDERS[name].title}: {error}"
            raise UsageError(message, fix="nothing was stored", code=Exit.EXTERNAL_REFUSED) from None
        if made is not None:
            found |= made.values
            hosts += made.hosts
            logs_in = logs_in or made.logs_in
    return Carried(found, tuple(dict.fromkeys(host for host in hosts if is_private(host))), logs_in)


def only_here(name: str, values: Mapping[str, str]) -> str:
    """Return why the credentials of this provider among the values work on this machine alone, if they do;
    otherwise empty.
    """
    named = [
        variable
        for variable in PROVIDERS[name].credentials
        if file_named(values.get(variable, "")) is not None
    ]
    if named:
        return (
            f"{named[0]} is the path of a file of this machine; add the provider again, which stores "
            "the file's content"
        )
    try:
        carried({variable: values[variable] for variable in PROVIDERS[name].credentials}, {})
    except UsageError as error:
        return str(error)
    return ""


def file_named(value: str) -> Path | None:
    """Return the file that a credential names, such as a list of machines; None if it names none."""
    try:
        path = Path(value).expanduser().absolute()
        return path if path.is_file() else None
    except (
        OSError,
        ValueError,
        RuntimeError,
    ):  # a key may be too long for a path, or begin with the name of no user
        return None


def is_private(host: str) -> bool:
    """Return whether only a network of its own reaches the host, by its address or name."""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".internal", ".local"))


def _given(values: Mapping[str, str]) -> Sequence[str]:
    """Return the providers whose settings are among the values. Others are not loaded, because their packages
    may not be installed.
    """
    rows = ((name, row.credentials) for name, row in PROVIDERS.items() if row.are_settings)
    return [name for name, variables in rows if all(has_value(one, values) for one in variables)]
