"""The policy table, row by row."""

import pytest

from prime_train.spec.causes import POLICY, Cause, Retry

INFRASTRUCTURE = [
    Cause.BOOT_TIMEOUT,
    Cause.LAUNCH_REFUSED,
    Cause.NO_CAPACITY,
    Cause.AGENT_ERROR,
    Cause.PREFLIGHT_FAILED,
]


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_a_row_in_the_policy_table(cause: Cause) -> None:
    assert POLICY[cause].title


@pytest.mark.parametrize("cause", [Cause.GPU_OOM, Cause.HOST_OOM])
def test_out_of_memory_is_never_retried(cause: Cause) -> None:
    assert POLICY[cause].retry is Retry.NEVER


@pytest.mark.parametrize("cause", [Cause.BAD_CONFIG, Cause.IMPORT_ERROR])
def test_an_error_in_the_code_or_the_config_is_never_retried(cause: Cause) -> None:
    assert POLICY[cause].retry is Retry.NEVER


def test_preemption_has_no_count_and_no_back_off_and_keeps_its_offer() -> None:
    policy = POLICY[Cause.PREEMPTED]
    assert (policy.retry, policy.backs_off, policy.exclude_offer) == (Retry.FREE, False, False)


@pytest.mark.parametrize("cause", INFRASTRUCTURE)
def test_infrastructure_backs_off_and_leaves_out_the_offer_that_failed(cause: Cause) -> None:
    assert POLICY[cause].backs_off
    assert POLICY[cause].exclude_offer


def test_a_service_that_does_not_answer_is_waited_for_without_counting_and_is_no_fault_of_the_offer() -> None:
    policy = POLICY[Cause.NETWORK_ERROR]
    assert (policy.retry, policy.backs_off, policy.exclude_offer) == (Retry.FREE, True, False)


@pytest.mark.parametrize(
    "cause", [c for c in Cause if POLICY[c].retry is Retry.NEVER and c not in (Cause.FINISHED, Cause.PROBED)]
)
def test_whatever_stops_a_run_for_good_says_what_to_do(cause: Cause) -> None:
    assert POLICY[cause].advice_while_live.endswith(".")


@pytest.mark.parametrize("cause", [c for c in Cause if POLICY[c].retry is Retry.NEVER])
def test_what_is_never_retried_asks_nothing_of_the_next_machine(cause: Cause) -> None:
    assert not POLICY[cause].exclude_offer
    assert not POLICY[cause].backs_off


@pytest.mark.parametrize("cause", [c for c in Cause if POLICY[c].needs_person])
def test_what_needs_a_person_is_not_retried_by_itself(cause: Cause) -> None:
    assert POLICY[cause].retry is Retry.NEVER


def test_no_two_causes_are_reported_in_the_same_words() -> None:
    titles = [policy.title for policy in POLICY.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        (Cause.PREFLIGHT_FAILED, ""),
        (Cause.PREEMPTED, ""),
        (Cause.CUDA_ERROR, "If the error repeats, the cause is the code."),
        (Cause.SILENT, "The machine may have lost its network or hung."),
        (Cause.TRAINER_ERROR, "Read the end of the log."),
        (Cause.STOPPED_GRACEFULLY, ""),
    ],
)
def test_of_a_run_that_is_over_nobody_is_notified_what_would_have_been_done_by_itself(
    cause: Cause, advice: str
) -> None:
    assert POLICY[cause].advice == advice
