"""Keys that expire: renewed in time by a clock that the test advances, kept while the control plane does not
answer, and given up for good.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from prime_agent.control_plane import Fenced
from prime_agent.keyring import ASKED_S_MAX, KEPT_MAX, RETRY_FIRST_S, RETRY_MAX_S, KeyRing, Renewal
from prime_agent.trainer.environment import SecretsToRedact, without_secrets
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import PodKeys

HOUR_S = 3600


def keys(number: int, valid_s: int = HOUR_S) -> PodKeys:
    return PodKeys(
        access_key_id=f"id-number-{number}",
        secret_access_key=f"secret-{number}",
        session_token=f"token-{number}",
        valid_s=valid_s,
    )


@dataclass
class Plane:
    """A control plane that gives keys number 1, 2 ..., or raises what the test sets. Its clock advances only
    when the test advances it.
    """

    now_s: float = 1000.0
    takes_s: float = 0.0
    given: int = 0
    requested_s: list[float] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    failing: Exception | None = None
    valid_s: int = HOUR_S

    def ask(self) -> PodKeys:
        self.requested_s.append(self.now_s)
        self.now_s += self.takes_s
        if self.failing is not None:
            raise self.failing
        self.given += 1
        return keys(self.given, self.valid_s)

    def clock(self) -> float:
        return self.now_s


def renewing(plane: Plane, first: PodKeys | None = None) -> tuple[KeyRing, Renewal]:
    ring = KeyRing(first or keys(0), plane.now_s, plane.clock)
    return ring, Renewal(ring, plane.ask, plane.reported.append, plane.clock)


def until(plane: Plane, renewal: Renewal, end_s: float, each: Callable[[], object] = lambda: None) -> None:
    """Run everything that is due, at its second."""
    while renewal.due_s is not None and renewal.due_s <= end_s:
        plane.now_s = max(plane.now_s, renewal.due_s)
        renewal.step()
        each()
    plane.now_s = end_s


def test_keys_are_renewed_at_three_quarters_of_their_life_again_and_again() -> None:
    plane = Plane()
    ring, renewal = renewing(plane)
    until(plane, renewal, 1000 + 3 * HOUR_S)
    assert plane.requested_s == [1000 + 2700, 1000 + 5400, 1000 + 8100, 1000 + 10_800]
    assert ring.newest().secret_access_key == "secret-4"
    assert plane.reported == []


def test_what_is_left_counts_from_when_they_were_requested() -> None:
    plane = Plane(takes_s=30)
    ring, renewal = renewing(plane)
    until(plane, renewal, 1000 + 2700)
    plane.now_s = 1000 + 2700 + 100
    assert ring.newest().valid_s == HOUR_S - 100
    plane.now_s += 2 * HOUR_S
    assert ring.newest().valid_s == 0


def test_where_nobody_answers_the_old_ones_are_used_to_their_end_and_people_are_notified() -> None:
    plane = Plane(failing=TemporaryError("no answer from the control plane"))
    ring, renewal = renewing(plane)
    left: list[int] = []
    until(plane, renewal, 1000 + HOUR_S + 300, lambda: left.append(ring.newest().valid_s))
    assert ring.newest().secret_access_key == "secret-0"
    assert left[0] == 900
    assert left[-1] == 0
    assert (
        plane.reported[0]
        == "new keys to the bucket could not be fetched, the old ones expire in 900 s: no answer from the "
        "control plane"
    )
    assert (
        plane.reported[-1]
        == "new keys to the bucket could not be fetched, the old ones have expired: no answer from the "
        "control plane"
    )
    pauses = [
        later - earlier for earlier, later in zip(plane.requested_s, plane.requested_s[1:], strict=False)
    ]
    assert pauses[:5] == [RETRY_FIRST_S, 10, 20, 40, RETRY_MAX_S]
    assert set(pauses[5:]) == {RETRY_MAX_S}


def test_once_somebody_answers_again_all_is_as_before() -> None:
    plane = Plane(failing=PermanentError("keys: the control plane answers 404"))
    ring, renewal = renewing(plane)
    until(plane, renewal, 1000 + 2 * HOUR_S)
    plane.failing = None
    until(plane, renewal, 1000 + 2 * HOUR_S + RETRY_MAX_S)
    assert ring.newest().secret_access_key == "secret-1"
    assert ring.newest().valid_s > HOUR_S - RETRY_MAX_S - 1
    assert plane.reported[-1] == ""
    assert renewal.due_s == plane.requested_s[-1] + 2700


def test_a_fenced_attempt_asks_no_more() -> None:
    plane = Plane(failing=Fenced("another attempt has taken over"))
    _, renewal = renewing(plane)
    until(plane, renewal, math.inf)
    assert (len(plane.requested_s), renewal.due_s, plane.reported) == (1, None, [])


def test_a_bug_is_reported_as_a_failure_and_retried() -> None:
    plane = Plane(failing=ValueError("secret-of-a-bug"))
    _, renewal = renewing(plane)
    until(plane, renewal, 1000 + 2700)
    assert plane.reported == [
        "new keys to the bucket could not be fetched, the old ones expire in 900 s: ValueError"
    ]
    assert renewal.due_s == 1000 + 2700 + RETRY_FIRST_S


@pytest.mark.parametrize("valid_s", [0, 1, 4])
def test_keys_that_end_at_once_do_not_make_it_ask_without_a_pause(valid_s: int) -> None:
    plane = Plane(valid_s=valid_s)
    _, renewal = renewing(plane)
    until(plane, renewal, 1000 + 2700 + 60)
    assert len(plane.requested_s) <= 60 / RETRY_FIRST_S + 1


def test_all_that_were_ever_held_are_blacked_out() -> None:
    plane = Plane()
    ring, renewal = renewing(plane)
    secrets = SecretsToRedact(lambda: {"HF_TOKEN": "hf-secret"}, ring.secrets)
    until(plane, renewal, 1000 + 2 * HOUR_S)
    text = "hf-secret secret-0 token-0 id-number-0 secret-1 token-1 secret-2 token-2 id-number-2 and more"
    shown = without_secrets(text, secrets)
    assert shown == (
        "<HF_TOKEN> <AWS_SECRET_ACCESS_KEY-2> <AWS_SESSION_TOKEN-2> <AWS_ACCESS_KEY_ID-2> "
        "<AWS_SECRET_ACCESS_KEY-1>"
        " <AWS_SESSION_TOKEN-1> <AWS_SECRET_ACCESS_KEY> <AWS_SESSION_TOKEN> <AWS_ACCESS_KEY_ID> and more"
    )
    assert (len(secrets), secrets["HF_TOKEN"], "AWS_SESSION_TOKEN" in secrets) == (
        1 + 3 * 3,
        "hf-secret",
        True,
    )


def test_what_is_remembered_of_old_keys_has_a_bound() -> None:
    plane = Plane()
    ring, _ = renewing(plane)
    for number in range(1, 2 * KEPT_MAX):
        ring.take(keys(number), plane.now_s)
    assert len(ring.secrets()) == 3 * KEPT_MAX
    assert ring.secrets()["AWS_SESSION_TOKEN"] == f"token-{2 * KEPT_MAX - 1}"


def test_keys_are_not_shown_where_they_are_printed() -> None:
    assert "secret-1" not in repr(keys(1))
    assert "token-1" not in str(keys(1))


@pytest.mark.parametrize(
    ("asked_s", "pause_s"), [(0.0, RETRY_FIRST_S), (90.0, 90.0), (99_999.0, ASKED_S_MAX)]
)
def test_a_control_plane_that_says_when_to_come_back_is_asked_then(asked_s: float, pause_s: float) -> None:
    plane = Plane(failing=TemporaryError("503", delay_s=asked_s))
    ring, renewal = renewing(plane)
    plane.now_s = ring.renew_s
    renewal.step()
    assert renewal.due_s == plane.now_s + pause_s
