"""A control plane of real processes that rents from a real Kubernetes: its machines are Jobs, and its agents
processes in their pods.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from prime_train.runs.run import Run
from tests.e2e.plane import CONFIG, STEPS, Plane, plane, write_config
from tests.kubernetes.api import Thing
from tests.kubernetes.cluster import ROOT, Cluster, Machine
from tests.waiting import await_true

KINDS = ("/apis/batch/v1/{}/jobs", "/api/v1/{}/pods", "/api/v1/{}/secrets")
HEALTH = {
    "heartbeat_s": 1,
    "overdue_s": 3,
    "silence_s": 5,
    "first_heartbeat_s": 60,
    "first_step_s": 60,
    "stall_s": 60,
    "settle_s": 30,
    "drain_s": 20,
}


@dataclass
class KubernetesPlane:
    """A control plane, the cluster that it rents from, and the namespace of its machines."""

    plane: Plane
    cluster: Cluster
    namespace: str
    shared: Path

    def machine(self, **settings: object) -> Machine:
        """Add a machine that sees the bucket."""
        return self.cluster.machine(gpus=0, shared=[self.shared], **settings)  # type: ignore[arg-type]

    def launch(self, folder: Path, *, step_s: float) -> str:
        config = write_config(folder, CONFIG, step_s=step_s)
        sections = yaml.safe_load(config.read_text())
        sections["hardware"] |= {"provider": "kubernetes"}
        config.write_text(yaml.safe_dump({**sections, "health": HEALTH}))
        return self.plane.launch(config)

    def things(self, kind: str) -> list[Thing]:
        return self.cluster.admin.items(kind.format(f"namespaces/{self.namespace}"))

    @property
    def living(self) -> list[Thing]:
        """Return the pods that nobody has told to end."""
        return [pod for pod in self.things(KINDS[1]) if "deletionTimestamp" not in pod["metadata"]]

    def await_committed(self, run_id: str, step: int, attempt: int) -> Thing:
        """Wait until this attempt has made this step durable, and return its pod."""

        def is_committed() -> bool:
            record = self.plane.store.load(run_id)
            assert record is not None
            assert not record.run.is_over, record.run.why
            heartbeat = record.lease.heartbeat
            return (
                record.lease.committed_step >= step
                and record.run.attempt == attempt
                and heartbeat is not None
                and heartbeat.step > step
            )

        await_true(f"attempt {attempt} has made step {step} durable", is_committed)
        (pod,) = self.living
        return pod

    def await_end(self, run_id: str) -> Run:
        """Wait until the run is over, and nothing of it is left in the cluster."""
        await_true(f"{run_id} is over", lambda: self.plane.run(run_id).is_over, every_s=0.2)
        for kind in KINDS:
            await_true(f"{kind} has none left", lambda kind=kind: not self.things(kind), every_s=0.2)  # type: ignore[misc]
        await_true(
            "the ledger is settled",
            lambda: all(a.ended_s is not None for a in self.plane.run(run_id).attempts),
        )
        return self.plane.run(run_id)

    def evidence(self) -> str:
        return f"{self.plane.evidence()}\n{self.cluster.evidence()}"


@contextmanager
def kubernetes_plane(
    folder: Path, cluster: Cluster, namespace: str, python: str
) -> Iterator[KubernetesPlane]:
    """Run a control plane whose machines are in this namespace. `python`: one that has the agent, as an image
    would.
    """
    shared = folder / "shared"
    shared.mkdir(parents=True)
    token = cluster.account(namespace, *_documented_rights())
    settings = {
        "kubeconfig": str(cluster.kubeconfig(folder / "kubeconfig.yaml", token=token, namespace=namespace)),
        "grace_s": 20,
        "usd_per_hour": 0.5,
        "cpus": 1,
        "memory_gib": 1,
    }
    named = {
        "PRIME_TRAIN_KUBERNETES": yaml.safe_dump(settings),
        "PRIME_TRAIN_BUCKET": (shared / "bucket").as_uri(),
        "PRIME_TRAIN_POD_PYTHON": python,
    }
    with plane(folder / "plane", settings=named) as control:
        here = KubernetesPlane(control, cluster, namespace, shared)
        try:
            yield here
        except AssertionError as error:
            raise AssertionError(f"{error}\n{here.evidence()}") from error


def _documented_rights() -> tuple[list[Thing], list[Thing]]:
    """Return the rules of the Role and of the ClusterRole that the documentation tells users to create."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "kubernetes.md").read_text(), re.DOTALL)
    found = [one for block in blocks if "kind: ClusterRole" in block for one in yaml.safe_load_all(block)]
    rules = {one["kind"]: one["rules"] for one in found}
    return rules["Role"], rules["ClusterRole"]


__all__ = ["KINDS", "STEPS", "KubernetesPlane", "kubernetes_plane"]
