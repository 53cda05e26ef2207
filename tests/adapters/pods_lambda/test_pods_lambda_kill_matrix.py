"""What a run does when Lambda Cloud fails it: the ways that other rental APIs do not have; see
`rental_apis`.
"""

from pathlib import Path

import pytest

from prime_train.spec.causes import Cause
from tests.adapters.pods_lambda.lambda_pods import LAUNCH, LambdaDays, days_of
from tests.exhaustive import some_of
from tests.fakes.http import ALWAYS
from tests.fakes.lambda_cloud import FakeLambdaCloud, error


@pytest.fixture(name="days")
def _days(fake: FakeLambdaCloud, tmp_path: Path) -> LambdaDays:
    return days_of(fake, tmp_path)


@pytest.fixture(name="training")
def _training(days: LambdaDays) -> LambdaDays:
    days.pass_by(300)
    assert days.is_training_alone()
    return days


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    some_of(
        [
            (400, "instance-operations/launch/insufficient-capacity", Cause.NO_CAPACITY),
            (404, "global/object-does-not-exist", Cause.NO_CAPACITY),
            (403, "global/account-inactive", Cause.NO_FUNDS),
            (400, "global/invalid-parameters", Cause.LAUNCH_REFUSED),
            (401, "global/invalid-api-key", Cause.LAUNCH_REFUSED),
        ],
        one_in=4,
    ),
)
def test_a_refusal_is_taken_by_its_code_and_nothing_is_rented(
    days: LambdaDays, status: int, code: str, cause: Cause
) -> None:
    days.fake.fail(error(status, code), times=ALWAYS, method="POST", path=LAUNCH)
    days.pass_by(600)
    assert {attempt.cause for attempt in days.run().attempts} == {cause}
    assert not days.fake.instances
    if cause is Cause.NO_CAPACITY:
        days.fake.heal()
        days.pass_by(1800)
        assert days.is_training_alone()


def test_at_its_own_pace_a_run_draws_no_429(training: LambdaDays) -> None:
    training.fake.end(training.pod.id, None)
    training.pass_by(3600)
    assert training.is_training_alone()
    assert {request.status for request in training.fake.requests} <= {200, 404}
