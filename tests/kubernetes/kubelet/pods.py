"""The life of one pod on this node: from its binding to the deletion of its object."""

import datetime
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import requests

from tests.kubernetes.api import Api, Refused, Thing
from tests.kubernetes.kubelet.containers import Container, Exit, Mount
from tests.kubernetes.kubelet.supplies import Missing, Supplies, command_of, work_of

OVER = ("Succeeded", "Failed")
MISSING_EVERY_S = 0.5
"""How often a pod that waits for a Secret looks for it. (The real kubelet's waits grow up to two minutes.)"""
GONE = (requests.codes.not_found, requests.codes.conflict)
"""What is answered about an object that is gone, or that is another of the same name."""


def stamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PodWorker(threading.Thread):
    """Runs one pod. `update` tells it what the API says of the pod, `gone` that the API no longer has it."""

    def __init__(
        self, api: Api, pod: Thing, folder: Path, ended: Callable[[str], None], shared: Sequence[Mount]
    ) -> None:
        super().__init__(name=f"pod-{pod['metadata']['name']}", daemon=True)
        self._api, self._pod, self._folder, self._ended, self._shared = api, pod, folder, ended, shared
        self._news = threading.Condition()
        self._leave_s: float | None = None
        self._gone = False
        self._shutdown: str | None = None
        self._states: dict[str, Thing] = {}
        self._phase = "Pending"
        self._running: list[Container] = []
        meta = pod["metadata"]
        self.uid, self.namespace, self.pod = str(meta["uid"]), str(meta["namespace"]), str(meta["name"])
        self.over = threading.Event()
        """Set once none of the pod's containers runs any more, and the API knows it."""
        self._path = f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}"

    def update(self, pod: Thing) -> None:
        with self._news:
            self._pod = pod
            if "deletionTimestamp" in pod["metadata"]:
                self._leave(pod["metadata"].get("deletionGracePeriodSeconds", 0))
            self._news.notify_all()

    def gone(self) -> None:
        """The object was deleted by force, or while no kubelet looked: nothing of the pod may run on."""
        with self._news:
            self._gone = True
            self._leave(0)
            self._news.notify_all()

    def shut_down(self, notice_s: float, message: str) -> None:
        """The machine is switched off after this notice."""
        with self._news:
            self._shutdown = message
            self._leave(min(notice_s, self._pod["spec"].get("terminationGracePeriodSeconds", 30)))
            self._news.notify_all()

    def log(self, container: str) -> Path:
        return Container(self._folder / container).log

    def run(self) -> None:
        try:
            if self._pod.get("status", {}).get("phase") not in OVER:
                self._live()
            self.over.set()
            self._bury()
        finally:
            self._ended(self.uid)

    def _leave(self, after_s: float) -> None:
        """Let the containers be killed after so many seconds, unless they are killed earlier already; SIGTERM
        comes at once.
        """
        end_s = time.monotonic() + after_s
        first = self._leave_s is None
        self._leave_s = end_s if self._leave_s is None else min(self._leave_s, end_s)
        if first:
            for container in self._running:
                threading.Thread(target=self._end, args=(container,), daemon=True).start()

    def _end(self, container: Container) -> None:
        """Send SIGTERM, and SIGKILL when the time is over."""
        container.signal(signal.SIGTERM)
        with self._news:
            while (
                container.first_pid is not None
                and self._leave_s is not None
                and (left := self._leave_s - time.monotonic()) > 0
            ):
                self._news.wait(min(left, 1.0))
        container.signal(signal.SIGKILL)

    def _live(self) -> None:
        supplies = Supplies(self._api, self._pod, self._folder)
        if not self._patiently(supplies.make_volumes, "ContainerCreating"):
            return self._finish(None)
        spec = self._pod["spec"]
        for container in spec.get("initContainers", []):
            end = self._end_of(container, self._start(container, supplies, initial=True))
            if end is None or end.code != 0:
                return self._finish(end)
        running = [self._start(container, supplies) for container in spec["containers"]]
        ends = [
            self._end_of(container, one) for container, one in zip(spec["containers"], running, strict=True)
        ]
        return self._finish(next((end for end in ends if end is None or end.code != 0), Exit(0)))

    def _patiently(self, action: Callable[[], object], reason: str, container: str = "") -> bool:
        """Repeat the action until nothing is missing for it. Return False if the pod is to leave before."""
        while True:
            try:
                action()
                return True
            except Missing as error:
                if container:
                    self._states[container] = {"waiting": {"reason": reason, "message": str(error)}}
                self._report()
            with self._news:
                if self._leave_s is not None or self._news.wait_for(
                    lambda: self._leave_s is not None, MISSING_EVERY_S
                ):
                    return False

    def _start(self, spec: Thing, supplies: Supplies, *, initial: bool = False) -> Container | None:
        """Start a container, unless another kubelet has started it. None: the pod is to leave before."""
        name, container, environment = spec["name"], Container(self._folder / spec["name"]), dict[str, str]()
        if not container.was_started and not self._patiently(
            lambda: environment.update(supplies.environment(spec)), "CreateContainerConfigError", name
        ):
            return None
        with self._news:
            if not container.was_started:
                if self._leave_s is not None:
                    return None
                mounts = [*self._shared, *supplies.mounts(spec)]
                shares = bool(self._pod["spec"].get("shareProcessNamespace"))
                container.start(
                    command_of(spec, environment), environment, mounts, work_of(spec), shares_processes=shares
                )
            self._running.append(container)
            if self._leave_s is not None:
                threading.Thread(target=self._end, args=(container,), daemon=True).start()
        self._states[name] = {"running": {"startedAt": stamp()}}
        self._phase = self._phase if initial else "Running"
        self._report()
        return container

    def _end_of(self, spec: Thing, container: Container | None) -> Exit | None:
        """Wait for a container's end. None: it never started."""
        if container is None:
            return None
        end = container.wait()
        with self._news:
            self._running.remove(container)
            self._news.notify_all()
        reason = "StartError" if not end.started else "Completed" if end.code == 0 else "Error"
        since = self._states[spec["name"]]["running"]
        self._states[spec["name"]] = {
            "terminated": {"exitCode": end.code, "reason": reason, **since, "finishedAt": stamp()}
        }
        return end

    def _finish(self, end: Exit | None) -> None:
        if not self._gone:
            self._phase = "Succeeded" if end is not None and end.code == 0 else "Failed"
            self._report()

    def _bury(self) -> None:
        """Wait until the pod is to be deleted, then delete its object and its folder."""
        with self._news:
            self._news.wait_for(lambda: self._gone or "deletionTimestamp" in self._pod["metadata"])
        if not self._gone:
            try:
                self._api.delete(self._path, gracePeriodSeconds=0, preconditions={"uid": self.uid})
            except Refused as error:
                if error.status not in GONE:
                    raise
        shutil.rmtree(self._folder, ignore_errors=True)

    def _report(self) -> None:
        """Write the pod's status, unless its object is gone meanwhile."""
        try:
            self._api.patch(f"{self._path}/status", {"metadata": {"uid": self.uid}, "status": self._status()})
        except Refused as error:
            if error.status not in GONE:
                raise

    def _status(self) -> Thing:
        over, spec = self._phase in OVER, self._pod["spec"]
        ready = "True" if self._phase == "Running" else "False"
        reason = (
            {"reason": "PodCompleted"}
            if self._phase == "Succeeded"
            else {"reason": "PodFailed"}
            if over
            else {}
        )
        conditions: list[Thing] = [
            {"type": "Initialized", "status": "True" if self._phase != "Pending" else "False"},
            {"type": "Ready", "status": ready, **reason},
            {"type": "ContainersReady", "status": ready, **reason},
        ]
        status: Thing = {
            "phase": self._phase,
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "startTime": self._pod.get("status", {}).get("startTime") or stamp(),
            "containerStatuses": [self._container_status(one) for one in spec["containers"]],
        }
        if "initContainers" in spec:
            status["initContainerStatuses"] = [self._container_status(one) for one in spec["initContainers"]]
        if self._shutdown is not None and self._phase == "Failed":
            status |= {"reason": "Terminated", "message": self._shutdown}
            cause = {"reason": "TerminationByKubelet", "message": self._shutdown}
            conditions.append({"type": "DisruptionTarget", "status": "True", **cause})
        return status | {
            "conditions": [{"lastTransitionTime": stamp(), **condition} for condition in conditions]
        }

    def _container_status(self, container: Thing) -> Thing:
        name = container["name"]
        waiting = {
            "waiting": {
                "reason": "PodInitializing" if "initContainers" in self._pod["spec"] else "ContainerCreating"
            }
        }
        state = self._states.get(name, waiting)
        image = container.get("image", "")
        running = "running" in state
        return {
            "name": name,
            "image": image,
            "imageID": image,
            "ready": running,
            "started": running,
            "restartCount": 0,
            "state": state,
        }
