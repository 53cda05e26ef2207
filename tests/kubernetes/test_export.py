"""A config exported as a Job: the real Job controller replaces its pods, and they train to the end."""

import sys
from pathlib import Path

import pytest
import yaml

from prime_train.buckets.keys import task_run_key
from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.catalog import Reader
from tests.cli.shell import Shell
from tests.e2e.plane import STEPS, write_config
from tests.kubernetes.api import Thing
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.test_story import final_hash, uninterrupted
from tests.waiting import await_true

PATHS = {"ConfigMap": "/api/v1/namespaces/{}/configmaps", "Job": "/apis/batch/v1/namespaces/{}/jobs"}


@pytest.mark.slow
def test_a_jobs_pods_follow_each_other_to_the_same_end(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    url = (shared / "bucket").as_uri()
    machine = cluster.machine(gpus=0, shared=[shared])
    shell, config = Shell(tmp_path), write_config(tmp_path, step_s=0.15)
    given = {"PRIME_TRAIN_BUCKET": url, "PRIME_TRAIN_POD_PYTHON": sys.executable}
    done = shell.run("export", str(config), "--format", "kubernetes", "--output", "job", **given)
    assert done.returncode == 0, done.stdout + done.stderr
    for thing in yaml.load_all((tmp_path / "job" / "job.yaml").read_text(), yaml.CSafeLoader):
        cluster.admin.post(PATHS[thing["kind"]].format(namespace), thing)
        task = thing["metadata"]["name"]

    def pods() -> list[Thing]:
        found = cluster.admin.items(f"/api/v1/namespaces/{namespace}/pods")
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def log(pod: Thing) -> str:
        running = any("waiting" not in one["state"] for one in pod["status"].get("containerStatuses", []))
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/log"
        return cluster.admin.text(path) if running else ""

    await_true(
        "the first pod trains", lambda: any("training at step" in log(pod) for pod in pods()), every_s=0.2
    )
    (first,) = pods()
    cluster.evict(namespace, first["metadata"]["name"])
    bucket = open_bucket(url, {})

    def ended() -> bool:
        conditions = (
            cluster.admin.get(f"{PATHS['Job'].format(namespace)}/{task}")
            .get("status", {})
            .get("conditions", [])
        )
        met = [one["type"] for one in conditions if one["status"] == "True"]
        assert "Failed" not in met, cluster.evidence()
        return "Complete" in met

    await_true("the Job is complete", ended, every_s=0.2)
    runs = [bucket.get(task_run_key(task, number)) for number in (1, 2)]
    first_run, last_run = (run.data.decode() for run in runs if run is not None)
    saved = Reader(bucket, first_run).catalog().complete()[0]
    assert 0 < saved.step < STEPS, "the first pod saved when it was told"
    assert f"starts from step {saved.step} of" in log(pods()[-1])
    assert final_hash(bucket, last_run, tmp_path / "restored") == uninterrupted(tmp_path / "alone")
    assert machine.is_ready
