"""The address of a pod's SSH server: the public port that is mapped to port 22 of the container.

RunPod's SSH proxy is no substitute, because it carries an interactive shell only.
"""

from pydantic import ValidationError

from prime_train.adapters.pods_runpod.models import Endpoint, MappedPort, Rented, Runtime, Ssh
from prime_train.adapters.rental_api.parsing import P
from prime_train.adapters.rental_api.ssh import public_ssh_address
from prime_train.ports import SSH_PORT, SshAddress

USER = "root"


ADDRESS_S_MAX = 240
"""Seconds after its start at which a container that has an address at all has one."""


def has_no_address(rented: Rented) -> bool:
    """Return whether the pod runs, and will have no address that can be reached: machines of the community cloud may have none, and the
    API has no field to ask for one."""
    uptime_s = (_read(Runtime, rented.runtime) or Runtime()).uptime
    return uptime_s is not None and uptime_s >= ADDRESS_S_MAX and connection_of(rented) is None


def connection_of(rented: Rented) -> SshAddress | None:
    """Return the pod's SSH address; None if RunPod does not give a usable one yet."""
    direct = (_read(Ssh, rented.ssh) or Ssh()).direct or Endpoint()
    found = public_ssh_address(rented.id, direct.username or USER, direct.host, _port(direct.port))
    return found if found is not None else _mapped(rented)


def _mapped(rented: Rented) -> SshAddress | None:
    ports = (_read(Runtime, rented.runtime) or Runtime()).ports or ()
    usable = (public_ssh_address(rented.id, USER, port.ip, _port(port.public)) for port in ports if _is_ssh(port))
    return next((address for address in usable if address is not None), None)


def _is_ssh(port: MappedPort) -> bool:
    return port.private == SSH_PORT and (port.type or "").lower() == "tcp"


def _port(figure: float | None) -> object:
    return int(figure) if figure is not None and figure.is_integer() else None


def _read(kind: type[P], content: object) -> P | None:
    """Return the content as `kind`; None if it is not valid, because an address that cannot be read must not hide the pod."""
    try:
        return kind.model_validate(content)
    except ValidationError:
        return None
