"""SSH addresses that a rental API wrote. Their parts become arguments of ssh, so that none may begin with a dash."""

import re

from prime_train.ports import SshAddress

USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
HOST = r"\[?[A-Za-z0-9:][A-Za-z0-9.:-]*\]?"


def port_number(given: object) -> int | None:
    """Return the port as a number, from text or a number; None if it is not a valid port."""
    text = str(given)
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,4}", text) and int(text) < 2**16 else None


def ssh_address(pod_id: str, user: object, host: object, port: object) -> SshAddress | None:
    """Return the address from its parts; None if one of them is not valid."""
    number = port_number(port)
    if not (isinstance(user, str) and re.fullmatch(USER, user) and isinstance(host, str) and re.fullmatch(HOST, host) and number):
        return None
    return SshAddress(pod_id, user, host.strip("[]"), number)
