"""SSH addresses that a rental API wrote. Their parts become arguments of ssh, so that none may begin with a
dash.
"""

import re
from ipaddress import ip_address, ip_network

from prime_train.providers.port import SshAddress

USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
HOST = r"\[?[A-Za-z0-9:][A-Za-z0-9.:-]*\]?"

_PRIVATE = tuple(
    map(
        ip_network,
        (
            "10.0.0.0/8",
            "100.64.0.0/10",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "fc00::/7",
            "fe80::/10",
        ),
    )
)
"""Networks whose addresses mean something else on each side: a machine that was rented elsewhere is not
reached there.
"""


def port_number(given: object) -> int | None:
    """Return the port as a number, from text or a whole number; None if it is not a valid port."""
    text = str(int(given) if isinstance(given, float) and given.is_integer() else given)
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,4}", text) and int(text) < 2**16 else None


def public_ssh_address(pod_id: str, user: object, host: object, port: object) -> SshAddress | None:
    """Return the address from its parts; None if one of them is not valid, or if it is an address in a
    private network of the provider.
    """
    found = ssh_address(pod_id, user, host, port)
    return None if found is None or _is_private(found.host) else found


def _is_private(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped.version == network.version and mapped in network for network in _PRIVATE)


def ssh_address(pod_id: str, user: object, host: object, port: object) -> SshAddress | None:
    """Return the address from its parts; None if one of them is not valid."""
    number = port_number(port)
    if not (
        isinstance(user, str)
        and re.fullmatch(USER, user)
        and isinstance(host, str)
        and re.fullmatch(HOST, host)
        and number
    ):
        return None
    return SshAddress(pod_id, user, host.strip("[]"), number)
