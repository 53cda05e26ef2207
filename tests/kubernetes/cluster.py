"""A real control plane of Kubernetes on loopback (etcd, API server, controller manager, scheduler), and nodes
of our own kubelet.
"""

import base64
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.certificates import make_certificate
from tests.fakes.s3_servers import LAUNCH
from tests.kubernetes.api import Api, Refused, Thing
from tests.kubernetes.kubelet.node import NodeSettings, kill_containers
from tests.tools import TOOLS, program
from tests.waiting import await_true

BIN = TOOLS / "kubernetes"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"
NODE_GRACE_S, TOLERATION_S = 5, 2
"""After how many seconds without a sign of its kubelet a node is not ready, and after how many more its pods
are evicted. A real cluster takes 50 s and 300 s.
"""


def missing() -> str:
    """Return what a real control plane lacks here; empty if it can be started."""
    lacking = [name for name in PROGRAMS if not (BIN / name).exists()]
    if lacking:
        return f"{', '.join(lacking)} (make test-kubernetes builds them, with Go)"
    if program("etcd") is None:
        return "etcd (on Debian and Ubuntu: apt-get install etcd-server)"
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap), in which containers are run"
    walls = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"]
    if subprocess.run(walls, capture_output=True, check=False).returncode != 0:
        return "bubblewrap that may make namespaces"
    return ""


@dataclass(frozen=True)
class Machine:
    """A machine with a kubelet. `folder` keeps what runs on it."""

    cluster: "Cluster"
    settings: NodeSettings
    folder: Path

    @property
    def name(self) -> str:
        return self.settings.name

    def start(self) -> None:
        """Start the kubelet, again if it ran before, and wait until the node can take pods."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "ready").unlink(missing_ok=True)
        settings = self.folder / "kubelet.json"
        cluster = self.cluster
        settings.write_text(
            json.dumps(
                {
                    "parent": os.getpid(),
                    "server": cluster.admin.url,
                    "token": cluster.node_token(self.name),
                    "authority": str(cluster.admin.authority),
                    "chain": str(cluster.folder / "chain.pem"),
                    "key": str(cluster.folder / "key.pem"),
                    "folder": str(self.folder),
                    "node": asdict(self.settings),
                }
            )
        )
        with (self.folder / "kubelet.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.kubernetes.kubelet", str(settings)]
            process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        cluster.kubelets[self.name] = process

        def is_up() -> bool:
            assert process.poll() is None, f"the kubelet of {self.name} ended: {self.log()}"
            return (self.folder / "ready").exists() and self.is_ready and not self._is_tainted

        await_true(f"node {self.name} takes pods", is_up, every_s=0.1)

    def log(self) -> str:
        return (self.folder / "kubelet.log").read_text(errors="replace")

    @property
    def is_ready(self) -> bool:
        node = self.cluster.admin.find(f"/api/v1/nodes/{self.name}")
        conditions = [] if node is None else node.get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    @property
    def _is_tainted(self) -> bool:
        """Return whether the node has a taint of Kubernetes' own, such as that of a node which was not
        ready.
        """
        taints = self.cluster.admin.get(f"/api/v1/nodes/{self.name}")["spec"].get("taints", [])
        return any(str(taint["key"]).startswith("node.kubernetes.io/") for taint in taints)

    def kill_kubelet(self) -> None:
        """Cut the node off: its kubelet is gone, its pods run on."""
        process = self.cluster.kubelets.pop(self.name, None)
        if process is not None:
            process.kill()
            process.wait()

    def lose(self) -> None:
        """Take the machine away without a notice: its kubelet and all that runs on it end at once, and its
        disk is gone.
        """
        self.kill_kubelet()
        for pod in (self.folder / "pods").glob("*"):
            kill_containers(pod)
            shutil.rmtree(pod, ignore_errors=True)

    def switch_off(self) -> None:
        """Take the machine away with the notice that its pods get; return when its kubelet has ended."""
        process = self.cluster.kubelets.pop(self.name)
        process.terminate()
        process.wait()

    def remove(self) -> None:
        """Delete the node's object, as a cloud does once the machine is gone."""
        self.cluster.admin.delete(f"/api/v1/nodes/{self.name}")


class Cluster:
    """A running control plane. `admin` may do everything."""

    def __init__(self, folder: Path, admin: Api, node_tokens: Mapping[str, str]) -> None:
        self.folder, self.admin, self._node_tokens = folder, admin, node_tokens
        self.kubelets: dict[str, subprocess.Popen[bytes]] = {}
        self.machines: list[Machine] = []

    def node_token(self, name: str) -> str:
        return self._node_tokens[name]

    def machine(
        self,
        *,
        gpus: int = 1,
        product: str = "NVIDIA-H100-80GB-HBM3",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Thing] = (),
        shared: Sequence[Path] = (),
        notice_s: float = 15.0,
    ) -> Machine:
        """Add a machine with GPUs, and wait until its node takes pods. `shared`: folders that its containers
        see, too.
        """
        taken = {machine.name for machine in self.machines}
        name = next(name for name in self._node_tokens if name not in taken)
        found = (
            {
                "nvidia.com/gpu.product": product,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.memory": "81559",
            }
            if gpus
            else {}
        )
        settings = NodeSettings(
            name=name,
            resources={GPU: str(gpus)} if gpus else {},
            labels={**found, **(labels or {})},
            taints=tuple(taints),
            shared=tuple(str(path) for path in shared),
            notice_s=notice_s,
        )
        made = Machine(self, settings, self.folder / "nodes" / name)
        self.machines.append(made)
        made.start()
        return made

    def namespace(self, name: str) -> str:
        """Create a namespace, and wait until pods can be created in it."""
        self.admin.post(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        )
        await_true(
            "the namespace has a service account",
            lambda: self.admin.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"),
        )
        return name

    def kubeconfig(self, path: Path, *, token: str | None = None, namespace: str = "default") -> Path:
        """Write a kubeconfig for the administrator, or for whoever has the token."""
        path.write_text(yaml.safe_dump(_kubeconfig(self.admin, token or self.admin.token, namespace)))
        return path

    def account(self, namespace: str, here: Sequence[Thing], everywhere: Sequence[Thing]) -> str:
        """Return the token of a service account with these rights in the namespace, and these in all of the
        cluster.
        """
        core, rights = f"/api/v1/namespaces/{namespace}/serviceaccounts", "/apis/rbac.authorization.k8s.io/v1"
        self.admin.post(
            core, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "control-plane"}}
        )
        subject = {"kind": "ServiceAccount", "name": "control-plane", "namespace": namespace}
        for kind, path, rules in (
            ("Role", f"{rights}/namespaces/{namespace}", here),
            ("ClusterRole", rights, everywhere),
        ):
            head = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "metadata": {"name": f"{namespace}-control-plane"},
            }
            reference = {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": kind,
                "name": f"{namespace}-control-plane",
            }
            self.admin.post(f"{path}/{kind.lower()}s", {**head, "kind": kind, "rules": list(rules)})
            binding = {**head, "kind": f"{kind}Binding", "subjects": [subject], "roleRef": reference}
            self.admin.post(f"{path}/{kind.lower()}bindings", binding)
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        return str(self.admin.post(f"{core}/control-plane/token", asked)["status"]["token"])

    def evict(self, namespace: str, pod: str) -> None:
        """Ask for the end of a pod by the Eviction API, as `kubectl drain` and an autoscaler do."""
        metadata = {"name": pod, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.admin.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body)

    def node_of(self, pod: Thing) -> Machine:
        return next(machine for machine in self.machines if machine.name == pod["spec"]["nodeName"])

    def evidence(self) -> str:
        """Return what a person needs to analyse a failure."""
        logs = [*self.folder.glob("nodes/*/kubelet.log"), *self.folder.glob("nodes/*/pods/*/*/log")]
        parts = [f"== {path}\n{path.read_text(errors='replace')[-3000:]}" for path in logs]
        for kind in ("pods", "events"):
            parts += [json.dumps(_brief(one)) for one in self.admin.items(f"/api/v1/{kind}")]
        return "\n".join(parts)

    def remove_machines(self) -> None:
        """Take every machine away, with all that runs there."""
        for machine in self.machines:
            machine.lose()
            machine.remove()


def _brief(thing: Thing) -> Thing:
    keys = ("status", "reason", "message", "type", "involvedObject")
    return {"name": thing["metadata"]["name"], **{key: thing[key] for key in keys if key in thing}}


@contextmanager
def running_cluster(folder: Path, *, nodes_max: int = 100) -> Iterator[Cluster]:
    """Run a control plane; it takes about six seconds to start. `nodes_max`: how many machines it can have in
    its life.
    """
    folder.mkdir(parents=True, exist_ok=True)
    certificate = make_certificate(folder)
    _write_signing_key(folder / "signing.pem")
    token, nodes = (
        secrets.token_hex(16),
        {f"node-{number}": secrets.token_hex(16) for number in range(1, nodes_max + 1)},
    )
    rows = [f'{token},admin,admin,"system:masters"']
    rows += [f'{node_token},system:node:{name},{name},"system:nodes"' for name, node_token in nodes.items()]
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n")
    etcd, peers, port = (_free_port() for _ in range(3))
    admin = Api(f"https://127.0.0.1:{port}", token, certificate.authority)
    (folder / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig(admin, token, "default")))
    processes = []
    try:
        processes.append(_start(folder, str(program("etcd")), *_etcd_flags(folder, etcd, peers)))
        processes.append(_start(folder, str(BIN / PROGRAMS[0]), *_apiserver_flags(folder, etcd, port)))
        _await_ready(admin, processes, folder)
        for name in PROGRAMS[1:]:
            processes.append(_start(folder, str(BIN / name), *_controller_flags(folder, name)))
        cluster = Cluster(folder, admin, nodes)
        await_true(
            "service accounts are made",
            lambda: admin.find("/api/v1/namespaces/default/serviceaccounts/default"),
            every_s=0.1,
        )
        try:
            yield cluster
        finally:
            cluster.remove_machines()
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _etcd_flags(folder: Path, port: int, peers: int) -> Sequence[str]:
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    clients = ("--listen-client-urls", here, "--advertise-client-urls", here)
    members = (
        "--listen-peer-urls",
        there,
        "--initial-advertise-peer-urls",
        there,
        "--initial-cluster",
        f"default={there}",
    )
    return ("--data-dir", str(folder / "etcd"), *clients, *members)


def _apiserver_flags(folder: Path, etcd: int, port: int) -> Sequence[str]:
    return (
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={folder / 'chain.pem'}",
        f"--tls-private-key-file={folder / 'key.pem'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-account-key-file={folder / 'signing.pem'}",
        f"--service-account-signing-key-file={folder / 'signing.pem'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--kubelet-preferred-address-types=InternalIP",
        f"--default-not-ready-toleration-seconds={TOLERATION_S}",
        f"--default-unreachable-toleration-seconds={TOLERATION_S}",
    )


def _controller_flags(folder: Path, name: str) -> Sequence[str]:
    flags = (f"--kubeconfig={folder / 'kubeconfig'}", "--leader-elect=false", "--secure-port=0")
    if name != "kube-controller-manager":
        return flags
    return (
        *flags,
        f"--service-account-private-key-file={folder / 'signing.pem'}",
        f"--root-ca-file={folder / 'authority.pem'}",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GRACE_S}s",
    )


def _await_ready(admin: Api, processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    def is_ready() -> bool:
        logs = "".join((path.read_text(errors="replace")[-2000:]) for path in folder.glob("*.log"))
        assert all(process.poll() is None for process in processes), f"the control plane ended: {logs}"
        try:
            return admin.text("/readyz") == "ok"
        except (requests.ConnectionError, Refused):
            return False

    await_true("the API server is ready", is_ready, every_s=0.1)


def _start(folder: Path, path: str, *flags: str) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process, however that ends."""
    launch = [sys.executable, "-I", "-S", "-c", LAUNCH, str(os.getpid()), path, *flags]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / f"{Path(path).name}.log").open("ab") as log:
        return subprocess.Popen(launch, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _kubeconfig(api: Api, token: str, namespace: str) -> dict[str, Any]:
    authority = base64.b64encode(api.authority.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": api.url, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
        ],
        "current-context": "test",
    }


def _write_signing_key(path: Path) -> None:
    """Write the key with which the tokens of service accounts are signed."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kinds = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.write_bytes(key.private_bytes(*kinds))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


needs_kubernetes = pytest.mark.skipif(
    bool(missing()), reason=f"there is no Kubernetes control plane here: {missing()}"
)
