"""What a run does when a cluster fails it: each way in which a create call, a pod or a list can go wrong.

A run on pods of the fake, in virtual time; its agents send heartbeats as long as their containers run.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.adapters.pods_kubernetes.kubernetes_pods import JOBS, PODS, KubernetesDays, days_of
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS, TRUNCATED, Fault, LoseResponse, Response, Rewrite
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


# ------------------------------------------------------------------------------------------------------------------- the create call


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            LoseResponse(),
            TRUNCATED,
            Rewrite(lambda response: replace(response, status=502, body=b"<html>bad gateway</html>")),
            Rewrite(lambda response: replace(response, body=b"{}")),
            Rewrite(lambda response: replace(response, body=response.body.replace(b"pt-", b"px-"))),
            # Something between us and the cluster has repeated the request.
            Rewrite(lambda response: failure(409, "AlreadyExists", kind="jobs")),
        ],
        one_in=5,
    ),
)
def test_a_job_whose_create_call_got_no_usable_answer_is_found_by_its_name(days: KubernetesDays, fault: Fault) -> None:
    days.fake.fail(fault, **CREATE)
    days.pass_by(900)
    assert days.is_training_alone()
    assert orders(days) == 1


def test_a_create_call_that_never_arrived_is_made_again_and_makes_one(days: KubernetesDays) -> None:
    days.fake.fail(Response(503), **CREATE)
    days.pass_by(3600)
    assert days.is_training_alone()
    assert orders(days) == 2
    assert days.run().attempts[0].cause is Cause.LAUNCH_LOST


def test_a_quota_of_jobs_puts_no_offer_last(days: KubernetesDays) -> None:
    days.fake.limits.jobs = 0
    days.pass_by(1800)
    assert {attempt.cause for attempt in days.run().attempts} == {Cause.LIMIT_REACHED}
    assert days.run().excluded == ()
    days.fake.limits.jobs = 1
    days.pass_by(900)
    assert days.is_training_alone()


def test_a_job_whose_pod_a_quota_forbids_is_given_back(days: KubernetesDays) -> None:
    days.fake.plan.makes_pods = False
    days.pass_by(400)
    assert [attempt.cause for attempt in days.run().attempts][:1] == [Cause.BOOT_FAILED]
    days.fake.plan.makes_pods = True
    days.pass_by(3600)
    assert days.is_training_alone()
    assert days.most_alive == 1


# -------------------------------------------------------------------------------------------------------------------------- the pod


def _exits(fake: FakeKubernetes, pod_id: str) -> None:
    fake.end_container(pod_id, 137)


@pytest.mark.parametrize("end", [FakeKubernetes.disrupt, FakeKubernetes.forget, _exits])
def test_a_pod_that_is_taken_away_is_followed_by_one_of_another_job(
    training: KubernetesDays, end: Callable[[FakeKubernetes, str], None]
) -> None:
    first = training.pod
    end(training.fake, first.id)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert training.pod.id != first.id
    assert (training.run().attempt, training.most_alive) == (2, 1)
    assert [each.ticket.attempt for each in training.fake.started if each.ticket] == [1, 2]


def test_a_pod_on_a_node_that_is_cut_off_is_not_taken_for_gone_and_ends_when_the_node_is_back(training: KubernetesDays) -> None:
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


def test_a_pod_that_boots_for_ever_is_given_back_and_another_is_made(days: KubernetesDays) -> None:
    days.fake.plan.boot_s = 10**6
    days.pass_by(60)
    days.fake.plan.boot_s = 0
    days.fake.nodes["a100"]["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    days.pass_by(3600)
    assert days.is_training_alone()
    assert days.most_alive == 1


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


def test_a_job_that_the_list_lacks_but_that_lives_is_kept_and_ended_with_its_run(training: KubernetesDays) -> None:
    training.pod.hide()
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, orders(training)) == (1, 1)
    training.cancel()
    training.pass_by(1800)
    assert training.run().state is RunState.CANCELLED
    assert not training.fake.alive


def test_a_pod_that_somebody_left_behind_without_its_job_is_ended_with_its_run(training: KubernetesDays) -> None:
    del training.fake.jobs[training.pod.id.partition(".")[0]]
    training.pass_by(600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.cancel()
    training.pass_by(1800)
    assert not training.fake.alive


# ------------------------------------------------------------------------------------------------------------ the list and the limits


def _without_items(response: Response) -> Response:
    return replace(response, body=json.dumps({**json.loads(response.body), "items": []}).encode())


def _endless(response: Response) -> Response:
    return replace(response, body=json.dumps({**json.loads(response.body), "metadata": {"continue": "again"}}).encode())


@pytest.mark.parametrize(
    "fault",
    some_of(
        [
            Rewrite(_without_items),
            Rewrite(_endless),
            failure(410, "Expired", "The provided continue parameter is too old"),
            TRUNCATED,
            Response(200, b"{}"),
            Response(200, b"<html>"),
            Response(404, b"<html>no route</html>"),
            failure(403, "Forbidden", "no right"),
            failure(500, "InternalError"),
        ],
        one_in=4,
    ),
)
def test_no_list_that_is_cut_short_or_garbled_costs_a_machine(training: KubernetesDays, fault: Fault) -> None:
    training.fake.fail(fault, times=ALWAYS, **LISTS)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert (training.run().attempt, orders(training)) == (1, 1)


@pytest.mark.parametrize(
    "answer", some_of([Response(404, b"<html>no route</html>"), failure(404, "NotFound", name="another"), Response(301)], one_in=2)
)
def test_a_404_that_is_not_about_the_job_proves_no_machine_gone(training: KubernetesDays, answer: Response) -> None:
    training.fake.fail(answer, path=f"{JOBS}/", times=ALWAYS)
    training.fake.fail(Rewrite(_without_items), times=ALWAYS, **LISTS)
    training.pass_by(1800)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)


@pytest.mark.parametrize("headers", some_of([{"Retry-After": "3600"}, {}, {"Retry-After": "soon"}], one_in=3))
def test_a_429_to_everything_loses_nothing(training: KubernetesDays, headers: dict[str, str]) -> None:
    first = training.pod
    training.fake.fail(failure(429, "TooManyRequests", headers=headers), times=ALWAYS)
    training.pass_by(3600)
    assert (training.run().attempt, training.run().state) == (1, RunState.TRAINING)
    training.fake.heal()
    training.fake.forget(first.id)
    training.pass_by(3600)
    assert training.is_training_alone()
