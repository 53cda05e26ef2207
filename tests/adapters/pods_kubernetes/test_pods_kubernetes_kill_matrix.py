"""What a run does when a cluster fails it: the ways that other providers do not have; see `rental_apis`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from tests.adapters.pods_kubernetes.kubernetes_pods import JOBS, PODS, KubernetesDays, days_of
from tests.adapters.strikes import Strike, strikes
from tests.fakes.http import ALWAYS, Fault, Response, Rewrite
from tests.fakes.kubernetes import FakeKubernetes, failure

CREATE: dict[str, Any] = {"method": "POST", "path": f"{JOBS}$"}
LISTS: dict[str, Any] = {"method": "GET", "path": f"({JOBS}|{PODS})$"}


@pytest.fixture(name="days")
def _days(fake: FakeKubernetes, tmp_path: Path) -> KubernetesDays:
    return days_of(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: KubernetesDays) -> KubernetesDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


def orders(days: KubernetesDays) -> int:
    return len(days.fake.requests_to("POST", JOBS))


# ------------------------------------------------------------------------------------------------------------
# the create call


@strikes(Strike.TWICE, "kubernetes")
def test_a_job_that_is_there_although_it_was_not_answered_is_found_by_its_name(days: KubernetesDays) -> None:
    # Something between us and the cluster has repeated the request.
    days.fake.fail(Rewrite(lambda response: failure(409, "AlreadyExists", kind="jobs")), **CREATE)
    days.pass_by(900)
    assert days.is_training_alone()
    assert orders(days) == 1


def test_a_job_whose_pod_a_quota_forbids_is_given_back(days: KubernetesDays) -> None:
    days.fake.plan.makes_pods = False
    days.pass_by(400)
    assert [attempt.cause for attempt in days.run().attempts][:1] == [Cause.BOOT_FAILED]
    days.fake.plan.makes_pods = True
    days.pass_by(3600)
    assert days.is_training_alone()
    assert days.most_alive == 1


# ------------------------------------------------------------------------------------------------------------
# the pod


@strikes(Strike.REBORN, "kubernetes")
def test_a_pod_on_a_node_that_is_cut_off_is_not_taken_for_gone_and_ends_when_the_node_is_back(
    training: KubernetesDays,
) -> None:
    first = training.pod
    training.fake.lose_node(first.id)
    training.pass_by(200)
    assert (training.run().attempt, training.run().attempts[0].ended_s) == (1, None)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (2, RunState.TRAINING)
    # Its Job is deleted, and the pod is still counted as a machine.
    assert training.run().attempts[0].ended_s is None
    training.fake.pod_of(first.id)["status"]["phase"] = "Running"
    training.pass_by(600)
    assert training.is_training_alone()
    assert training.run().attempts[0].ended_s is not None


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"])
def test_a_container_that_can_never_start_is_given_back(days: KubernetesDays, reason: str) -> None:
    days.fake.fail(Response(503), method="POST", path="/secrets$", times=ALWAYS)
    days.pass_by(60)
    days.fake.wait_for(days.pod.id, reason)
    days.pass_by(600)
    assert days.run().attempts[0].cause is Cause.BOOT_FAILED
    days.fake.heal()
    days.pass_by(1800)
    assert days.is_training_alone()


def test_a_second_pod_of_a_job_starts_no_agent(training: KubernetesDays) -> None:
    """A queue may stop a Job and start it again later, whatever the Job's own policy is."""
    fake, first = training.fake, training.pod
    with fake.lock:
        job = fake.job_of(first.id)
        fake.pods.clear()
        fake.advance(1)
    training.pass_by(60)
    assert [(each.ticket is None) for each in fake.started][:2] == [False, True]
    assert job["status"]["failed"] == 1
    training.pass_by(1800)
    assert training.is_training_alone()
    assert training.run().attempt == 2


def test_a_pod_that_somebody_left_behind_without_its_job_is_ended_with_its_run(
    training: KubernetesDays,
) -> None:
    del training.fake.jobs[training.pod.id.partition(".")[0]]
    training.pass_by(600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.cancel()
    training.pass_by(1800)
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------
# the list and the limits


def _endless(response: Response) -> Response:
    return replace(
        response, body=json.dumps({**json.loads(response.body), "metadata": {"continue": "again"}}).encode()
    )


@strikes(Strike.CUT_LIST, "kubernetes")
@pytest.mark.parametrize(
    "fault",
    [
        Rewrite(_endless),
        failure(410, "Expired", "The provided continue parameter is too old"),
        failure(403, "Forbidden", "no right"),
    ],
)
def test_no_list_without_an_end_and_no_refusal_of_one_costs_a_machine(
    training: KubernetesDays, fault: Fault
) -> None:
    training.fake.fail(fault, times=ALWAYS, **LISTS)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, orders(training)) == (1, 1)


def test_a_404_about_another_job_proves_no_machine_gone(training: KubernetesDays) -> None:
    training.fake.fail(failure(404, "NotFound", name="another"), path=f"{JOBS}/", times=ALWAYS)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
