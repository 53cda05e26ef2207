"""Responses written without the wire's models equal, byte by byte, those that the models write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import Order, Outcome, Refusal, Reply
from prime_train.webhook.responses import FENCED, OK, Refused, overloaded, reply, unavailable

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
NUMBER = st.integers(0, 2**53)


@given(st.sampled_from(Outcome), st.sampled_from(Order), TEXT, NUMBER, NUMBER, NUMBER, st.booleans())
def test_a_reply_is_as_its_model_writes_it_with_the_outcome_also_under_its_older_name(
    outcome: Outcome, order: Order, why: str, pace_s: int, step: int, now_s: int, wakes: bool
) -> None:
    model = Reply(
        outcome=outcome, order=order, reason=why, heartbeat_s=pace_s, committed_step=step, now_s=now_s
    )
    for words in ((outcome, order), (outcome.value, order.value)):
        response = reply(*words, why, pace_s, step, now_s, wakes)
        body = model.model_dump_json().removesuffix("}") + f',"verdict":"{outcome}"}}'
        assert response == (409 if outcome is Outcome.FENCED else 200, body.encode(), wakes, ())


@given(TEXT, NUMBER)
def test_a_refusal_is_as_its_model_writes_it(why: str, now_s: int) -> None:
    assert (
        Refused(422, why).response(now_s).body == Refusal(error=why, now_s=now_s).model_dump_json().encode()
    )


def test_half_a_character_does_not_keep_an_answer_from_being_given() -> None:
    assert Refusal.model_validate_json(Refused(422, "caf\udce9").response(1).body).error == "caf?"


def test_the_words_are_those_of_the_wire() -> None:
    assert [Outcome.OK, Outcome.FENCED] == [OK, FENCED]


@pytest.mark.parametrize(
    ("error", "delay_s"),
    [
        (TemporaryError("x"), 2),
        (TemporaryError("x", delay_s=30), 30),
        (TemporaryError("x", delay_s=1e9), 600),
    ],
)
def test_it_says_when_to_ask_again(error: TemporaryError, delay_s: int) -> None:
    assert unavailable(error).headers == (("retry-after", str(delay_s)),)
    assert unavailable(PermanentError("x")).status == overloaded().status == 503
