"""The address of an instance's SSH server: a public port of the machine, or else Vast.ai's proxy, which forwards the connection."""

from prime_train.adapters.pods_vast.models import Rented
from prime_train.adapters.rental_api.ssh import public_ssh_address
from prime_train.ports import SshAddress

USER = "root"


def connection_of(rented: Rented) -> SshAddress | None:
    """Return the instance's SSH address; None if Vast.ai does not give a usable one yet."""
    direct = public_ssh_address(rented.pod_id, USER, (rented.public_ipaddr or "").strip(), rented.direct_port)
    return direct if direct is not None else public_ssh_address(rented.pod_id, USER, rented.ssh_host, _port(rented.ssh_port))


def _port(figure: float | None) -> object:
    return int(figure) if figure is not None and figure.is_integer() else None
