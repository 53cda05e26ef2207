"""What is for rent is told to whoever has a key of the control plane, and asking for it holds up nothing
else.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.offer import Offer
from prime_train.runs.signing import OFFERS_PATH, operator_key
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.memory import MemoryStore
from prime_train.stores.remote_calls import OFFERS_GIVES
from prime_train.webhook.offers import KEPT_S, LATER_S, NotNow, OffersAnswer
from prime_train.webhook.requests import Response
from prime_train.webhook.state import WebhookContext
from tests.waiting import HANG_S, await_true
from tests.webhook.calls import MASTER, SECRETS, bucket, handle, market

OFFER = Offer("prime", "a-1", 2.5, spot=True, gpu="H100_80GB", gpu_count=1, disk_gib=100)
ANY = HardwareSpec()


@dataclass
class Asked:
    """Providers that can be made to wait or to fail."""

    offers: Sequence[Offer] | None = (OFFER,)
    error: Exception | None = None
    hardware: list[HardwareSpec] = field(default_factory=list)
    goes_on: threading.Event = field(default_factory=threading.Event)
    is_asked: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.goes_on.set()

    def __call__(self, hardware: HardwareSpec) -> Sequence[Offer] | None:
        self.hardware.append(hardware)
        self.is_asked.set()
        assert self.goes_on.wait(HANG_S)
        if self.error is not None:
            raise self.error
        return self.offers


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def of(count: int) -> HardwareSpec:
    return HardwareSpec(gpus=("H100_80GB",), count=count)


def plane(asked: Asked) -> WebhookContext:
    return WebhookContext(
        MemoryStore(),
        (MASTER,),
        secrets=SECRETS,
        bucket_url="file:///bucket",
        bucket=bucket,
        ask_offers=asked,
    )


def read(here: WebhookContext, key: str = "", body: bytes = b"[{}]") -> Response:
    return handle(here, market(key, method="POST", path=OFFERS_PATH, body=body))


@pytest.mark.parametrize("key", ["", operator_key(MASTER)], ids=["the market's key", "the operator's key"])
def test_offers_are_told_to_who_may_only_read_figures_and_to_the_operator(key: str) -> None:
    asked = Asked()
    answer = read(plane(asked), key, b'[{"gpus": ["H100_80GB"], "count": 2}]')
    assert (answer.status, OFFERS_GIVES.validate_json(answer.body), asked.hardware) == (200, [OFFER], [of(2)])


def test_a_control_plane_without_such_a_provider_says_so() -> None:
    assert read(plane(Asked(offers=None))).body == b"null"


def test_providers_that_fail_are_asked_again_later_and_their_words_stay_here() -> None:
    answer = read(plane(Asked(error=PermanentError("prime answered 401 to key pit_1234"))))
    assert (answer.status, dict(answer.headers)["retry-after"]) == (503, str(LATER_S))
    assert b"do not answer now" in answer.body
    assert b"pit_1234" not in answer.body


def test_the_same_hardware_is_asked_for_once_a_minute() -> None:
    asked, clock = Asked(), Clock()
    answer = OffersAnswer(asked, clock=clock)
    assert [answer.told(ANY), answer.told(ANY)] == [[OFFER], [OFFER]]
    clock.now_s += KEPT_S - 1
    answer.told(ANY)
    assert len(asked.hardware) == 1
    clock.now_s += 1
    answer.told(ANY)
    assert len(asked.hardware) == 2


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def test_while_providers_are_asked_others_do_not_wait_and_those_who_know_get_their_answer() -> None:
    asked, clock = Asked(), Clock()
    answer = OffersAnswer(asked, clock=clock)
    answer.told(of(1))
    asked.goes_on.clear()
    asked.is_asked.clear()
    first = in_thread(lambda: answer.told(of(2)))
    assert asked.is_asked.wait(HANG_S)
    with pytest.raises(NotNow, match="for others"):
        answer.told(of(4))
    assert answer.told(of(1)) == [OFFER]
    asked.goes_on.set()
    first.join(HANG_S)
    assert len(asked.hardware) == 2


def test_after_an_answer_the_providers_rest_for_as_long_as_it_took() -> None:
    asked, clock = Asked(), Clock()

    def slowly(hardware: HardwareSpec) -> Sequence[Offer] | None:
        clock.now_s += 5
        return asked(hardware)

    answer = OffersAnswer(slowly, clock=clock)
    answer.told(of(1))
    clock.now_s += 4
    with pytest.raises(NotNow):
        answer.told(of(2))
    clock.now_s += 1
    assert answer.told(of(2)) == [OFFER]


def test_providers_that_never_answer_keep_nobody_waiting_and_are_asked_by_one_thread() -> None:
    asked = Asked()
    asked.goes_on.clear()
    answer = OffersAnswer(asked, wait_s=0.01)
    for count in (1, 2, 4, 8):
        with pytest.raises(NotNow):
            answer.told(of(count))
    assert len(asked.hardware) == 1
    asked.goes_on.set()
    await_true("the late answer is kept", lambda: answer._kept)
    assert answer.told(of(1)) == [OFFER]


def test_a_bug_in_asking_is_told_as_one() -> None:
    with pytest.raises(ZeroDivisionError):
        OffersAnswer(Asked(error=ZeroDivisionError())).told(ANY)


def test_a_failure_does_not_keep_others_from_asking() -> None:
    asked, clock = Asked(error=TemporaryError("gone")), Clock()
    answer = OffersAnswer(asked, clock=clock)
    with pytest.raises(NotNow, match="do not answer"):
        answer.told(ANY)
    asked.error = None
    assert answer.told(ANY) == [OFFER]
