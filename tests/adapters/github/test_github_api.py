"""Requests to GitHub: the meaning of its refusals, its rate limits, lost responses, and a token that is never
revealed.
"""

import logging
import traceback
from collections.abc import Iterator

import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.github.api import GitHub
from prime_train.github.comments import react, upsert_sticky
from prime_train.github.deployments import set_status
from prime_train.github.repository import changed_files, pull_of
from prime_train.runs.run import RunState
from tests.adapters.github.speaking_github import REPO, Time, as_job, spoken_to, writes
from tests.fakes.github import FakeGitHub
from tests.fakes.http import ALWAYS, CutRequest, LoseResponse, Response


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with spoken_to() as fake:
        yield fake


def wording(status: int, message: str, **headers: str) -> Response:
    return Response(
        status,
        f'{{"message": "{message}"}}'.encode(),
        headers={name.replace("_", "-"): text for name, text in headers.items()},
    )


# ------------------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, PermanentError),
        (403, PermanentError),
        (404, PermanentError),
        (409, PermanentError),
        (410, PermanentError),
        (422, PermanentError),
        (451, PermanentError),
        (500, TemporaryError),
        (502, TemporaryError),
        (503, TemporaryError),
        (504, TemporaryError),
        (429, TemporaryError),
    ],
)
def test_a_refusal_is_for_good_or_for_now_and_says_why(
    fake: FakeGitHub, status: int, kind: type[ExternalError]
) -> None:
    fake.fail(wording(status, "because"), times=ALWAYS)
    with pytest.raises(kind, match=rf"GET 127.*/pulls/1 was answered with {status}: because"):
        pull_of(as_job(fake), 1)
    with pytest.raises(kind, match=f"{status}: because"):
        react(as_job(fake), 1, "+1")


def test_a_gateway_that_answers_with_a_page_is_temporary(fake: FakeGitHub) -> None:
    fake.fail("502", times=ALWAYS)
    with pytest.raises(TemporaryError, match="502"):
        pull_of(as_job(fake), 1)


def test_a_moment_of_problem_is_not_noticed_by_who_asks_for_something(fake: FakeGitHub) -> None:
    for fault in ("500", "cut", "502", "lost"):
        fake.fail(fault, method="GET", times=1)
        assert pull_of(as_job(fake), 1).number == 1


def test_who_may_not_is_reported_by_github_what_is_missing(fake: FakeGitHub) -> None:
    with pytest.raises(PermanentError, match="Resource not accessible by integration"):
        upsert_sticky(as_job(fake, permissions={"pull-requests": "read"}), 1, "validate", "text")


def test_a_repository_that_has_moved_is_refused_and_the_token_goes_nowhere_else(fake: FakeGitHub) -> None:
    with FakeGitHub() as other:
        fake.fail(wording(301, "Moved Permanently", location=f"{other.url}/repositories/1/pulls/1"))
        with pytest.raises(PermanentError, match="301: the repository was moved"):
            pull_of(as_job(fake), 1)
        assert other.requests == []


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b'{"number": "x"}', b"<html>", b"[" * 100_000, b'{"number": 1, "head": 3}'],
)
def test_an_answer_that_is_none_is_an_error_of_ours(fake: FakeGitHub, body: bytes) -> None:
    fake.fail(Response(200, body), times=ALWAYS)
    with pytest.raises(TemporaryError, match="cannot be parsed"):
        pull_of(as_job(fake), 1)
    if body != b"[]":
        with pytest.raises(TemporaryError, match="is not a list"):
            changed_files(as_job(fake), 1)


def test_an_answer_without_an_end_is_given_up(fake: FakeGitHub) -> None:
    fake.fail(Response(200, b" " * 9 * 2**20), times=ALWAYS)
    with pytest.raises(TemporaryError, match="more than"):
        pull_of(as_job(fake), 1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "models",
        "acme/",
        "/models",
        "acme/models/x",
        "acme/..",
        "acme/.",
        "acme/mo dels",
        "acme/m\n",
        "../x",
    ],
)
def test_what_is_no_repository_is_never_requested(name: str) -> None:
    with pytest.raises(PermanentError, match="not a repository"):
        GitHub(name, "token")


# ------------------------------------------------------------------------------------------------------------
# what is lost


@pytest.mark.parametrize(("fault", "written"), [(CutRequest(), 0), (LoseResponse(), 1)])
def test_a_comment_whose_answer_is_lost_is_sent_once(
    fake: FakeGitHub, fault: CutRequest | LoseResponse, written: int
) -> None:
    fake.fail(fault, method="POST")
    github = as_job(fake)
    with pytest.raises(TemporaryError, match="no answer"):
        upsert_sticky(github, 1, "validate", "text")
    assert (writes(fake), len(fake.comments(REPO, 1))) == (["POST comments"], written)
    upsert_sticky(github, 1, "validate", "text")
    assert len(fake.comments(REPO, 1)) == 1


def test_a_server_error_to_what_changes_something_is_not_retried(fake: FakeGitHub) -> None:
    fake.fail("500", method="POST", times=ALWAYS)
    with pytest.raises(TemporaryError, match="500"):
        upsert_sticky(as_job(fake), 1, "validate", "text")
    assert writes(fake) == ["POST comments"]


# ------------------------------------------------------------------------------------------------------------
# limits


def test_an_hours_limit_is_reported_with_the_time_to_wait_and_no_call_is_wasted_on_it(
    fake: FakeGitHub,
) -> None:
    clock = Time()
    github = as_job(fake, clock)
    pull_of(github, 1)
    fake.limit(token=[*fake.world.tokens][-1], remaining=0)
    with pytest.raises(TemporaryError, match="rate limit exceeded") as error:
        pull_of(github, 1)
    assert 3590 <= error.value.delay_s <= 3600
    requested = len(fake.requests)
    for _ in range(3):
        with pytest.raises(TemporaryError, match="rate limit") as again:
            upsert_sticky(github, 1, "validate", "text")
        assert again.value.delay_s == pytest.approx(error.value.delay_s, abs=1)
    assert len(fake.requests) == requested
    clock.now_s += 3601
    fake.advance(3601)
    assert pull_of(github, 1).number == 1


@pytest.mark.parametrize("status", [403, 429])
def test_the_limit_of_a_minute_is_reported_with_its_header(fake: FakeGitHub, status: int) -> None:
    fake.limit(content_per_minute=3, status=status)
    clock = Time()
    github = as_job(fake, clock)
    for number in range(3):
        upsert_sticky(github, 1, f"run:{number}", "text")
    with pytest.raises(TemporaryError, match="secondary rate limit") as error:
        upsert_sticky(github, 1, "run:4", "text")
    assert error.value.delay_s == 60
    clock.now_s += 61
    fake.advance(61)
    assert upsert_sticky(github, 1, "run:4", "text").id


@pytest.mark.parametrize(
    ("answer", "delay_s"),
    [
        (wording(403, "You have exceeded a secondary rate limit."), 60),
        (wording(429, "Slow down"), 60),
        (
            wording(403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset="nonsense"),
            60,
        ),
        (wording(403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset="1000"), 1),
        (
            wording(
                403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset="99999999999"
            ),
            3600,
        ),
        (wording(403, "x", retry_after="999999"), 3600),
    ],
)
def test_however_a_limit_is_reported_the_wait_is_bounded(
    fake: FakeGitHub, answer: Response, delay_s: float
) -> None:
    fake.fail(answer)
    with pytest.raises(TemporaryError) as error:
        set_status(as_job(fake), 1, RunState.TRAINING, "x")
    assert error.value.delay_s == delay_s


def test_a_refusal_with_requests_left_is_no_limit(fake: FakeGitHub) -> None:
    fake.fail(
        wording(403, "Resource not accessible", x_ratelimit_remaining="17", x_ratelimit_reset="99999999999")
    )
    github = as_job(fake)
    with pytest.raises(PermanentError, match="not accessible"):
        pull_of(github, 1)
    assert pull_of(github, 1).number == 1


# ------------------------------------------------------------------------------------------------------------
# the token

TOKEN = "ghs_" + "Sekret" * 6


@pytest.mark.parametrize(
    "fault",
    [
        wording(401, f"Bad credentials {TOKEN}"),
        wording(500, f"{TOKEN}"),
        Response(200, f'{{"number": "{TOKEN}"}}'.encode()),
        CutRequest(),
        LoseResponse(),
    ],
)
def test_the_token_is_in_no_error_and_no_log(
    fake: FakeGitHub, caplog: pytest.LogCaptureFixture, fault: Response | CutRequest
) -> None:
    fake.fail(fault, times=ALWAYS)
    github = GitHub(REPO, TOKEN, url=fake.url)
    with caplog.at_level(logging.DEBUG):
        for ask in (lambda: upsert_sticky(github, 1, "validate", "x"), lambda: pull_of(github, 1)):
            with pytest.raises(ExternalError) as error:
                ask()
            assert "Sekret" not in "".join(traceback.format_exception(error.value)) + repr(
                error.value.__dict__
            )
    assert "Sekret" not in caplog.text + repr(github)


@pytest.mark.parametrize("token", [f"{TOKEN}\nx", f"{TOKEN}\u00e4", f"two {TOKEN}", f"{TOKEN}\x00"])
def test_a_token_that_was_copied_wrongly_is_reported_without_it(fake: FakeGitHub, token: str) -> None:
    with pytest.raises(PermanentError, match="copied wrongly") as error:
        pull_of(GitHub(REPO, token, url=fake.url), 1)
    assert "Sekret" not in "".join(traceback.format_exception(error.value))
    assert fake.requests == []


def test_the_end_of_a_line_after_a_token_does_no_harm(fake: FakeGitHub) -> None:
    token = fake.job_token(REPO, {"pull-requests": "read"})
    assert pull_of(GitHub(REPO, f"{token}\n", url=fake.url), 1).number == 1
