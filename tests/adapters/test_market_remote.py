"""What a control plane's runs show is read over real HTTP; whatever else answers is an error that says what
to do.
"""

from dataclasses import replace

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.market.observations import NOTHING_SEEN, Observations, observations
from prime_train.runs.run import Run
from prime_train.runs.signing import market_key, operator_key
from prime_train.stores.market_remote import MARKET_KEY, read_market
from prime_train.stores.memory import MemoryStore
from tests.fakes.http import CutRequest, Hang, Response, ScriptedServer, Stall
from tests.fakes.http.faults import Fault
from tests.server.calling import serving
from tests.webhook.calls import MASTER, NOW_S, stored

KEY = market_key(MASTER)


def read(url: str, key: str = KEY, **more: float) -> Observations:
    return read_market(url, key, configs=["demo"], images=[], **more)


def test_what_the_runs_show_arrives_although_the_clocks_differ_by_years() -> None:
    store = MemoryStore()
    run = stored(store).run
    with serving(store) as url:
        seen = observations([replace(run, run_id="")], NOW_S)
        assert read_market(url, KEY, configs=[run.spec.name], images=[]) == seen != NOTHING_SEEN


@pytest.mark.parametrize("key", [operator_key(MASTER), MASTER.hex(), market_key(b"another"), ""])
def test_another_key_is_refused_with_advice(key: str) -> None:
    with (
        serving(MemoryStore()) as url,
        pytest.raises(PermanentError, match=f"check that {MARKET_KEY} is the market key of this") as raised,
    ):
        read(url, key)
    assert not key or key not in str(raised.value)


class Away(MemoryStore):
    def list_runs(self) -> list[Run]:
        raise TemporaryError("the disk is gone")


def test_a_store_that_does_not_answer_is_an_error_that_may_pass() -> None:
    with serving(Away()) as url, pytest.raises(TemporaryError, match="503"):
        read(url)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            Response(200, b"<html>sign in</html>"),
            PermanentError,
            "cannot be parsed; it may be of another version",
        ),
        (Response(200, b'{"machines": -1}'), PermanentError, "cannot be parsed"),
        (Response(200, b"x" * (9 * 2**20)), TemporaryError, "more than 8388608 bytes"),
        (Response(302, headers={"location": "https://elsewhere.example"}), PermanentError, "302"),
        (Response(404, b"{}"), PermanentError, "not of an older version"),
        (Response(500, b'{"error": "a bug"}'), TemporaryError, "500: a bug"),
        (CutRequest(), TemporaryError, "got no answer"),
    ],
    ids=[
        "a page",
        "figures that cannot be",
        "far too much",
        "a redirect",
        "an older version",
        "a bug",
        "cut off",
    ],
)
def test_whatever_else_answers_is_an_error(answer: Fault, kind: type[Exception], words: str) -> None:
    with ScriptedServer(answer) as there, pytest.raises(kind, match=words):
        read(there.url)


@pytest.mark.parametrize("fault", [Hang(), Stall()], ids=["nothing", "half an answer"])
def test_a_server_that_does_not_answer_is_waited_for_a_few_times_only(fault: Fault) -> None:
    with ScriptedServer(fault) as there:
        with pytest.raises(TemporaryError, match="got no answer"):
            read(there.url, read_s=0.2)
        assert 1 <= len(there.requests) <= 3
        there.heal()


def test_a_failure_that_passes_is_not_noticed() -> None:
    with ScriptedServer(Response(503, b"{}"), Response(200, b"{}")) as there:
        assert read(there.url) == NOTHING_SEEN


@pytest.mark.parametrize("url", ["http://train.example.org", "train.example.org", "dynamodb://runs"])
def test_an_address_that_is_not_safe_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(PermanentError, match="PRIME_TRAIN_STORE is"):
        read(url)
