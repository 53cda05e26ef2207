"""Pods on this machine: a pod is a session of processes with a folder as its disk; both are deleted when it
is terminated or preempted.

The folder `root/<pod_id>/` is the registry and the only state: every process that opens `root` finds the same
pods (the files are listed in pod_process.py). Three mechanisms keep it consistent.

A lock shows whether a pod is alive. `create` makes the folder under a hidden name, takes the lock, renames
the folder, and starts the machine's first process, which inherits the lock. So at any moment either nothing
is registered, or a living process holds the lock, or the pod is dead: a control plane killed in between
leaves a dead pod and no unknown process. This relies on no pid and no clock.

A variable in the environment identifies a pod's processes, whatever sessions they create; so does descent
from its first process, which adopts orphans. A process would have to clear its environment and outlive the
first process to escape.

Only a pod that has been cleared is reported as gone: every process is killed and the folder removed before it
is left out of `list` and `get`.
"""

import fcntl
import os
import secrets
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.kinds import LOCAL
from prime_train.providers.local.files import (
    await_true,
    open_lock,
    read_json,
    translated_errors,
    try_lock,
    write,
    write_json,
    write_line,
)
from prime_train.providers.local.processes import (
    POD_VARIABLE,
    inside,
    marked,
    own_environment,
    start_machine,
    victims,
)
from prime_train.providers.local.registry import Record, Registry, is_pod_id
from prime_train.providers.local.walls import Walls
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

__all__ = ["DEFAULT_OFFERS", "POD_VARIABLE", "LocalPods"]

DEFAULT_OFFERS = (
    Offer(LOCAL, "local-spot", 0.60, spot=True),
    Offer(LOCAL, "local-spot-b", 0.80, spot=True),
    Offer(LOCAL, "local-on-demand", 1.90, spot=False),
)
"""The offers of this machine, with prices of small rented machines, so that the ledger of a local run is
realistic. `disk_gib` 0 stands for the free space where the pods are stored.
"""

AGENT_COMMAND = (sys.executable, "-m", "prime_agent.main")
AGENT_START_S_MAX = 10.0
CLEAR_S_MAX = 30.0
NOTICE_S_MAX = 3600


class LocalPods:
    """Pods under the folder `root`.

    `agent_command` gets `--ticket FILE --disk FOLDER` appended. `environment` is the environment of a pod's
    processes; the default is what is harmless of this process's own: as on a rented machine, a run gets only
    the secrets that its spec names. `walls`: what hides this machine's files and processes from them; None:
    nothing does. `stock` limits the number of pods per offer; the file `root/capacity.json`, {offer_id:
    count}, overrides it. `boot_s` is the number of seconds for which a new pod is pending.
    """

    def __init__(
        self,
        root: Path,
        *,
        offers: Sequence[Offer] = DEFAULT_OFFERS,
        agent_command: Sequence[str] = AGENT_COMMAND,
        environment: Mapping[str, str] | None = None,
        stock: Mapping[str, int] | None = None,
        boot_s: float = 0.0,
        walls: Walls | None = None,
    ) -> None:
        self._offers = {offer.offer_id: offer for offer in offers}
        self._agent_command = tuple(agent_command)
        self._environment = dict(environment) if environment is not None else None
        self._walls = walls
        self._boot_s = boot_s
        self._registry = Registry(root.absolute(), dict(stock or {}))
        self._ended: dict[str, Pod] = {}  # pods that have ended by themselves, as long as this process runs

    # --------------------------------------------------------------------------------------------------------
    # the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return the offers with stock left; `rank` compares them with the run's hardware spec."""
        root = self._registry.root
        with translated_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            free_gib = shutil.disk_usage(root).free // 2**30
            left = self._registry.left()
        return [
            replace(o, disk_gib=o.disk_gib or free_gib) for o in self._offers.values() if left(o.offer_id) > 0
        ]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """Create the pod. After a TemporaryError it is registered and may still come up; `list` shows it."""
        if offer.offer_id not in self._offers:
            raise PermanentError(f"there is no offer {offer.offer_id!r}; known: {', '.join(self._offers)}")
        pod_id = f"local-{secrets.token_hex(8)}"
        now_s = time.time()
        record = Record(
            name, offer.offer_id, self._offers[offer.offer_id].usd_per_hour, int(now_s), now_s + self._boot_s
        )
        lock = self._registry.enter(pod_id, record)
        try:
            folder = self._registry.folder(pod_id)
            start_machine(
                folder,
                lock,
                self._environment if self._environment is not None else own_environment(folder / "home"),
            )
        finally:
            # From here on the machine alone holds the lock; if it did not start, the pod is dead and will be
            # cleared.
            os.close(lock)
        return self._pod(pod_id, record)

    def list(self) -> Sequence[Pod]:
        """Return all pods, without lag. A dead pod that cannot be cleared now is listed as UNKNOWN."""
        pods = []
        for pod_id in self._registry.pod_ids():
            try:
                pod = self.get(pod_id)
            except TemporaryError:
                record = self._registry.read(pod_id)
                pod = Pod(pod_id, record.name if record else pod_id, PodStatus.UNKNOWN)
            if pod is not None:
                pods.append(pod)
        return pods

    def get(self, pod_id: str) -> Pod | None:
        """Return the pod, or None if all its processes have ended and its disk is deleted. A pod that has
        ended by itself is returned as GONE, with the time. Raises TemporaryError if it is dead and could not
        be cleared yet.
        """
        if not is_pod_id(pod_id):
            return None
        record = self._registry.read(pod_id)
        if record is not None and self._registry.lives(pod_id):
            return self._pod(pod_id, record)
        folder = self._registry.folder(pod_id)
        if folder.exists():
            ended_s = read_json(folder / "ended.json").get("at_s")
            if record is not None and isinstance(ended_s, int):
                self._ended[pod_id] = replace(
                    self._pod(pod_id, record), status=PodStatus.GONE, ended_s=ended_s
                )
            self._clear(pod_id)
        return self._ended.get(pod_id)

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """Start the agent. An agent that has ended by itself is not started again. Raises PermanentError if
        it cannot be started.
        """
        seen = self.get(pod.pod_id)
        if seen is None:
            raise TemporaryError(f"pod {pod.pod_id} is gone")
        if seen.status is PodStatus.PENDING:
            raise TemporaryError(f"pod {pod.pod_id} is still booting")
        folder = self._registry.folder(pod.pod_id)
        if (folder / "agent.json").exists():
            return
        file = folder / "disk" / "ticket.json"
        with translated_errors(folder):
            walls = (
                self._walls.around(folder / "disk", folder / "home")
                if self._walls is not None and (folder / "home").is_dir()
                else []
            )
            command = [*walls, *self._agent_command, "--ticket", str(file), "--disk", str(folder / "disk")]
            (folder / "agent.error").unlink(missing_ok=True)
            write(file, ticket.model_dump_json().encode())
            write_json(folder / "start.json", {"command": command})
            write_line(folder / "control", b"start\n")
        self._await_agent(folder)

    def terminate(self, pod_id: str) -> None:
        """End the pod, and return once all its processes and its disk are deleted. Raises TemporaryError if a
        part of it cannot be ended now; retry.
        """
        if is_pod_id(pod_id):
            self._clear(pod_id)

    # ------------------------------------------------------------------------------------------ what only a
    # local pod can do

    @property
    def why_no_walls(self) -> str:
        """Return why nothing hides this machine's files from new pods; empty if something does."""
        return self._walls.why_none if self._walls is not None else "no walls are wanted"

    def preempt(self, pod_id: str, notice_s: int = 0) -> None:
        """Preempt the pod as a spot provider does: with notice, the agent gets SIGTERM and at most `notice_s`
        seconds; then the pod is ended. Return once all its processes and its disk are deleted.
        """
        agent = self._agent(pod_id) if notice_s > 0 else None
        with suppress(psutil.Error):
            if agent is not None:
                agent.terminate()
                agent.wait(min(notice_s, NOTICE_S_MAX))
        self.terminate(pod_id)

    def disk(self, pod_id: str) -> Path | None:
        """Return the folder that is the pod's disk, or None if there is no such pod."""
        path = self._registry.folder(pod_id) / "disk" if is_pod_id(pod_id) else None
        return path if path is not None and path.is_dir() else None

    def logs(self, pod_id: str) -> Path | None:
        """Return the file with the agent's own output, or None if there is none."""
        disk = self.disk(pod_id)
        return disk / "agent.log" if disk is not None and (disk / "agent.log").exists() else None

    def agent_exit(self, pod_id: str) -> int | None:
        """Return the code with which the agent ended by itself, negative for a signal; None while it runs, or
        if there is none.
        """
        code = (
            read_json(self._registry.folder(pod_id) / "agent.exit").get("code") if is_pod_id(pod_id) else None
        )
        return code if isinstance(code, int) else None

    # --------------------------------------------------------------------------------------------------------
    # inside

    def _pod(self, pod_id: str, record: Record) -> Pod:
        up = (self._registry.folder(pod_id) / "init.json").exists() and time.time() >= record.ready_s
        return Pod(
            pod_id,
            record.name,
            PodStatus.ACTIVE if up else PodStatus.PENDING,
            record.created_s,
            record.usd_per_hour,
        )

    def _await_agent(self, folder: Path) -> None:
        def answered() -> bool:
            if (folder / "agent.error").exists():
                raise PermanentError(
                    f"the agent cannot be started: {read_json(folder / 'agent.error').get('error')}"
                )
            if not self._registry.lives(folder.name):
                raise TemporaryError(f"pod {folder.name} is gone")
            return (folder / "agent.json").exists()

        await_true(answered, AGENT_START_S_MAX, f"pod {folder.name} has not started the agent")

    def _agent(self, pod_id: str) -> psutil.Process | None:
        pid = (
            read_json(self._registry.folder(pod_id) / "agent.json").get("pid") if is_pod_id(pod_id) else None
        )
        process = marked(pid, pod_id) if isinstance(pid, int) else None
        return inside(process) if process is not None else None

    def _clear(self, pod_id: str) -> None:
        """Kill the pod's remaining processes and remove its folder."""
        complaint = f"pod {pod_id} has processes that cannot be killed, or is still starting"
        await_true(lambda: self._cleared(pod_id), CLEAR_S_MAX, complaint)
        self._registry.sweep()

    def _cleared(self, pod_id: str) -> bool:
        """Do one round of killing. Return True, after removing the pod from the registry, only if no other
        process holds the lock and none of the pod's processes is left: a process that is being started may
        not have the variable yet, but it has the lock.
        """
        folder = self._registry.folder(pod_id)
        with translated_errors(folder):
            lock = open_lock(folder)
            try:
                alone = lock is None or try_lock(lock, fcntl.LOCK_EX)
                left = victims(pod_id, read_json(folder / "init.json").get("pid"))
                for process in left:
                    with suppress(psutil.Error):
                        process.kill()
                if left or not alone:
                    return False
                self._registry.strike(pod_id)
                return True
            finally:
                if lock is not None:
                    os.close(lock)
