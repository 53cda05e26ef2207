"""The port `Pods` on machines of one's own.

Each machine itself keeps who has it, in a file that `host.sh` changes under a lock: so two control planes
never take the same one, and a machine whose answer was lost is found by the name of the attempt. Such a pod
ends when its processes are killed and its files deleted; nothing else on the machine is touched.

A machine that does not answer is UNKNOWN, and not gone: it may still train, and the lease fences it. One that
has started again since it was taken runs nothing of the attempt any more.
"""

import logging
import re
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import ExternalError, NoCapacity, PermanentError, TemporaryError
from prime_train.estimate import gpus
from prime_train.providers.port import Installer, SshAddress
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.pods import owned
from prime_train.providers.rental.reasons import short
from prime_train.providers.ssh.hosts import NAME, VARIABLE, Host, HostKind
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

PROVIDER = "ssh"
COMMAND_S_MAX = 90.0
ASKED_AT_ONCE_MAX = 16
TOKEN_BYTES = 4
NEVER = 78
_SCRIPT = Path(__file__).with_name("host.sh")
_POD_ID = re.compile(rf"({NAME})\.([A-Za-z0-9-]{{1,128}})\.[0-9a-f]{{{2 * TOKEN_BYTES}}}")
_STATE = re.compile(
    r"^machine (?:free|taken (?P<pod>\S+) (?P<name>\S+) (?P<second>\d{1,12}) (?P<was>\S+) (?P<now>\S+)) end$",
    re.MULTILINE,
)

log = logging.getLogger(__name__)


class Answered(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def tail(self) -> str: ...


class Commands(Protocol):
    """A log-in to a machine. `run` raises TemporaryError if it is unknown whether the command was run."""

    def run(self, command: str, *, stdin: bytes = b"", limit_s: float = COMMAND_S_MAX) -> Answered: ...


Enter = Callable[[SshAddress], AbstractContextManager[Commands]]
"""Logs in to a machine, and raises ExternalError before any command was sent."""


class NothingDone(TemporaryError):
    """A machine could not be logged in to, or somebody else was just changing who has it: nothing happened
    there.
    """


@dataclass(frozen=True)
class State:
    """The pod that has a machine. `name` has the mark of a control plane; `is_over`: the machine has started
    again since it was taken.
    """

    pod_id: str
    name: str
    created_s: int
    is_over: bool


class SshPods:
    """The machines of a list. `enter` logs in to one; None in a process that may only read the list. `pusher`
    installs the agent. `mark` distinguishes this control plane's pods from those of others with the same
    machines. `closed`: the reason why no machine may be taken; empty if that is allowed. `wall`: the time of
    day.
    """

    def __init__(
        self,
        kinds: Sequence[HostKind],
        enter: Enter | None,
        pusher: Installer,
        *,
        mark: PodMark | None = None,
        closed: str = "",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._hosts = {host.name: host for kind in kinds for host in kind.hosts}
        self._usd = {host.name: kind.usd_per_hour for kind in kinds for host in kind.hosts}
        self._enter, self._pusher, self._closed, self._wall = enter, pusher, closed, wall
        self._mark = mark if mark is not None else PodMark()
        self._lock = threading.Lock()
        self._known: dict[str, Pod] = {}

    # --------------------------------------------------------------------------------------------------------
    # the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return the kinds of machines of which at least one answers and is free. Raises TemporaryError if
        none answers.
        """
        if self._closed:
            raise PermanentError(self._closed)
        if self._enter is None:
            return [_offer(kind, hardware, len(kind.hosts)) for kind in self._kinds.values()]
        states = self._look_at_all()
        free = {
            kind.name: sum(states.get(host.name, "") is None for host in kind.hosts)
            for kind in self._kinds.values()
        }
        return [_offer(kind, hardware, free[name]) for name, kind in self._kinds.items() if free[name]]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Take a machine of this kind. Raises NoCapacity if none of them is free; TemporaryError if one was
        asked and did not answer.
        """
        kind = self._kinds.get(offer.offer_id)
        if kind is None:
            raise PermanentError(f"there is no offer {offer.offer_id!r}; known: {', '.join(self._kinds)}")
        found, most_usd = _offer(kind, hardware, len(kind.hosts)), hardware.usd_per_hour_max
        if found.hindrance:
            raise PermanentError(f"{kind.name} {found.hindrance}")
        if most_usd is not None and kind.usd_per_hour > most_usd:
            raise NoCapacity(
                f"{kind.name} costs ${kind.usd_per_hour:.2f}/h, above hardware.usd_per_hour_max "
                f"{most_usd:.2f}"
            )
        why: dict[str, str] = {}
        for host in kind.hosts:
            marked, now_s = self._mark.on(name), int(self._wall())
            pod_id = f"{host.name}.{marked}.{secrets.token_hex(TOKEN_BYTES)}"
            try:
                state = self._ask(host, "take", pod_id, marked, str(now_s))
            except (NothingDone, PermanentError) as error:
                why[host.name] = str(error)
                continue
            if state is not None and state.pod_id == pod_id:
                return self._remember(Pod(pod_id, name, PodStatus.ACTIVE, now_s, kind.usd_per_hour))
            why[host.name] = "is taken"
        raise NoCapacity(
            f"{kind.name} has no free machine: "
            f"{short('; '.join(f'{one} {reason}' for one, reason in why.items()))}"
        )

    def list(self) -> Sequence[Pod]:
        """Return the pods of this control plane on all machines that answer, and as UNKNOWN those that were
        seen before on the others. Raises TemporaryError if none answers.
        """
        states = self._look_at_all()
        pods = [self._pod(name, state) for name, state in states.items() if state is not None]
        with self._lock:
            lost = [
                replace(pod, status=PodStatus.UNKNOWN)
                for host, pod in self._known.items()
                if host not in states
            ]
        return owned([*pods, *lost])

    def get(self, pod_id: str) -> Pod | None:
        """Return the pod; None if its machine is free or another pod's. On a machine that has started again,
        what is left of the pod is deleted here, and only then is it GONE. Raises TemporaryError if its
        machine is not in the list any more.
        """
        found = _POD_ID.fullmatch(pod_id)
        if found is None:
            return None
        host = self._host(pod_id)
        try:
            state = self._ask(host, "look")
        except ExternalError as error:
            log.warning("machine %s does not answer: %s", host.name, error)
            with self._lock:
                known = self._known.get(host.name)
            created_s = known.created_s if known is not None and known.pod_id == pod_id else 0
            name = self._mark.without(found[3]) or ""
            return Pod(pod_id, name, PodStatus.UNKNOWN, created_s, self._usd[host.name])
        if state is None or state.pod_id != pod_id:
            return None
        pod = self._pod(host.name, state)
        return self._ended(host, pod) if state.is_over and parse_pod_name(pod.name) is not None else pod

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Install and start the agent. Raises TemporaryError if the pod is gone, its machine does not answer,
        or its agent could not reach this control plane.
        """
        if self._closed:
            raise TemporaryError(self._closed)
        seen = self.get(pod.pod_id)
        if seen is None or seen.status is PodStatus.GONE:
            raise TemporaryError(f"pod {short(pod.pod_id)} is gone")
        if seen.status is not PodStatus.ACTIVE:
            raise TemporaryError(
                f"the machine of pod {short(pod.pod_id)} does not answer, or could not be cleared"
            )
        self._pusher(self._host(pod.pod_id).at(pod.pod_id), ticket)

    def terminate(self, pod_id: str) -> None:
        """Kill the pod's processes, delete its files and free its machine. Raises TemporaryError if its
        machine does not answer, or is not in the list any more.
        """
        if _POD_ID.fullmatch(pod_id) is not None:
            self._end(self._host(pod_id), pod_id)

    # ------------------------------------------------------------------------------------------------ for the
    # port `Provider`

    def connection(self, pod_id: str) -> SshAddress | None:
        found = _POD_ID.fullmatch(pod_id)
        host = self._hosts.get(found[1]) if found is not None else None
        return host.at(pod_id) if host is not None else None

    def every(self) -> Sequence[Pod]:
        """Return the pods of all control planes, under the names on the machines."""
        if self._enter is None:
            return []
        return [
            _as_pod(state, self._usd[name])
            for name, state in self._look_at_all().items()
            if state is not None
        ]

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _host(self, pod_id: str) -> Host:
        name = pod_id.partition(".")[0]
        if name not in self._hosts:
            raise TemporaryError(
                f"machine {name} is not in the list of machines any more, so nothing is known of its pod; "
                f"check {VARIABLE}"
            )
        return self._hosts[name]

    def _look_at_all(self) -> Mapping[str, State | None]:
        """Return who has each machine that answers, None for a free one. Raises TemporaryError if none
        answers.
        """

        def look(host: Host) -> State | ExternalError | None:
            try:
                return self._ask(host, "look")
            except ExternalError as error:
                return error

        with ThreadPoolExecutor(min(ASKED_AT_ONCE_MAX, len(self._hosts))) as pool:
            answers = dict(zip(self._hosts, pool.map(look, self._hosts.values()), strict=True))
        silent = {name: answer for name, answer in answers.items() if isinstance(answer, ExternalError)}
        for name, error in silent.items():
            log.warning("machine %s does not answer: %s", name, error)
        if len(silent) == len(answers):
            raise TemporaryError(
                f"none of the {len(answers)} machines answers: {short(str(next(iter(silent.values()))))}"
            )
        return {name: answer for name, answer in answers.items() if not isinstance(answer, ExternalError)}

    def _ask(self, host: Host, *words: str) -> State | None:
        """Run the script on the machine and return who has it then. Raises NothingDone if it changed
        nothing.
        """
        if self._enter is None:
            raise PermanentError("this process may not log in to machines")
        if not host.host_keys:
            raise PermanentError(
                f"the host key of {host.name} is not known, so that nobody logs in to it; log in once by ssh "
                "and accept it, or write it under host_keys"
            )
        with ExitStack() as entered:
            try:
                shell = entered.enter_context(self._enter(host.at(host.name)))
            except TemporaryError as error:
                raise NothingDone(str(error)) from error
            result = shell.run(
                shlex.join(["sh", "-s", "--", *words]), stdin=_SCRIPT.read_bytes(), limit_s=COMMAND_S_MAX
            )
        if result.code != 0:
            kind = PermanentError if result.code == NEVER else NothingDone
            raise kind(f"machine {host.name}: {result.tail or f'exit code {result.code}'}")
        found = _STATE.search(result.text)
        if found is None:
            raise TemporaryError(f"machine {host.name}: its answer cannot be parsed")
        state = _state(found)
        with self._lock:
            if state is None or self._mark.without(state.name) is None:
                self._known.pop(host.name, None)
        return state

    def _pod(self, host: str, state: State) -> Pod:
        pod = _as_pod(state, self._usd[host])
        pod = replace(pod, name=self._mark.without(pod.name) or "")
        return (
            self._remember(pod)
            if parse_pod_name(pod.name) is not None and pod.status is not PodStatus.GONE
            else pod
        )

    def _remember(self, pod: Pod) -> Pod:
        with self._lock:
            self._known[pod.pod_id.partition(".")[0]] = pod
        return pod

    def _ended(self, host: Host, pod: Pod) -> Pod:
        try:
            self._end(host, pod.pod_id)
        except ExternalError as error:
            log.warning("machine %s has started again, and could not be cleared yet: %s", host.name, error)
            return replace(pod, status=PodStatus.BROKEN)
        return replace(pod, status=PodStatus.GONE)

    def _end(self, host: Host, pod_id: str) -> None:
        found = _POD_ID.fullmatch(pod_id)
        named = parse_pod_name(self._mark.without(found[3]) or "") if found is not None else None
        if named is None:
            raise PermanentError(f"pod {short(pod_id)} is another control plane's")
        state = self._ask(host, "end", pod_id, f"{named[0]}-e{named[1]}")
        if state is not None and state.pod_id == pod_id:
            raise TemporaryError(f"machine {host.name} is still taken by {pod_id}")


def _state(found: re.Match[str]) -> State | None:
    if found["pod"] is None:
        return None
    return State(found["pod"], found["name"], int(found["second"]), is_over=found["was"] != found["now"])


def _as_pod(state: State, usd_per_hour: float) -> Pod:
    status = PodStatus.GONE if state.is_over else PodStatus.ACTIVE
    return Pod(state.pod_id, state.name, status, state.created_s, usd_per_hour)


def _offer(kind: HostKind, hardware: HardwareSpec, free: int) -> Offer:
    return Offer(
        provider=PROVIDER,
        offer_id=kind.name,
        usd_per_hour=kind.usd_per_hour,
        spot=False,
        gpu=gpus.first_wanted(kind.gpu, "", hardware.gpus) if kind.gpu else "",
        gpu_count=kind.count,
        disk_gib=kind.disk_gib,
        gpu_gb=gpus.named_gb(kind.gpu),
        hindrance=_hindrance(kind, hardware),
        stock=f"{free} free",
    )


def _hindrance(kind: HostKind, hardware: HardwareSpec) -> str:
    return "starts from no image that a config names" if hardware.image is not None else ""


def hosts_of(kinds: Iterable[HostKind]) -> list[Host]:
    """Return all machines."""
    return [host for kind in kinds for host in kind.hosts]
