"""The small kubelet does with pods what the real one does, under the real scheduler, Job controller and
eviction.
"""

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from tests.kubernetes.api import Thing
from tests.kubernetes.cluster import GPU, Cluster
from tests.waiting import await_true

WAITS = "trap 'echo told; exit 7' TERM; echo up; while :; do sleep 0.05; done"


class Jobs:
    """Jobs of one namespace, each of one pod."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._core, self._batch = (
            f"/api/v1/namespaces/{namespace}",
            f"/apis/batch/v1/namespaces/{namespace}/jobs",
        )

    def create(
        self, script: str, *, gpus: int = 1, grace_s: int = 30, rules: Sequence[Thing] = (), **container: Any
    ) -> None:
        limits = {"limits": {GPU: str(gpus)}} if gpus else {}
        pod_keys = ("volumes", "initContainers", "tolerations")
        pod = {key: container.pop(key) for key in pod_keys if key in container}
        main = {
            "name": "main",
            "image": "none",
            "command": ["sh", "-c", script],
            "resources": limits,
            **container,
        }
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": grace_s,
            "containers": [main],
            **pod,
        }
        policy = {"podFailurePolicy": {"rules": list(rules)}} if rules else {}
        job = {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": {"spec": spec}, **policy}
        self.cluster.admin.post(
            self._batch, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": job}
        )

    def secret(self, **values: str) -> None:
        data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "data": data}
        self.cluster.admin.post(f"{self._core}/secrets", body)

    @property
    def pods(self) -> list[Thing]:
        return self.cluster.admin.items(f"{self._core}/pods")

    @property
    def pod(self) -> Thing:
        (found,) = self.pods
        return found

    @property
    def pod_name(self) -> str:
        return str(self.pod["metadata"]["name"])

    def log(self) -> str:
        return self.cluster.admin.text(f"{self._core}/pods/{self.pod_name}/log")

    def state(self) -> Thing:
        pods = self.pods
        statuses = pods[0].get("status", {}).get("containerStatuses", []) if pods else []
        return dict(statuses[0]["state"]) if statuses else {}

    def await_log(self, text: str) -> None:
        await_true(
            f"the pod says {text!r}",
            lambda: "waiting" not in (self.state() or {"waiting": 1}) and text in self.log(),
            every_s=0.1,
        )

    def await_condition(self, kind: str) -> Thing:
        def found() -> list[Thing]:
            conditions = self.cluster.admin.get(f"{self._batch}/job").get("status", {}).get("conditions", [])
            met = [
                one for one in conditions if one["status"] == "True" and one["type"] in ("Complete", "Failed")
            ]
            assert all(one["type"] == kind for one in met), f"{met}\n{self.cluster.evidence()}"
            return met

        await_true(f"the job is {kind}", found, every_s=0.1)
        return found()[0]

    def delete_pod(self, **options: Any) -> None:
        self.cluster.admin.delete(f"{self._core}/pods/{self.pod_name}", **options)


@pytest.fixture
def jobs(cluster: Cluster, namespace: str) -> Jobs:
    return Jobs(cluster, namespace)


def conditions(pod: Thing) -> dict[str, Thing]:
    return {one["type"]: one for one in pod["status"]["conditions"]}


def test_a_job_runs_on_the_machine_with_enough_gpus(cluster: Cluster, jobs: Jobs) -> None:
    cluster.machine(gpus=1)
    large = cluster.machine(gpus=8)
    jobs.create("echo $$$$ on $NODE; ls /proc | grep -c '^[0-9]'; df --output=size -k /dev/shm | tail -1; "
                "exit 0", gpus=4, env=[
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    ])  # fmt: skip
    jobs.await_condition("Complete")
    first, processes, shared_memory = jobs.log().splitlines()
    assert first == f"1 on {large.name}", "the command is process 1, as in a container"
    assert int(processes) <= 3, "it sees only its own processes"
    assert int(shared_memory) == 64 * 1024, "as much shared memory as a container runtime gives"
    assert jobs.state()["terminated"]["reason"] == "Completed"


def test_a_command_that_fails_fails_the_job_with_its_code(cluster: Cluster, jobs: Jobs) -> None:
    cluster.machine()
    jobs.create("exit 42")
    jobs.await_condition("Failed")
    assert jobs.state()["terminated"]["exitCode"] == 42
    assert jobs.pod["status"]["phase"] == "Failed"


def test_a_command_that_there_is_not_is_an_error_of_its_own(cluster: Cluster, jobs: Jobs) -> None:
    cluster.machine()
    jobs.create("", command=["/no/such/program"])
    jobs.await_condition("Failed")
    assert jobs.state()["terminated"]["exitCode"] != 0


def test_a_variable_from_a_missing_secret_keeps_the_pod_waiting_until_the_secret_is_there(
    cluster: Cluster, jobs: Jobs
) -> None:
    cluster.machine()
    jobs.create(
        "echo $TOKEN and $TWICE",
        env=[
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "token"}}},
            {"name": "TWICE", "value": "$(TOKEN)$(TOKEN) $$(TOKEN) $(NOT_KNOWN)"},
        ],
    )  # fmt: skip
    await_true(
        "the pod waits",
        lambda: jobs.state().get("waiting", {}).get("reason") == "CreateContainerConfigError",
        every_s=0.1,
    )
    jobs.secret(token="abc")
    jobs.await_condition("Complete")
    assert jobs.log() == "abc and abcabc $(TOKEN) $(NOT_KNOWN)\n"


def test_secrets_are_files_too_and_init_containers_share_volumes(cluster: Cluster, jobs: Jobs) -> None:
    cluster.machine()
    jobs.secret(token="abc", other="unseen")
    shared = {"name": "shared", "mountPath": "/opt/made/here"}
    jobs.create(
        "cat /etc/prime/key /opt/made/here/first; stat -Lc %a /etc/prime/key; ls /etc/prime; touch "
        "/dev/shm/wide",
        volumes=[
            {
                "name": "secret",
                "secret": {
                    "secretName": "secret",
                    "defaultMode": 0o400,
                    "items": [{"key": "token", "path": "key"}],
                },
            },
            {"name": "shared", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
        volumeMounts=[
            {"name": "secret", "mountPath": "/etc/prime", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
            shared,
        ],
        initContainers=[
            {
                "name": "first",
                "image": "none",
                "command": ["sh", "-c", "echo =first > /opt/made/here/first"],
                "volumeMounts": [shared],
            }
        ],
    )
    jobs.await_condition("Complete")
    assert jobs.log().split() == ["abc=first", "400", "key"]


def test_a_deleted_pod_has_its_grace_period_and_then_its_object_is_gone(cluster: Cluster, jobs: Jobs) -> None:
    machine = cluster.machine()
    jobs.create(f"sh -c \"trap '' TERM; sleep 600\" & {WAITS}")
    jobs.await_log("up")
    jobs.delete_pod()
    jobs.await_condition("Failed")
    await_true("the pod is gone", lambda: not jobs.pods, every_s=0.1)
    assert not list((machine.folder / "pods").iterdir()), "its disk is gone"


def test_a_command_that_does_not_handle_sigterm_is_killed_after_the_grace_period(
    cluster: Cluster, jobs: Jobs
) -> None:
    cluster.machine()
    jobs.create("echo up; sleep 600; echo", grace_s=1)
    jobs.await_log("up")
    before = cluster.admin.get(f"/api/v1/namespaces/{jobs.namespace}/pods")["metadata"]["resourceVersion"]
    name = jobs.pod_name
    jobs.delete_pod()
    exits = []
    for kind, pod in cluster.admin.watch(f"/api/v1/namespaces/{jobs.namespace}/pods", before):
        exits += [
            one["state"]["terminated"]["exitCode"]
            for one in pod["status"]["containerStatuses"]
            if "terminated" in one["state"]
        ]
        if kind == "DELETED" and pod["metadata"]["name"] == name:
            break
    assert exits[-1] == 137, "a shell is process 1 and has no handler, so SIGTERM does nothing"


def test_an_evicted_pod_is_told_and_marked_and_does_not_count_as_a_failure(
    cluster: Cluster, jobs: Jobs
) -> None:
    cluster.machine()
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    jobs.create(WAITS, rules=[rule])
    jobs.await_log("up")
    first = jobs.pod_name
    cluster.evict(jobs.namespace, first)
    await_true(
        "another pod runs",
        lambda: [pod["metadata"]["name"] for pod in jobs.pods if pod["metadata"]["name"] != first],
        every_s=0.1,
    )
    jobs.await_log("up")


def test_a_machine_that_is_switched_off_gives_its_pods_a_notice(cluster: Cluster, jobs: Jobs) -> None:
    machine = cluster.machine()
    jobs.create(WAITS)
    jobs.await_log("up")
    machine.switch_off()
    pod = jobs.pod
    assert pod["status"]["phase"] == "Failed"
    assert conditions(pod)["DisruptionTarget"]["reason"] == "TerminationByKubelet"
    assert jobs.state()["terminated"]["exitCode"] == 7, "it handled the signal"
    jobs.await_condition("Failed")
    assert not machine.is_ready


@pytest.mark.slow
def test_the_pods_of_a_lost_machine_are_evicted_and_gone_once_its_node_is(
    cluster: Cluster, jobs: Jobs
) -> None:
    machine = cluster.machine()
    cluster.machine(gpus=0)  # where every node of a zone is lost, Kubernetes doubts itself and evicts nothing
    jobs.create(WAITS)
    jobs.await_log("up")
    machine.lose()
    await_true("the pod is to be deleted", lambda: "deletionTimestamp" in jobs.pod["metadata"], every_s=0.2)
    assert conditions(jobs.pod)["DisruptionTarget"]["reason"] == "DeletionByTaintManager"
    machine.remove()
    await_true("the pod is gone", lambda: not jobs.pods, every_s=0.5)


def test_containers_survive_their_kubelet_and_the_next_one_finds_them(cluster: Cluster, jobs: Jobs) -> None:
    machine = cluster.machine()
    jobs.create("echo up; until [ -e /tmp/go ]; do sleep 0.05; done; echo went on; exit 5")
    jobs.await_log("up")
    uid = jobs.pod["metadata"]["uid"]
    machine.kill_kubelet()
    machine.start()
    (machine.folder / "pods" / uid / "main" / "disk" / "tmp" / "go").touch()
    jobs.await_condition("Failed")
    assert jobs.state()["terminated"]["exitCode"] == 5
    assert jobs.log() == "up\nwent on\n"


def test_a_pod_that_was_deleted_by_force_behind_a_dead_kubelet_is_killed_by_the_next_one(
    cluster: Cluster, jobs: Jobs
) -> None:
    machine = cluster.machine()
    jobs.create(WAITS)
    jobs.await_log("up")
    pods = machine.folder / "pods"
    machine.kill_kubelet()
    jobs.delete_pod(gracePeriodSeconds=0)
    assert list(pods.iterdir()), "it runs on, as on a machine that is cut off"
    machine.start()
    await_true("nothing of it is left", lambda: not list(pods.iterdir()))
