"""The port `Provider` on machines of one's own. Nobody is paid, and nothing is billed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import SSH_PORT, Portable, Provider, ProviderContext, SshAddress
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.ssh.hosts import VARIABLE, Host, HostKind, read_hosts
from prime_train.providers.ssh.pods import Commands, SshPods, hosts_of
from prime_train.providers.ssh_client.keys import login_key
from prime_train.providers.ssh_client.known_hosts import KnownHosts
from prime_train.providers.ssh_client.shell import connect
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class SshProvider(Provider):
    """Machines that a file lists, reached with the control plane's own SSH key."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def pods(self) -> SshPods:
        return self._pods

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return all machines of the list, free or not: the key that logs in to them is in the control
        plane's folder.
        """
        return SshPods(self._kinds, None, self._context.install).offers(hardware)

    def all_pods(self) -> Sequence[Pod]:
        return SshPods(self._kinds, None, self._context.install).every()

    def portable(self) -> Portable:
        return portable(self._kinds)

    def connection(self, pod_id: str) -> SshAddress | None:
        return self._pods.connection(pod_id)

    def unreachable_reason(self) -> str:
        """Return why the machines could not reach this control plane; empty if they could, or if all of them
        are this machine.
        """
        return (
            ""
            if all(host.address in LOOPBACK for host in hosts_of(self._kinds))
            else self._context.unreachable_reason()
        )

    @contextmanager
    def _enter(self, address: SshAddress) -> Iterator[Commands]:
        root = self._context.root
        try:
            with connect(
                address,
                login_key(root / "ssh", self._context.master),
                KnownHosts(root / "ssh-hosts" / "known_hosts"),
            ) as shell:
                yield shell
        except TemporaryError as error:
            if "refuses the SSH key" not in str(error):
                raise
            line = self._context.public_key().strip()
            raise TemporaryError(
                f"{error}; append this line to ~/.ssh/authorized_keys there: {line}"
            ) from error

    @cached_property
    def _pods(self) -> SshPods:
        context = self._context
        closed = self.unreachable_reason() if context.may_rent else ""
        return SshPods(
            self._kinds, self._enter, context.install, mark=PodMark.of(context.master), closed=closed
        )

    @cached_property
    def _kinds(self) -> tuple[HostKind, ...]:
        return read_hosts(self._context.environment)


def portable(kinds: Sequence[HostKind]) -> Portable:
    """Return the list. Raises PermanentError if a machine has no known host key, because nobody could accept
    it elsewhere.
    """
    content = {"machines": [_entry(kind) for kind in kinds]}
    hosts = tuple(host.address for kind in kinds for host in kind.hosts)
    # In one line: what masks secrets in a log masks each of their lines, such as `count: 8`.
    return Portable({VARIABLE: json.dumps(content, separators=(",", ":"))}, hosts, logs_in=True)


def _entry(kind: HostKind) -> dict[str, object]:
    unknown = [host.name for host in kind.hosts if not host.host_keys]
    if unknown:
        raise PermanentError(
            f"the host key of {unknown[0]} is not known here, and elsewhere nobody could accept it; log in "
            "once by ssh and accept it, or write it under host_keys"
        )
    kept = {"gpu": kind.gpu, "count": kind.count} if kind.gpu else {}
    return {
        "name": kind.name,
        "addresses": [_address(host) for host in kind.hosts],
        **kept,
        "disk_gib": kind.disk_gib,
        "usd_per_hour": kind.usd_per_hour,
        "host_keys": list(dict.fromkeys(key for host in kind.hosts for key in host.host_keys)),
    }


def _address(host: Host) -> str:
    name = f"[{host.address}]" if ":" in host.address else host.address
    return f"{host.user}@{name}" if host.port == SSH_PORT else f"{host.user}@{name}:{host.port}"
