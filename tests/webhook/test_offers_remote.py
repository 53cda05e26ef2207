"""What a control plane's providers have for rent is read over real HTTP; whatever else answers is an
error.
"""

from collections.abc import Sequence

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.offer import Offer
from prime_train.runs.signing import market_key
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.memory import MemoryStore
from prime_train.stores.offers_remote import TRIES_MAX, read_offers
from prime_train.stores.remote import RemoteStore
from prime_train.stores.signed_http import SignedHttp
from prime_train.webhook.server.serve import Server
from prime_train.webhook.state import WebhookContext
from tests.fakes.http import CutRequest, Response, ScriptedServer
from tests.fakes.http.faults import Fault
from tests.webhook.calls import MASTER, SECRETS, bucket

OFFER = Offer(
    "vast",
    "a-1",
    2.5,
    spot=True,
    gpu="H100_80GB",
    gpu_count=2,
    disk_gib=100,
    usd_per_gib_down=0.01,
    host="h-7",
)
WANTED = HardwareSpec(
    providers=("vast", "prime"), gpus=("H100_80GB",), count=2, disk_gib=50, usd_per_hour_max=3.0
)


class Refusals:
    """How long was waited after each refusal."""

    def __init__(self) -> None:
        self.waited_s: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waited_s.append(seconds)


def read(url: str, pause: Refusals | None = None, hardware: HardwareSpec = WANTED) -> list[Offer] | None:
    return read_offers(SignedHttp(url, market_key(MASTER)), hardware, pause=pause or Refusals())


def test_offers_arrive_as_the_providers_told_them_for_the_hardware_that_was_named() -> None:
    asked: list[HardwareSpec] = []

    def ask(hardware: HardwareSpec) -> Sequence[Offer] | None:
        asked.append(hardware)
        return [OFFER] if hardware == WANTED else None

    here = WebhookContext(
        MemoryStore(), (MASTER,), secrets=SECRETS, bucket_url="file:///bucket", bucket=bucket, ask_offers=ask
    )
    with Server(here) as server:
        assert read(server.url) == [OFFER]
        assert RemoteStore(server.url, MASTER).offers(WANTED) == [OFFER]
        assert asked == [WANTED]
    with Server(here) as server:
        assert read(server.url, hardware=HardwareSpec()) is None


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            Response(200, b"<html>sign in</html>"),
            PermanentError,
            "cannot be parsed; it may be of another version",
        ),
        (Response(200, b'[{"provider": 7}]'), PermanentError, "cannot be parsed"),
        (
            Response(401, b'{"error": "the signature is not valid for this path"}'),
            PermanentError,
            "not of an older version",
        ),
        (Response(404, b"{}"), PermanentError, "of an older version"),
        (Response(422, b'{"error": "gpus: no such kind"}'), PermanentError, "gpus: no such kind"),
        (
            Response(503, b'{"error": "do not answer"}', headers={"retry-after": "60"}),
            TemporaryError,
            "do not answer",
        ),
        (CutRequest(), TemporaryError, "got no answer"),
    ],
    ids=[
        "a page",
        "no offers",
        "an older version",
        "an even older one",
        "hardware of tomorrow",
        "providers that fail",
        "cut off",
    ],
)
def test_whatever_else_answers_is_an_error_at_once(answer: Fault, kind: type[Exception], words: str) -> None:
    pause = Refusals()
    with ScriptedServer(answer) as there, pytest.raises(kind, match=words):
        read(there.url, pause)
    assert pause.waited_s == []


def test_while_others_are_answered_it_waits_as_long_as_it_is_told_and_not_for_ever() -> None:
    busy, pause = Response(503, b"{}", headers={"retry-after": "2"}), Refusals()
    with ScriptedServer(busy, busy, Response(200, b"[]")) as there:
        assert read(there.url, pause) == []
    assert pause.waited_s == [2.0, 2.0]
    with ScriptedServer(busy) as there, pytest.raises(TemporaryError, match="503"):
        read(there.url, pause)
    assert len(pause.waited_s) == 2 + TRIES_MAX - 1
