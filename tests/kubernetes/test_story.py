"""A run on a real Kubernetes: launched, its node lost, resumed, its pod evicted with a notice, and stopped;
nothing is left behind.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, point_of
from prime_train.checkpoints.restore import restore
from prime_train.demo.train import load_checkpoint, load_corpus
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.kubernetes_plane import KINDS, STEPS, KubernetesPlane, kubernetes_plane
from tests.waiting import HANG_S, await_true


@pytest.fixture
def here(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[KubernetesPlane]:
    with kubernetes_plane(tmp_path / "here", cluster, namespace, sys.executable) as made:
        yield made


def uninterrupted(folder: Path) -> str:
    """Return the hash of the weights after the same training without an agent."""
    command = [
        sys.executable,
        "-m",
        "prime_train.demo.train",
        "--steps",
        str(STEPS),
        "--save-every",
        "25",
        "--out",
        str(folder),
    ]
    subprocess.run([*command, "--batch-size", "16"], check=True, capture_output=True, timeout=HANG_S)
    return load_checkpoint(folder / "checkpoints", STEPS, len(load_corpus()[2])).digest()


def final_hash(bucket: Bucket, run_id: str, folder: Path) -> str:
    """Return the hash of the weights of the run's last checkpoint, restored from the bucket."""
    newest = Reader(bucket, run_id).catalog().complete()[0]
    assert newest.step == STEPS
    restore(bucket, run_id, point_of(newest), folder)
    return load_checkpoint(folder, STEPS, len(load_corpus()[2])).digest()


@pytest.mark.slow
def test_a_run_survives_a_lost_node_and_an_eviction_and_leaves_nothing_behind(
    here: KubernetesPlane, tmp_path: Path
) -> None:
    first, second = here.machine(), here.machine()
    run_id = here.launch(tmp_path, step_s=0.15)
    lost = here.cluster.node_of(here.await_committed(run_id, 25, attempt=1))
    lost.lose()
    lost.remove()
    evicted = here.await_committed(run_id, 25, attempt=2)
    assert here.cluster.node_of(evicted).name in {first.name, second.name} - {lost.name}
    here.cluster.evict(here.namespace, evicted["metadata"]["name"])
    run = here.await_end(run_id)
    assert run.state is RunState.SUCCEEDED, run.why
    assert [a.cause for a in run.attempts[1:]] == [Cause.PREEMPTED, Cause.FINISHED]
    assert run.attempts[1].resumed_step == 25
    assert run.attempts[2].resumed_step > 25, "the agent saved when it was told"
    assert final_hash(here.plane.bucket, run_id, tmp_path / "restored") == uninterrupted(tmp_path / "alone")


def test_a_run_that_is_stopped_saves_and_leaves_nothing_behind(here: KubernetesPlane, tmp_path: Path) -> None:
    here.machine()
    run_id = here.launch(tmp_path, step_s=0.15)
    here.await_committed(run_id, 25, attempt=1)
    here.plane.cli("stop", run_id)
    run = here.await_end(run_id)
    assert run.state is RunState.STOPPED, run.why
    assert run.durable_step > 25, "it saved before it stopped"


@pytest.mark.slow
def test_a_node_that_is_cut_off_keeps_its_run_as_long_as_the_agent_is_heard(
    here: KubernetesPlane, tmp_path: Path
) -> None:
    for _ in range(2):
        here.machine()
    run_id = here.launch(tmp_path, step_s=0.3)
    pod = here.await_committed(run_id, 25, attempt=1)
    cut_off = here.cluster.node_of(pod)
    cut_off.kill_kubelet()
    await_true("Kubernetes gives the pod up", lambda: not here.living, every_s=0.2)
    assert not cut_off.is_ready
    await_true(f"{run_id} is over", lambda: here.plane.run(run_id).is_over, every_s=0.2)
    assert here.things(KINDS[1]), "only its kubelet can end the pod"
    cut_off.start()
    run = here.await_end(run_id)
    assert run.state is RunState.SUCCEEDED, run.why
    assert len(run.attempts) == 1, "its heartbeats arrived all the time"
