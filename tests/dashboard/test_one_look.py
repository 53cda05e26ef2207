"""The list and the page of a run, seen in one look, never disagree about the run."""

from dataclasses import replace

import pytest

from prime_train.pages.dashboard.dashboard import Dashboard
from prime_train.pages.dashboard.requests import PageRequest
from prime_train.pages.dashboard.source_reader import ReadPerRequest
from prime_train.pages.run_page import RunSources
from prime_train.runs.run import Change, RunState
from prime_train.runs.store import RunRecord
from prime_train.stores.memory import MemoryStore
from tests import builders as b

HOUR_S = 3600.0


class Site:
    """The pages of a store with one run that is queued. Each look lasts `look_s`."""

    def __init__(self, *, look_s: float) -> None:
        self.store, self.reads = MemoryStore(lambda: 1000.0), 0
        assert self.store.create(b.run(RunState.QUEUED))
        self.pages = Dashboard(
            self.store, (b"master" * 6,), ReadPerRequest(self._nothing), has_events=False, look_s=look_s
        )

    def _nothing(self, record: RunRecord) -> RunSources:
        self.reads += 1
        return RunSources()

    def cancel(self) -> None:
        record = self.store.load(b.RUN_ID)
        assert record is not None
        run = replace(record.run, state=RunState.CANCELLED, version=record.run.version + 1)
        assert self.store.save(Change(run))

    def state(self, path: str) -> str:
        body = self.pages.respond(PageRequest("GET", path, "", "")).body.decode()
        (state,) = {state for state in ("queued", "cancelled") if state in body}
        return state


@pytest.mark.parametrize("first", ["/", f"/runs/{b.RUN_ID}"])
def test_a_change_between_two_pages_of_one_look_is_on_neither(first: str) -> None:
    site = Site(look_s=HOUR_S)
    other = {"/": f"/runs/{b.RUN_ID}"}.get(first, "/")
    assert site.state(first) == "queued"
    version = site.pages.version(b.RUN_ID)
    site.cancel()
    assert site.state(other) == site.state(first) == "queued"
    assert site.pages.version(b.RUN_ID) == version, "the page is told to be newer only once it is"


def test_the_next_look_has_the_change_on_both() -> None:
    site = Site(look_s=-1.0)
    assert site.state("/") == "queued"
    version = site.pages.version(b.RUN_ID)
    site.cancel()
    assert site.state("/") == site.state(f"/runs/{b.RUN_ID}") == "cancelled"
    assert site.pages.version(b.RUN_ID) != version


def test_a_page_is_made_once_a_look() -> None:
    site = Site(look_s=HOUR_S)
    for _ in range(3):
        site.state(f"/runs/{b.RUN_ID}")
    assert site.reads == 1
