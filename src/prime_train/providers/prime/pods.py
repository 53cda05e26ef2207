"""The port `Pods` on Prime Intellect.

The create call has no idempotency key. The price is limited twice: by the maximum price in the create call,
and by a comparison with the response, because the server's own check has not always been in effect.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Unpack

from prime_train.providers.port import SSH_PORT, Installer, SshAddress
from prime_train.providers.prime import availability, offers
from prime_train.providers.prime.client import PrimeClient, is_pod_id
from prime_train.providers.prime.models import AvailableMachine, PrimePod
from prime_train.providers.prime.offers import RequestedMachine, Terms
from prime_train.providers.rental import ssh_key as ssh
from prime_train.providers.rental.parsing import believable_usd, second
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.providers.rental.reasons import short
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.spec.spec import HardwareSpec

SSH_KEY_NAME = "prime-train"
USER = "root"
"""The user to log in as if Prime names none."""
TEXT_CHARS_MAX = 500
_AT = re.compile(f"({ssh.USER})@({ssh.HOST})")
_NO_HOST = re.compile(f"({ssh.USER})@")

STATUSES = {
    "PROVISIONING": PodStatus.PENDING,
    "PENDING": PodStatus.PENDING,
    "ACTIVE": PodStatus.ACTIVE,
    "TERMINATED": PodStatus.GONE,
    "ERROR": PodStatus.BROKEN,
    "STOPPED": PodStatus.BROKEN,
}
"""The status of the port `Pods` for each of Prime's; any other one of Prime's, such as DELETING or UNKNOWN,
becomes UNKNOWN.

Only TERMINATED and an unknown id prove that a pod has ended: with any other status the machine may still run
and cost money, and heartbeats decide. How Prime reports a preempted machine is not documented.
"""

INSTALLING = frozenset({"PENDING", "ACTIVE"})
"""Statuses of an installation in progress; ACTIVE means that it is under way."""
BROKEN = frozenset({"ERROR", "TERMINATED"})


def status_of(rented: PrimePod) -> PodStatus:
    """Return ACTIVE only if the installation has finished too. It counts as finished if its progress is 100
    %, or if Prime reports no status for it.
    """
    status = STATUSES.get((rented.status or "").upper(), PodStatus.UNKNOWN)
    installation = (rented.installation_status or "").upper()
    if status is not PodStatus.ACTIVE:
        return status
    if installation in BROKEN:
        return PodStatus.BROKEN
    return (
        PodStatus.PENDING
        if installation in INSTALLING and (rented.installation_progress or 0) < 100
        else PodStatus.ACTIVE
    )


def pod_of(rented: PrimePod) -> Pod:
    ended_s = second(rented.terminated_at) or None
    return Pod(
        rented.id,
        rented.name or "",
        status_of(rented),
        second(rented.created_at),
        believable_usd(rented.price_hr),
        ended_s,
    )


def connection_of(rented: PrimePod) -> SshAddress | None:
    """Return the pod's SSH address, from its SSH line, or else from its IP address and mapped port. None if
    Prime does not give it yet.

    The line is a command, or a part of one, in several forms. Active pods of some providers never have one
    (observed at datacrunch: null, `[null]`, empty, or without the host); their address and the outer port of
    their SSH server are then in separate fields.
    """
    return read_connection(rented.id, rented.ssh_connection) or _by_address(rented)


def read_connection(pod_id: str, value: object) -> SshAddress | None:
    """Return the address in Prime's SSH line, or in the first usable one of a list (machines of several
    nodes). None if there is none yet, or it cannot be parsed.
    """
    found = (_read(pod_id, text) for text in _texts(value))
    return next((connection for connection in found if connection is not None), None)


def _by_address(rented: PrimePod) -> SshAddress | None:
    """Return the address from the IP address and the mapped port. If Prime's SSH line has a user but no host,
    the user is taken from it, and also the port if none is mapped.
    """
    line = next(
        (
            words
            for words in map(str.split, _texts(rented.ssh_connection))
            if any(map(_NO_HOST.fullmatch, words))
        ),
        [],
    )
    user = next((match.group(1) for match in map(_NO_HOST.fullmatch, line) if match), USER)
    host = next((text.strip("[]") for text in _texts(rented.ip) if re.fullmatch(ssh.HOST, text)), None)
    port = _mapped_port(rented) or (_port(line) if line else None)
    return SshAddress(rented.id, user, host, port) if host and port else None


def _mapped_port(rented: PrimePod) -> int | None:
    """Return the outer port that is mapped to the SSH server, or None if there is no such mapping."""
    entries = rented.prime_port_mapping if isinstance(rented.prime_port_mapping, list) else []
    outer = (
        entry.get("external")
        for entry in entries
        if isinstance(entry, dict) and str(entry.get("usedBy")).upper() == "SSH"
    )
    return next((port for port in map(ssh.port_number, outer) if port), None)


def _texts(value: object) -> Iterator[str]:
    """Yield the non-empty texts, stripped, in a value that may be a text, a list of texts and nulls, or
    anything else.
    """
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and len(text) <= TEXT_CHARS_MAX and text.strip():
            yield text.strip()


def _read(pod_id: str, text: str) -> SshAddress | None:
    words = text.split()
    at = next((match for match in map(_AT.fullmatch, words) if match), None)
    port = _port(words)
    return SshAddress(pod_id, at.group(1), at.group(2).strip("[]"), port) if at and port else None


def _port(words: list[str]) -> int | None:
    """Return the port given by -p, as a separate word or not, or the default port if there is no -p; None if
    it is not a valid port.
    """
    given = next(
        (
            word[2:] or "".join(words[place + 1 : place + 2])
            for place, word in enumerate(words)
            if word.startswith("-p")
        ),
        str(SSH_PORT),
    )
    return ssh.port_number(given)


class PrimePods(RentalPods[AvailableMachine, PrimePod]):
    """Pods of one account or team. `public_key`, in OpenSSH's format, is put on every machine; without it the
    account's primary key is used. `pause` waits between requests for a list that should not be empty.
    """

    example_id = "runpod:A100_80GB:PCIe:1x:US-KS-2:secure:spot"
    _client: PrimeClient

    def __init__(
        self,
        client: PrimeClient,
        pusher: Installer,
        *,
        public_key: str = "",
        terms: Terms | None = None,
        pause: Callable[[float], None] = time.sleep,
        **plane: Unpack[Plane],
    ) -> None:
        super().__init__(client, pusher, **plane)
        self._public_key, self._ssh_key_id = public_key, ""
        self._terms = terms if terms is not None else Terms()
        self._pause = pause

    def burn_usd_per_hour(self, wallet_id: str | None = None) -> float:
        """Return the hourly cost in USD of all pods listed last, whoever rented them, that are paid from that
        wallet or whose wallet is unknown.
        """
        return sum(
            pod_of(rented).usd_per_hour
            for rented in self._alive
            if wallet_id is None or rented.wallet_id in (None, wallet_id)
        )

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, AvailableMachine]:
        return offers.named(availability.rows(self._client, self._pause), hardware)

    def _offer(self, offer_id: str, machine: AvailableMachine, hardware: HardwareSpec) -> Offer:
        """Return the offer, priced with the disk that `hardware` asks for."""
        return offers.offer(offer_id, machine, hardware, self._terms)

    def _rent(
        self, name: str, machine: AvailableMachine, hardware: HardwareSpec, most_usd: float
    ) -> PrimePod:
        requested = offers.requested_machine(machine, hardware)
        image = (self._terms.image(machine, hardware.image), offers.template_of(hardware.image))
        body = _order(name, machine, requested, most_usd, image=image, ssh_key_id=self._key_id())
        return self._client.create(body | self._client.paid_by())

    def _charged_usd(self, rented: PrimePod) -> float:
        return rented.price_hr or 0.0

    @staticmethod
    def _condition(rented: PrimePod) -> str:
        words = (rented.status, rented.installation_status, rented.installation_failure)
        return ", ".join(short(word) for word in words if word)

    _pod_of = staticmethod(pod_of)
    _address_of = staticmethod(connection_of)
    _is_pod_id = staticmethod(is_pod_id)
    _is_offer_id = staticmethod(offers.is_offer_id)

    def _key_id(self) -> str:
        if self._public_key and not self._ssh_key_id:
            self._ssh_key_id = self._client.ssh_key_id(self._public_key, SSH_KEY_NAME)
        return self._ssh_key_id


def _order(
    name: str,
    row: AvailableMachine,
    requested: RequestedMachine,
    ceiling_usd: float,
    *,
    image: tuple[str | None, str | None],
    ssh_key_id: str,
) -> dict[str, object]:
    """Return the body of the create call, which repeats one row. Empty fields are left out, because unknown
    or empty fields are refused. `image`: the name of the image, and the id of the template if it is that of
    one.

    It contains no settings and no secrets: whether variables given here reach a login shell is not
    documented. Prime's automatic restart is off, because what it keeps is not documented either; the watcher
    restarts runs.
    """
    pod: dict[str, object] = {
        "name": name,
        "cloudId": row.cloud_id,
        "gpuType": row.gpu_type,
        "socket": row.socket,
        "gpuCount": row.gpu_count,
        "diskSize": requested.disk_gb,
        "vcpus": requested.vcpus,
        "memory": requested.memory_gb,
        "maxPrice": ceiling_usd,
        "image": image[0],
        "customTemplateId": image[1],
        "dataCenterId": row.data_center,
        "country": row.country,
        "security": row.security,
        "sshKeyId": ssh_key_id or None,
        "autoRestart": False,
    }
    return {
        "pod": {key: value for key, value in pod.items() if value is not None},
        "provider": {"type": row.provider},
    }
