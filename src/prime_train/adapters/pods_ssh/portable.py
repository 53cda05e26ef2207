"""The list of machines as a text that can be used on any machine: with the host keys that were read from files of this one."""

import json
from collections.abc import Sequence

from prime_train.adapters.pods_ssh.hosts import VARIABLE, Host, Kind
from prime_train.ports import SSH_PORT, PermanentError, Portable


def portable(kinds: Sequence[Kind]) -> Portable:
    """Return the list. Raises PermanentError if a machine has no known host key, because nobody could accept it elsewhere."""
    content = {"machines": [_entry(kind) for kind in kinds]}
    hosts = tuple(host.address for kind in kinds for host in kind.hosts)
    # In one line: what masks secrets in a log masks each of their lines, such as `count: 8`.
    return Portable({VARIABLE: json.dumps(content, separators=(",", ":"))}, hosts, logs_in=True)


def _entry(kind: Kind) -> dict[str, object]:
    unknown = [host.name for host in kind.hosts if not host.host_keys]
    if unknown:
        raise PermanentError(
            f"the host key of {unknown[0]} is not known here, and elsewhere nobody could accept it; log in once by ssh and accept it, or "
            "write it under host_keys"
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
