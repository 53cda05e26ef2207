"""The list of the machines, a file or its text: its format, and what is wrong with one.

Only a machine whose host key is known is logged in to: either from the list itself, or from a file in
OpenSSH's format, in which it is after the user has logged in once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from prime_train.errors import PermanentError
from prime_train.providers.port import SSH_PORT, SshAddress
from prime_train.providers.rental.parsing import USD_MAX, complaint
from prime_train.providers.rental.ssh_key import ssh_address
from prime_train.providers.rental.user_settings import home_folder, is_text
from prime_train.providers.ssh_client.known_hosts import known_keys

VARIABLE = "PRIME_TRAIN_SSH_HOSTS"
FILE_BYTES_MAX = 2**20
HOSTS_MAX = 1000
NAME = "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
USER = "root"
KNOWN_HOSTS = Path(".ssh/known_hosts")

_ADDRESS = re.compile(r"(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^@:\[\]]+)(?::(?P<port>[0-9]+))?")

Key = Annotated[
    str,
    StringConstraints(
        pattern=r"^(ssh|ecdsa)-[a-z0-9-]+ [A-Za-z0-9+/=]+( .*)?$", max_length=2000, strip_whitespace=True
    ),
]


class HostEntry(BaseModel):
    """A machine, or several of the same kind, as the file names them."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=f"^{NAME}$")
    address: str | None = None
    addresses: tuple[str, ...] = Field(default=(), max_length=HOSTS_MAX)
    gpu: str = Field(default="", max_length=64, pattern="^[A-Za-z0-9_]*$")
    count: int = Field(default=0, ge=0, le=1024)
    disk_gib: int = Field(ge=1, le=10**9)
    usd_per_hour: float = Field(default=0.0, ge=0, le=USD_MAX)
    host_keys: tuple[Key, ...] = ()
    """What the machines' SSH servers identify themselves with, as in /etc/ssh/ssh_host_ed25519_key.pub."""


class File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    machines: tuple[HostEntry, ...] = Field(min_length=1, max_length=HOSTS_MAX)
    known_hosts: str = ""
    """A file with host keys; by default the user's own."""


@dataclass(frozen=True)
class Host:
    """A machine of one's own. `name` is unique, and a part of the ids of its pods."""

    name: str
    user: str
    address: str
    port: int
    host_keys: tuple[str, ...]

    def at(self, pod_id: str) -> SshAddress:
        """Return its SSH address as that of a pod."""
        return SshAddress(pod_id, self.user, self.address, self.port, self.host_keys)


@dataclass(frozen=True)
class HostKind:
    """Machines that are the same to a run: one offer."""

    name: str
    gpu: str
    count: int
    disk_gib: int
    usd_per_hour: float
    hosts: tuple[Host, ...]


def read_hosts(environment: Mapping[str, str]) -> tuple[HostKind, ...]:
    """Return the machines that PRIME_TRAIN_SSH_HOSTS lists, as the path of a file or as its text. Raises
    PermanentError that says what is wrong, and where.
    """
    given = environment.get(VARIABLE, "").strip()
    if not given:
        raise PermanentError(f"there is no list of machines to log in to; set {VARIABLE} to a file with one")
    home = home_folder(environment)
    where = VARIABLE if is_text(given) else str(_file(given, home))
    try:
        read = File.model_validate(_content(given if is_text(given) else _text_of(_file(given, home)), where))
    except ValidationError as error:
        raise PermanentError(f"the list of machines, {where}: {complaint(error)}") from None
    known = _file(read.known_hosts, home) if read.known_hosts else home / KNOWN_HOSTS
    kinds = [_kind(entry, where, known) for entry in read.machines]
    _refuse_twice([kind.name for kind in kinds], where, "name")
    hosts = [host for kind in kinds for host in kind.hosts]
    _refuse_twice([f"{host.address}:{host.port}" for host in hosts], where, "address")
    _refuse_twice([host.name for host in hosts], where, "name")
    return tuple(kinds)


def _kind(entry: HostEntry, listed: str, known: Path) -> HostKind:
    where = f"{listed}: machine {entry.name}"
    addresses = entry.addresses if entry.address is None else (entry.address, *entry.addresses)
    if not addresses:
        raise PermanentError(f"{where} has no address; write address: user@host")
    if bool(entry.gpu) is not bool(entry.count):
        raise PermanentError(f"{where}: gpu and count belong together, such as gpu: H100_80GB and count: 8")
    # The first keeps its name when others are appended.
    names = [entry.name, *(f"{entry.name}-{number}" for number in range(2, len(addresses) + 1))]
    hosts = tuple(
        _host(name, address, entry, where, known) for name, address in zip(names, addresses, strict=True)
    )
    return HostKind(entry.name, entry.gpu, entry.count, entry.disk_gib, entry.usd_per_hour, hosts)


def _host(name: str, text: str, entry: HostEntry, where: str, known: Path) -> Host:
    """Return the machine at an address such as me@192.0.2.7:2222, without host keys if none is known."""
    parts = _ADDRESS.fullmatch(text)
    found = (
        ssh_address("", parts["user"] or USER, parts["host"], parts["port"] or SSH_PORT)
        if parts is not None
        else None
    )
    if found is None:
        raise PermanentError(f"{where}: {text[:100]!r} is no address; write user@host, or user@host:port")
    keys = tuple(" ".join(key.split()[:2]) for key in entry.host_keys) or known_keys(known, found)
    return Host(name, found.user, found.host, found.port, keys)


def _content(text: bytes | str, where: str) -> object:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        # Not the parser's own words, which quote the text.
        raise PermanentError(
            f"{where}{f', line {mark.line + 1},' if mark else ''} is not YAML; see docs/ssh.md"
        ) from None


def _text_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX)
    except OSError as error:
        raise PermanentError(
            f"the list of machines, {path}: {error.strerror or error}; check {VARIABLE}"
        ) from error


def _file(text: str, home: Path) -> Path:
    return home / text.removeprefix("~/") if text.startswith("~/") else Path(text)


def _refuse_twice(values: Sequence[str], where: str, what: str) -> None:
    twice = next((value for number, value in enumerate(values) if value in values[:number]), None)
    if twice is not None:
        raise PermanentError(f"{where}: two machines have the {what} {twice}")
