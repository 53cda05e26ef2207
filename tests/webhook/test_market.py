"""The figures of the market are read by a key of their own, and reading them cannot load the store."""

import json
import threading
from dataclasses import replace

import pytest

from prime_train.errors import TemporaryError
from prime_train.market.observations import observations
from prime_train.market.shared import packed, unpacked
from prime_train.runs.run import Run, RunState
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.market import KEPT_S
from prime_train.webhook.requests import Response
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.waiting import HANG_S
from tests.webhook.calls import MASTER, NEXT_MASTER, NOW_S, handle, market, stored, webhook


class CountedStore(MemoryStore):
    """A store that counts how often its runs are listed, fails if told to, and can be made to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.lists, self.is_down = 0, False
        self.goes_on, self.is_listing = threading.Event(), threading.Event()
        self.goes_on.set()

    def list_runs(self) -> list[Run]:
        self.lists += 1
        self.is_listing.set()
        assert self.goes_on.wait(HANG_S)
        if self.is_down:
            raise TemporaryError("the disk is gone")
        return super().list_runs()


@pytest.fixture
def store() -> CountedStore:
    store = CountedStore()
    stored(store)
    return store


def read(here: WebhookContext, *, after_s: int = 0) -> Response:
    return handle(here, market(at_s=NOW_S + after_s)._replace(now_s=NOW_S + after_s))


def test_the_answer_is_what_the_runs_show_and_names_no_config(store: CountedStore) -> None:
    of = store.list_runs()
    answer = read(webhook(store))
    assert (answer.status, answer.wakes, dict(answer.headers)) == (200, False, {"cache-control": "no-store"})
    seen = observations([replace(run, run_id="") for run in of], NOW_S)
    assert unpacked(answer.body, [of[0].spec.name], []) == seen
    assert (
        unpacked(answer.body, [], []).machines
        == sum(attempt.pod_id is not None for attempt in of[0].attempts)
        > 0
    )


def test_the_keys_of_all_masters_are_accepted(store: CountedStore) -> None:
    here = webhook(store, NEXT_MASTER, MASTER)
    assert [handle(here, market(master=master)).status for master in (MASTER, NEXT_MASTER)] == [200, 200]
    assert handle(webhook(store, NEXT_MASTER), market()).status == 401


def test_the_figures_are_computed_at_most_once_a_minute(store: CountedStore) -> None:
    here = webhook(store)
    first = read(here)
    stored(store, b.record(b.run(RunState.TRAINING, attempt=2, run_id="another-1")))
    assert [read(here, after_s=after_s).body for after_s in (0, 1, KEPT_S - 1)] == [first.body] * 3
    assert store.lists == 1
    assert json.loads(read(here, after_s=KEPT_S).body)["machines"] > json.loads(first.body)["machines"]
    assert store.lists == 2


def test_a_refused_reader_does_not_reach_the_store(store: CountedStore) -> None:
    assert handle(webhook(store), market(master=b"guessed")).status == 401
    assert store.lists == 0


def test_a_store_that_does_not_answer_is_not_asked_again_within_the_minute(store: CountedStore) -> None:
    here, store.is_down = webhook(store), True
    answers = [read(here, after_s=after_s) for after_s in (0, 1, 2)]
    assert [(answer.status, dict(answer.headers)["retry-after"]) for answer in answers] == [(503, "2")] * 3
    assert store.lists == 1
    store.is_down = False
    assert read(here, after_s=KEPT_S).status == 200


def test_while_the_figures_are_computed_others_do_not_wait(store: CountedStore) -> None:
    here = webhook(store)
    store.goes_on.clear()
    answers: list[Response] = []
    first = threading.Thread(target=lambda: answers.append(read(here)))
    first.start()
    assert store.is_listing.wait(HANG_S)
    assert read(here).status == 503
    store.goes_on.set()
    first.join(HANG_S)
    assert (answers[0].status, store.lists) == (200, 1)
    assert read(here).body == answers[0].body


def test_the_clock_may_go_back(store: CountedStore) -> None:
    here = webhook(store)
    assert [read(here, after_s=after_s).status for after_s in (0, -30)] == [200, 200]


def test_an_empty_store_has_seen_nothing() -> None:
    assert read(webhook(MemoryStore())).body == packed(observations([], NOW_S))
