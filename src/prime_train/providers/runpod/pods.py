"""The port `Pods` on RunPod.

The create call has no idempotency key, and no maximum price either: a pod that costs more than its offer is
given back at once.

The pod gets this control plane's public SSH key by the variable PUBLIC_KEY, from which RunPod's images start
their SSH server, and which RunPod fills with the account's keys only where it is not set. The list of the
account's keys could be replaced only as a whole, so that two control planes that add theirs at once would
each lock the other one out.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Unpack

from pydantic import ValidationError

from prime_train.errors import ExternalError, TemporaryError
from prime_train.providers.kinds import ImageForm
from prime_train.providers.port import SSH_PORT, Installer, SshAddress
from prime_train.providers.rental.parsing import P, believable_usd, readable, second
from prime_train.providers.rental.pods import Plane, RentalPods
from prime_train.providers.rental.reasons import short
from prime_train.providers.rental.ssh_key import public_ssh_address
from prime_train.providers.runpod import offers
from prime_train.providers.runpod.client import CUDA_MIN, CUDA_VERSIONS, RunPodClient, is_pod_id
from prime_train.providers.runpod.models import Endpoint, GpuType, RunPodPod, Runtime, Ssh
from prime_train.providers.runpod.offers import RunPodMachine, Volume
from prime_train.providers.runpod.settings import CLOUDS, TITLE
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.spec.image import TEMPLATE, form_of
from prime_train.spec.spec import HardwareSpec

IMAGE = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
"""An image of RunPod's own, whose start script serves SSH for PUBLIC_KEY. It is kept on RunPod's machines, so
that it starts quickly.
"""
SSH_PORTS = ("22/tcp",)
USER = "root"
ADDRESS_S_MAX = 240
"""Seconds after its start at which a container that has an address at all has one."""
EXITED = "EXITED"
STATUSES = {
    "PROVISIONING": PodStatus.PENDING,
    "STARTING": PodStatus.PENDING,
    "RUNNING": PodStatus.ACTIVE,
    EXITED: PodStatus.BROKEN,
    "ERROR": PodStatus.BROKEN,
    "TERMINATED": PodStatus.GONE,
}
"""The status of the port `Pods` for each of RunPod's; any other one becomes UNKNOWN.

A pod that has exited has lost its disk, and its machine may be given to others, but it is listed, and a disk
that outlives its container is charged for, until it is terminated. See `RunPodPods.get`.
"""

log = logging.getLogger(__name__)


def has_no_address(rented: RunPodPod) -> bool:
    """Return whether the pod runs, and will have no address that can be reached: machines of the community
    cloud may have none, and the API has no field to ask for one.
    """
    uptime_s = (_read(Runtime, rented.runtime) or Runtime()).uptime
    return uptime_s is not None and uptime_s >= ADDRESS_S_MAX and connection_of(rented) is None


def connection_of(rented: RunPodPod) -> SshAddress | None:
    """Return the pod's SSH address, which is the public port that is mapped to port 22 of the container; None
    if RunPod does not give a usable one yet. RunPod's SSH proxy is no substitute, because it carries an
    interactive shell only."""
    direct = (_read(Ssh, rented.ssh) or Ssh()).direct or Endpoint()
    mapped = (_read(Runtime, rented.runtime) or Runtime()).ports or ()
    given = [(direct.username or USER, direct.host, direct.port)]
    given += [
        (USER, port.ip, port.public)
        for port in mapped
        if port.private == SSH_PORT and (port.type or "").lower() == "tcp"
    ]
    usable = (public_ssh_address(rented.id, *each) for each in given)
    return next((address for address in usable if address is not None), None)


def _read(kind: type[P], content: object) -> P | None:
    """Return the content as `kind`; None if it is not valid, because an address that cannot be read must not
    hide the pod.
    """
    try:
        return kind.model_validate(content)
    except ValidationError:
        return None


def pod_of(rented: RunPodPod) -> Pod:
    """Return the pod. One that runs without an address is broken: no agent can be installed on it."""
    status = STATUSES.get((rented.status or "").upper(), PodStatus.UNKNOWN)
    if status is PodStatus.ACTIVE and has_no_address(rented):
        status = PodStatus.BROKEN
    return Pod(rented.id, rented.name or "", status, second(rented.created_at), believable_usd(rented.cost))


def has_exited(rented: RunPodPod) -> bool:
    return (rented.status or "").upper() == EXITED


class RunPodPods(RentalPods[RunPodMachine, RunPodPod]):
    """Pods of one account. `public_key`, in OpenSSH's format, is put on every machine; without it, the
    account's keys are. `clouds`: those whose machines may be rented. `spot`: whether spot machines are
    offered, too.

    A pod that has exited is ended by `get`: its disk is lost, and neither its agent nor its GPUs come back,
    but it stays on the list.
    """

    example_id = "NVIDIA-H100-80GB-HBM3:8x:US-KS-2:secure:on-demand"
    _client: RunPodClient

    def __init__(
        self,
        client: RunPodClient,
        pusher: Installer,
        *,
        public_key: str = "",
        clouds: Sequence[str] = CLOUDS,
        spot: bool = False,
        **plane: Unpack[Plane],
    ) -> None:
        super().__init__(client, pusher, **plane)
        self._public_key, self._clouds, self._spot = public_key, tuple(clouds), spot
        self._volumes: dict[str, Volume] = {}

    def _for_rent(self, hardware: HardwareSpec) -> Mapping[str, RunPodMachine]:
        """Return every machine that is not sold out and has a wanted number of GPUs."""
        found: dict[str, RunPodMachine] = {}
        self._volumes = {name: volume for name, volume in self._volumes.items() if volume.place}
        for count in offers.counts(hardware):
            for cloud in CLOUDS:
                rows = readable(GpuType, self._client.gpus(cloud, count), TITLE)
                spot = (
                    offers.spot_machines(rows, self._bids(cloud, count), count, cloud) if self._spot else []
                )
                for machine in (*offers.machines(rows, count, cloud), *spot):
                    found.setdefault(machine.offer_id, machine)
        return found

    def _bids(self, cloud: str, count: int) -> dict[str, float]:
        """Return the bids for spot machines; empty if they cannot be had, which must not keep anybody from
        the others.
        """
        try:
            return self._client.bids(cloud, count)
        except ExternalError as error:
            log.warning("spot machines of %s are left out: %s", TITLE, error)
            return {}

    def _offer(self, offer_id: str, machine: RunPodMachine, hardware: HardwareSpec) -> Offer:
        return offers.offer(machine, hardware, self._clouds, self._volume(hardware))

    def _volume(self, hardware: HardwareSpec) -> Volume | None:
        """Return the network volume that the config names, with the data centre that it is in, which never
        changes; None: it names none. One that the account does not have is asked for again at the next
        listing.
        """
        name = next((volume.name for volume in hardware.volumes.values()), None)
        if name is None:
            return None
        if name not in self._volumes:
            found = self._client.volume(name)
            self._volumes[name] = Volume(name, found.data_center if found is not None else "")
        return self._volumes[name]

    def _rent(self, name: str, machine: RunPodMachine, hardware: HardwareSpec, most_usd: float) -> RunPodPod:
        if machine.bid_usd is not None:
            rented = self._client.rent_spot(_spot_order(name, machine, hardware, self._public_key))
        else:
            rented = self._client.create(
                _order(name, machine, hardware, self._public_key, self._volume(hardware))
            )
        if rented.name != name:
            raise TemporaryError(f"the answer to the create call is about another pod than {name}")
        return rented

    def _has_ended(self, rented: RunPodPod) -> bool:
        return has_exited(rented)

    @staticmethod
    def _condition(rented: RunPodPod) -> str:
        return short(rented.status or "it has no status")

    _pod_of = staticmethod(pod_of)
    _address_of = staticmethod(connection_of)
    _is_pod_id = staticmethod(is_pod_id)
    _is_offer_id = staticmethod(offers.is_offer_id)


def _image(hardware: HardwareSpec) -> dict[str, object]:
    """Return the field that says which image the pod starts from."""
    if hardware.image is None:
        return {"image": IMAGE}
    if form_of(hardware.image) is ImageForm.TEMPLATE:
        return {"templateId": hardware.image.removeprefix(TEMPLATE)}
    return {"image": hardware.image}


def _order(
    name: str, machine: RunPodMachine, hardware: HardwareSpec, public_key: str, volume: Volume | None
) -> dict[str, object]:
    """Return the body of the create call. It contains no settings and no secrets: anyone who may read the
    account's pods sees it.
    """
    order: dict[str, object] = {
        "name": name,
        **_image(hardware),
        "gpu": {"id": machine.gpu.id, "count": machine.count, "minCudaVersion": CUDA_MIN},
        "cloud": machine.cloud,
        "disk": offers.disk_gb(hardware),
        "ports": list(SSH_PORTS),
        "startSsh": True,
    }
    if machine.place is not None:
        order["dataCenterIds"] = [machine.place.id]
    if volume is not None:
        order["dataCenterIds"] = [volume.place]
        order["mounts"] = {"network": [{"volumeId": volume.id, "path": next(iter(hardware.volumes))}]}
    if public_key:
        order["env"] = {"PUBLIC_KEY": public_key.strip()}
    return order


def _spot_order(
    name: str, machine: RunPodMachine, hardware: HardwareSpec, public_key: str
) -> dict[str, object]:
    """Return the input of the mutation that rents a spot machine, which is worded as version 1 of the API
    was. The bid is for one GPU.
    """
    assert machine.bid_usd is not None
    image = _image(hardware)
    order: dict[str, object] = {
        "name": name,
        **({"imageName": image["image"]} if "image" in image else image),
        "gpuTypeId": machine.gpu.id,
        "gpuCount": machine.count,
        "bidPerGpu": machine.bid_usd,
        "cloudType": machine.cloud,
        "containerDiskInGb": offers.disk_gb(hardware),
        "volumeInGb": 0,
        "supportPublicIp": True,
        "ports": ",".join(SSH_PORTS),
        "startSsh": True,
        "allowedCudaVersions": list(CUDA_VERSIONS),
    }
    if public_key:
        order["env"] = [{"key": "PUBLIC_KEY", "value": public_key.strip()}]
    return order
