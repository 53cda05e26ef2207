"""The meaning of Prime's refusals, in each of their formats."""

import json

import pytest

from prime_train.errors import (
    ExternalError,
    LimitReached,
    NoCapacity,
    NoFunds,
    PermanentError,
    TemporaryError,
)
from prime_train.http import HttpResponse
from prime_train.providers.prime.errors import REFUSALS, reason_in

HTML = b"<html><head><title>503 Service Unavailable</title></head></html>"


def answer(status: int, content: object = None, *, body: bytes = b"") -> HttpResponse:
    return HttpResponse(
        "POST api.example/pods/",
        status,
        json.dumps(content).encode() if content is not None else body,
        delay_s=3.0,
    )


def create_refusal(answer: HttpResponse) -> ExternalError:
    return REFUSALS.create_error(answer) or REFUSALS.error(answer)


def detail(status: int, text: str) -> HttpResponse:
    return answer(status, {"detail": text})


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        ({"detail": "Missing field: max_price\n not specified"}, "Missing field: max_price not specified"),
        (
            {"detail": [{"loc": ["body", "pod", "gpuCount"], "msg": "too small", "type": "x"}]},
            "body.pod.gpuCount: too small",
        ),
        (
            {"errors": [{"param": "pod.a", "details": "one"}, {"param": "pod.b", "details": "two"}]},
            "pod.a: one; pod.b: two",
        ),
        ({"detail": ["odd"]}, "odd"),
        ({"message": "Not Found"}, "Not Found"),
        ({"detail": None}, ""),
        ([1, 2], ""),
    ],
)
def test_the_reason_is_found_in_every_shape_of_body(content: object, reported: str) -> None:
    assert reason_in(answer(422, content)) == reported


def test_a_page_is_not_quoted_and_plain_text_is_cut_short() -> None:
    assert reason_in(answer(502, body=HTML)) == ""
    assert reason_in(answer(502, body=b"upstream\x1b[31m failed " * 1000)).startswith("upstream [31m failed")
    assert len(reason_in(answer(502, body=b"x" * 10_000))) == 300
    assert len(reason_in(detail(400, "x" * 10_000))) == 300


@pytest.mark.parametrize(("status", "advice"), [(401, "PRIME_API_KEY"), (402, "wallet"), (403, "Instances")])
@pytest.mark.parametrize("judge", [REFUSALS.error, create_refusal])
def test_what_a_person_has_to_do_is_reported(status: int, advice: str, judge: type) -> None:
    error = judge(detail(status, "no stock and no capacity"))

    assert isinstance(error, PermanentError | NoFunds)
    assert advice in str(error)
    assert "no stock" in str(error)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("judge", [REFUSALS.error, create_refusal])
def test_problem_on_their_side_is_for_later(status: int, judge: type) -> None:
    error = judge(answer(status, body=HTML))

    assert isinstance(error, TemporaryError)
    assert error.delay_s == 3.0


@pytest.mark.parametrize(
    ("reported", "kind"),
    [
        (detail(400, "Requested GPU is out of stock"), NoCapacity),
        (detail(409, "No capacity left for this configuration"), NoCapacity),
        (detail(400, "This machine is currently unavailable"), NoCapacity),
        (detail(400, "The offer is no longer available"), NoCapacity),
        (detail(404, "cloudId is not available"), NoCapacity),
        (detail(400, "Insufficient capacity"), NoCapacity),
        (detail(400, "Insufficient resources"), NoCapacity),
        (detail(400, "Reserved instances are not available"), NoCapacity),
        (detail(400, "Maximum number of instances reached. Limit: 4"), LimitReached),
        (detail(409, "Instance limit reached, please check your balance"), LimitReached),
        (detail(500, "Maximum number of instances reached. Limit: 4"), TemporaryError),
        (detail(409, "conflict"), NoCapacity),
        (answer(409, body=b""), NoCapacity),
        (detail(400, "Insufficient balance for this capacity"), NoFunds),
        (detail(400, "insufficient"), PermanentError),
        (detail(409, "wallet is locked"), NoFunds),
        (detail(400, "Missing field: max_price not specified"), PermanentError),
        (answer(422, {"errors": [{"param": "pod.stock", "details": "unknown"}]}), PermanentError),
        (answer(307), PermanentError),
        # Prime speaks of capacity itself: nothing was rented. In what a proxy says, and in the name of 503,
        # there is no such promise.
        (detail(503, "no capacity at the provider"), NoCapacity),
        (detail(503, "Service Unavailable"), TemporaryError),
        (answer(503, body=HTML), TemporaryError),
        (answer(503, body=b"no capacity"), TemporaryError),
        (answer(503, {"message": "upstream over capacity"}), TemporaryError),
        (detail(500, "no capacity"), TemporaryError),
        (detail(429, "no capacity"), TemporaryError),
    ],
)
def test_only_what_promises_that_nothing_was_rented_is_taken_for_it(
    reported: HttpResponse, kind: type[ExternalError]
) -> None:
    assert type(create_refusal(reported)) is kind


def test_money_is_reported_to_be_the_reason() -> None:
    assert "wallet" in str(create_refusal(detail(400, "Insufficient balance")))


def test_only_prime_itself_can_say_that_it_does_not_know_a_pod() -> None:
    assert REFUSALS.is_unknown(detail(404, "Pod not found"))
    assert not REFUSALS.is_unknown(answer(404, body=HTML))
    assert not REFUSALS.is_unknown(answer(404, {"message": "no Route matched with those values"}))
    assert isinstance(REFUSALS.error(answer(404, body=HTML)), TemporaryError)
    assert isinstance(REFUSALS.error(detail(404, "Not Found")), PermanentError)
    assert not REFUSALS.is_unknown(detail(400, "Pod not found"))
