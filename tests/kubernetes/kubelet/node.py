"""One node: its object, its Lease, and the pods that are bound to it."""

import datetime
import shutil
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.kubernetes.api import Api, Refused, Thing
from tests.kubernetes.kubelet.containers import Container, Mount
from tests.kubernetes.kubelet.pods import PodWorker, stamp

STATUS_EVERY_RENEWALS = 10
SHUT_DOWN = "Pod was terminated in response to imminent node shutdown."


@dataclass(frozen=True)
class NodeSettings:
    """What a node is. `resources` are its allocatable ones, such as `nvidia.com/gpu`. `shared`: folders of
    the host that every container sees, as a file server's would be. `notice_s`: how long pods may still run
    when the machine is switched off.
    """

    name: str
    resources: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Thing] = ()
    shared: Sequence[str] = ()
    renew_s: float = 1.0
    notice_s: float = 15.0


class Node:
    """The kubelet's work. `folder` keeps the pods of this node; a new kubelet goes on with what it finds
    there.
    """

    def __init__(self, api: Api, settings: NodeSettings, folder: Path) -> None:
        self._api, self._settings, self._pods = api, settings, folder / "pods"
        self._path = f"/api/v1/nodes/{settings.name}"
        self._workers: dict[str, PodWorker] = {}
        self._lock = threading.Lock()
        self._all_over = threading.Condition(self._lock)
        self._leaving = threading.Event()

    def register(self, log_port: int) -> None:
        """Create the node's object unless it is there, and report that the node is ready."""
        settings = self._settings
        standard = {
            "kubernetes.io/hostname": settings.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }
        metadata = {"name": settings.name, "labels": {**standard, **settings.labels}}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": {"taints": list(settings.taints)},
        }
        try:
            self._api.post("/api/v1/nodes", node)
        except Refused as error:
            if error.status != requests.codes.conflict:
                raise
        self._log_port = log_port
        self._report()

    def keep_alive(self) -> None:
        """Renew the node's Lease and report its status until the machine is switched off."""
        renewals = 0
        while not self._leaving.wait(self._settings.renew_s):
            renewals += 1
            with suppress(requests.RequestException):
                self._renew()
                if renewals % STATUS_EVERY_RENEWALS == 0:
                    self._report()

    def run_pods(self) -> None:
        """Run the pods that are bound to this node, for ever."""
        while True:
            with suppress(requests.RequestException):
                self._look()

    def log(self, namespace: str, pod: str, container: str) -> Path | None:
        """Return the path of a container's log; None if this node has no such pod."""
        with self._lock:
            found = [
                worker
                for worker in self._workers.values()
                if (worker.namespace, worker.pod) == (namespace, pod)
            ]
        return found[0].log(container) if found else None

    def shut_down(self) -> None:
        """Give the pods their notice, wait for their ends, and report that the node is not ready."""
        self._leaving.set()
        with self._lock:
            workers = list(self._workers.values())
        with suppress(requests.RequestException, Refused):
            self._report(ready=False)
        for worker in workers:
            worker.shut_down(self._settings.notice_s, SHUT_DOWN)
        for worker in workers:
            worker.over.wait()

    def _look(self) -> None:
        """List the pods and follow their changes until the connection ends."""
        query = {"fieldSelector": f"spec.nodeName={self._settings.name}"}
        listed = self._api.get("/api/v1/pods", **query)
        self._kill_strangers({pod["metadata"]["uid"] for pod in listed["items"]})
        for pod in listed["items"]:
            self._take(pod)
        for kind, pod in self._api.watch("/api/v1/pods", listed["metadata"]["resourceVersion"], **query):
            if kind == "ERROR":
                return
            if kind == "DELETED":
                self._drop(pod["metadata"]["uid"])
            else:
                self._take(pod)

    def _take(self, pod: Thing) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            worker = self._workers.get(uid)
            if worker is None and not self._leaving.is_set():
                shared = [Mount(Path(path), Path(path)) for path in self._settings.shared]
                worker = self._workers[uid] = PodWorker(
                    self._api, pod, self._pods / uid, self._forget, shared
                )
                worker.start()
        if worker is not None:
            worker.update(pod)

    def _drop(self, uid: str) -> None:
        with self._lock:
            worker = self._workers.get(uid)
        if worker is not None:
            worker.gone()

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._workers.pop(uid, None)

    def _kill_strangers(self, listed: set[str]) -> None:
        """Kill what runs here for pods that the API no longer has."""
        with self._lock:
            ours = set(self._workers)
        for uid in ours - listed:
            self._drop(uid)
        for folder in self._pods.glob("*"):
            if folder.name not in listed | ours:
                kill_containers(folder)
                shutil.rmtree(folder, ignore_errors=True)

    def _renew(self) -> None:
        name, leases = self._settings.name, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
        try:
            self._api.patch(f"{leases}/{name}", {"spec": spec})
        except Refused as error:
            if error.status != requests.codes.not_found:
                raise
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": name},
                "spec": spec,
            }
            with suppress(Refused):  # the namespace is made a moment after the API server's start
                self._api.post(leases, lease)

    def _report(self, *, ready: bool = True) -> None:
        resources = {
            "cpu": "8",
            "memory": "32Gi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
            **self._settings.resources,
        }
        words = ("True", "KubeletReady") if ready else ("False", "KubeletNotReady")
        condition = {
            "type": "Ready",
            "status": words[0],
            "reason": words[1],
            "lastHeartbeatTime": stamp(),
            "lastTransitionTime": stamp(),
        }
        pressures = [
            {
                "type": kind,
                "status": "False",
                "reason": f"KubeletHasNo{kind}",
                "lastHeartbeatTime": stamp(),
                "lastTransitionTime": stamp(),
            }
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
        ]
        status = {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": self._settings.name},
            ],
            "conditions": [*pressures, condition],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._log_port}},
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "bubblewrap://0",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.37.2",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "this machine's",
                "systemUUID": "",
            },
        }
        self._api.patch(f"{self._path}/status", {"status": status})


def kill_containers(pod: Path) -> None:
    """Kill what runs in the containers of one pod's folder, at once."""
    for status in pod.glob("*/status"):
        Container(status.parent).signal(signal.SIGKILL)
