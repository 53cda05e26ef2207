"""Pods on this machine: a pod is a session of processes with a folder as its disk; both are gone when it is terminated or taken away.

The folder `root/<pod_id>/` is the registry, and the only memory: whoever opens `root` finds the pods again (its files are listed in
local_pod.py). Three things hold it together.

A lock says whether a pod lives. `create` makes the folder under a hidden name, takes the lock, gives the folder its name, and starts
the machine's first process, which inherits the lock. So at every moment either nothing is registered, or somebody alive holds the
lock, or the pod is dead: a control plane killed in between leaves a dead pod and no process that nobody knows of. No pid and no clock
is trusted for this.

A marker in the environment says which processes are a pod's, whatever sessions they made; and so does descent from its first process,
to which orphans come back. A process must clear its environment and outlive the first process to get away.

Gone is a promise. A dead pod is first cleared (every process killed, the folder taken away) and only then left out of `list` and `get`.
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

from prime_train.adapters.pods_local.files import await_true, open_lock, read_json, say, told, try_lock, write, write_json
from prime_train.adapters.pods_local.processes import MARKER, marked, own_environment, start_machine, victims
from prime_train.adapters.pods_local.registry import Record, Registry, is_pod_id
from prime_train.core.offers import Offer
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod, PodStatus
from prime_train.core.wire import Ticket
from prime_train.ports import PermanentError, TemporaryError

__all__ = ["DEFAULT_OFFERS", "MARKER", "LocalPods"]

DEFAULT_OFFERS = (
    Offer("local", "local-spot", 0.60, spot=True),
    Offer("local", "local-spot-b", 0.80, spot=True),
    Offer("local", "local-on-demand", 1.90, spot=False),
)
"""Prices are those of small machines for rent, so that a ledger is real. `disk_gib` 0: what is free where the pods live."""

AGENT_COMMAND = (sys.executable, "-m", "prime_agent.main")
AGENT_START_S_MAX = 10.0
CLEAR_S_MAX = 30.0
NOTICE_S_MAX = 3600


class LocalPods:
    """Pods under the folder `root`.

    `agent_command` gets `--ticket FILE --disk FOLDER` appended. `environment` is what a pod's processes start with; by default this
    process's own without what looks like a secret: as on any rented machine, a run gets the secrets that its spec names.
    `stock` limits how many pods an offer has; the file `root/capacity.json`, {offer_id: count}, overrules it.
    `boot_s`: how long a new pod is pending.
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
    ) -> None:
        self._offers = {offer.offer_id: offer for offer in offers}
        self._agent_command = tuple(agent_command)
        self._environment = dict(environment) if environment is not None else own_environment()
        self._boot_s = boot_s
        self._registry = Registry(root.absolute(), dict(stock or {}))

    # -------------------------------------------------------------------------------------------------------------- the port

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Those with stock left; a run's wishes are for `rank` to hold against them."""
        root = self._registry.root
        with told(root):
            root.mkdir(parents=True, exist_ok=True)
            free_gib = shutil.disk_usage(root).free // 2**30
            left = self._registry.left()
        return [replace(o, disk_gib=o.disk_gib or free_gib) for o in self._offers.values() if left(o.offer_id) > 0]

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> Pod:
        """TemporaryError: it is registered and may still come up; `list` knows."""
        if offer.offer_id not in self._offers:
            raise PermanentError(f"there is no offer {offer.offer_id!r}; known: {', '.join(self._offers)}")
        pod_id = f"local-{secrets.token_hex(8)}"
        now_s = time.time()
        record = Record(name, offer.offer_id, self._offers[offer.offer_id].usd_per_hour, int(now_s), now_s + self._boot_s)
        lock = self._registry.enter(pod_id, record)
        try:
            start_machine(self._registry.folder(pod_id), lock, self._environment)
        finally:
            # From here on the machine alone holds it; if there is none, the pod is dead and will be cleared.
            os.close(lock)
        return self._pod(pod_id, record)

    def list(self) -> Sequence[Pod]:
        """Exact. A dead pod that cannot be cleared now is listed as ODD."""
        pods = []
        for pod_id in self._registry.pod_ids():
            try:
                pod = self.get(pod_id)
            except TemporaryError:
                record = self._registry.read(pod_id)
                pod = Pod(pod_id, record.name if record else pod_id, PodStatus.ODD)
            if pod is not None:
                pods.append(pod)
        return pods

    def get(self, pod_id: str) -> Pod | None:
        """None: every process of it is dead and its disk is gone. TemporaryError: it is dead, and could not be cleared yet."""
        if not is_pod_id(pod_id):
            return None
        record = self._registry.read(pod_id)
        if record is not None and self._registry.lives(pod_id):
            return self._pod(pod_id, record)
        if self._registry.folder(pod_id).exists():
            self._clear(pod_id)
        return None

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        """An agent that has ended by itself is not started again: it has said its last word. PermanentError: it cannot be started."""
        seen = self.get(pod.pod_id)
        if seen is None:
            raise TemporaryError(f"pod {pod.pod_id} is gone")
        if seen.status is PodStatus.PENDING:
            raise TemporaryError(f"pod {pod.pod_id} is still booting")
        folder = self._registry.folder(pod.pod_id)
        if (folder / "agent.json").exists():
            return
        file = folder / "disk" / "ticket.json"
        command = [*self._agent_command, "--ticket", str(file), "--disk", str(folder / "disk")]
        with told(folder):
            (folder / "agent.error").unlink(missing_ok=True)
            write(file, ticket.model_dump_json().encode())
            write_json(folder / "start.json", {"command": command})
            say(folder / "control", b"start\n")
        self._await_agent(folder)

    def terminate(self, pod_id: str) -> None:
        """Returns when it is gone. TemporaryError: something of it cannot be ended now; ask again."""
        if is_pod_id(pod_id):
            self._clear(pod_id)

    # ------------------------------------------------------------------------------------------ what only a local pod can do

    def preempt(self, pod_id: str, notice_s: int = 0) -> None:
        """What the world does to a spot machine: with notice, the agent gets SIGTERM and at most so many seconds; then all is taken.
        Returns when it is gone."""
        agent = self._agent(pod_id) if notice_s > 0 else None
        with suppress(psutil.Error):
            if agent is not None:
                agent.terminate()
                agent.wait(min(notice_s, NOTICE_S_MAX))
        self.terminate(pod_id)

    def disk(self, pod_id: str) -> Path | None:
        """The folder that is the pod's disk, or None where there is no such pod."""
        path = self._registry.folder(pod_id) / "disk" if is_pod_id(pod_id) else None
        return path if path is not None and path.is_dir() else None

    def logs(self, pod_id: str) -> Path | None:
        """What the agent itself printed."""
        disk = self.disk(pod_id)
        return disk / "agent.log" if disk is not None and (disk / "agent.log").exists() else None

    def agent_exit(self, pod_id: str) -> int | None:
        """The code with which the agent ended by itself, negative for a signal; None while it runs, or where there is none."""
        code = read_json(self._registry.folder(pod_id) / "agent.exit").get("code") if is_pod_id(pod_id) else None
        return code if isinstance(code, int) else None

    # ------------------------------------------------------------------------------------------------------------------ inside

    def _pod(self, pod_id: str, record: Record) -> Pod:
        up = (self._registry.folder(pod_id) / "init.json").exists() and time.time() >= record.ready_s
        return Pod(pod_id, record.name, PodStatus.ACTIVE if up else PodStatus.PENDING, record.created_s, record.usd_per_hour)

    def _await_agent(self, folder: Path) -> None:
        def answered() -> bool:
            if (folder / "agent.error").exists():
                raise PermanentError(f"the agent cannot be started: {read_json(folder / 'agent.error').get('error')}")
            if not self._registry.lives(folder.name):
                raise TemporaryError(f"pod {folder.name} is gone")
            return (folder / "agent.json").exists()

        await_true(answered, AGENT_START_S_MAX, f"pod {folder.name} has not started the agent")

    def _agent(self, pod_id: str) -> psutil.Process | None:
        pid = read_json(self._registry.folder(pod_id) / "agent.json").get("pid") if is_pod_id(pod_id) else None
        return marked(pid, pod_id) if isinstance(pid, int) else None

    def _clear(self, pod_id: str) -> None:
        """Kills what is left of the pod and takes its folder away."""
        complaint = f"pod {pod_id} has processes that cannot be killed, or is just being started"
        await_true(lambda: self._cleared(pod_id), CLEAR_S_MAX, complaint)
        self._registry.sweep()

    def _cleared(self, pod_id: str) -> bool:
        """One round of killing. Only when nobody else holds the lock, and then no process is left, is the folder taken out of the
        registry: a process that is just being started has not got the marker yet, but it has got the lock."""
        folder = self._registry.folder(pod_id)
        with told(folder):
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
