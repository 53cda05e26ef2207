"""Conversion of Vast.ai's instances to the pods of the port `Pods`.

An instance has three states. Where somebody bids more, or takes the machine on demand, Vast.ai wants it
stopped, and its container ends some seconds later: it is paused. Its disk is kept, and billed, and it starts
again by itself when nobody bids more any longer, be it hours later. The same is seen where the balance is
used up. Nothing here ever stops an instance, so that one that is wanted stopped has ended.
"""

import re

from prime_train.providers.rental.parsing import believable_usd
from prime_train.providers.vast.models import VastInstance
from prime_train.runs.verdict import Pod, PodStatus

STOPPED = frozenset({"stopped", "exited", "frozen", "unloaded"})
STATUSES = {
    "": PodStatus.PENDING,
    "created": PodStatus.PENDING,
    "loading": PodStatus.PENDING,
    "running": PodStatus.ACTIVE,
    "stopped": PodStatus.BROKEN,
    "exited": PodStatus.BROKEN,
}
"""The status of the port `Pods` for each actual status; any other one becomes UNKNOWN. So do `unknown` and
`offline`, which mean that the host has not reported, and not that the machine has ended: heartbeats decide,
and before the first one the limit for the boot.
"""
SECOND_MAX = 10**11

FAILED_STARTS = {
    r"OCI runtime (?:create|exec) failed": "runc; seen by dstack and in Vast.ai's own console",
    r"nvidia-container-cli: |failed to inject CDI": "the NVIDIA container toolkit",
    r"GPU error|unable to start instance": "Vast.ai's host daemon",
    r"Error response from daemon": "docker, for whatever its daemon refuses",
    r"failed to (?:pull|inject|register layer|create (?:task|shim|endpoint)|start "
    r"container)": "docker, containerd",
    r"(?:could not|cannot|unable to) (?:find|pull) (?:the )?(?:docker )?image|image not found|no such "
    r"image": "Vast.ai, docker",
    r"manifest (?:unknown|for \S+ not found)|no matching "
    r"manifest": "a registry, for a tag or a platform that it does not have",
    r"pull access denied|repository does not exist|(?:requested access .*|access )denied|"
    r"unauthorized: ": "a registry",
    r"invalid reference format|name unknown": "docker, a registry",
    r"toomanyrequests|pull rate limit": "Docker Hub",
    r"no space left on device|disk quota exceeded": "the host's disk",
    r"exec format error|exec: \S+: (?:not found|executable file not found|no such "
    r"file)": "an image for another kind of machine",
    r"port is already allocated|address already in use": "docker",
}
"""What `status_msg` says where an image never starts, with who writes it. Vast.ai leaves the instance in
`created` or `loading` then, and bills it; it does not try again. The words of docker, containerd and
registries are those of their sources.
"""
_FAILED_START = re.compile("|".join(FAILED_STARTS), re.IGNORECASE)
_GOES_ON = re.compile(r"\b(?:retrying|waiting)\b|\bwill (?:retry|try)", re.IGNORECASE)
"""What is said of a failure after which the host tries again by itself."""


def pod_of(rented: VastInstance) -> Pod:
    return Pod(
        rented.pod_id,
        rented.label or "",
        _status(rented),
        _second(rented.start_date),
        believable_usd(rented.dph_total),
    )


def is_paused(rented: VastInstance) -> bool:
    """Return whether the instance is wanted stopped, and is so by a second of its states, so that one wrong
    field does not end it.
    """
    others = (rented.cur_state, rented.next_state, rented.actual_status)
    return _plain(rented.intended_status) == "stopped" and any(_plain(state) in STOPPED for state in others)


def condition(rented: VastInstance) -> str:
    """Return Vast.ai's own words for the instance's states."""
    return (
        f"{rented.actual_status or 'no status'}, wanted {rented.intended_status or 'in no state'}: "
        f"{rented.status_msg or 'no message'}"
    )


def _status(rented: VastInstance) -> PodStatus:
    if is_paused(rented):
        return PodStatus.BROKEN
    status = STATUSES.get(_plain(rented.actual_status), PodStatus.UNKNOWN)
    said = rented.status_msg or ""
    if status is PodStatus.PENDING and _FAILED_START.search(said) and not _GOES_ON.search(said):
        return PodStatus.BROKEN
    return status


def _plain(text: str | None) -> str:
    return (text or "").strip().lower()


def _second(figure: float | None) -> int:
    return int(figure) if figure is not None and 0 < figure < SECOND_MAX else 0
