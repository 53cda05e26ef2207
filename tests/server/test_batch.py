import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from prime_train.errors import TemporaryError
from prime_train.runs.store import LeaseReply
from prime_train.runs.wire import Heartbeat, Reply
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.agent_calls import HeartbeatCall
from prime_train.webhook.requests import Response
from prime_train.webhook.server import group_commit
from prime_train.webhook.server.group_commit import GroupCommit
from tests import builders as b
from tests.waiting import HANG_S
from tests.webhook.calls import NOW_S, stored, webhook


class RunRecord(MemoryStore):
    """A store whose transactions wait at a gate; it records how many heartbeats each had."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.began = threading.Event()
        self.groups: list[int] = []
        self.poison: int | None = None
        self.down = False

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        self.groups.append(len(heartbeats))
        self.began.set()
        assert self.open.wait(HANG_S)
        if self.down:
            raise TemporaryError("the disk is full")
        if any(heartbeat.seq == self.poison for heartbeat in heartbeats):
            raise RuntimeError("a bug that this heartbeat brings to light")
        return super().heartbeats(heartbeats, now_s)


def submitted(store: RunRecord, seqs: Sequence[int]) -> list[Any]:
    """Return the responses to heartbeats of which the first is in its transaction before the others
    arrive.
    """

    async def all_of_them() -> list[Any]:
        group = GroupCommit(webhook(store), lambda: NOW_S)
        try:
            first = asyncio.create_task(group.submit(HeartbeatCall(b.heartbeat(seqs[0]))))
            await asyncio.to_thread(store.began.wait, HANG_S)
            others = [asyncio.create_task(group.submit(HeartbeatCall(b.heartbeat(seq)))) for seq in seqs[1:]]
            await asyncio.sleep(0)
            store.open.set()
            return await asyncio.gather(first, *others, return_exceptions=True)
        finally:
            group.close()

    return asyncio.run(all_of_them())


def verdicts(responses: Sequence[Response]) -> list[str]:
    return [Reply.model_validate_json(response.body).outcome.value for response in responses]


def test_heartbeats_that_come_during_a_transaction_share_the_next_one() -> None:
    store = RunRecord()
    stored(store, b.record(seq=7))

    message = submitted(store, [8, 9, 10, 11, 11])

    assert verdicts(message) == ["ok", "ok", "ok", "ok", "repeated"]
    assert store.groups == [1, 4]


def test_a_group_is_never_larger_than_its_limit() -> None:
    store = RunRecord()
    stored(store, b.record(seq=7))

    message = submitted(store, range(8, 8 + 2 * group_commit.BATCH_MAX))

    assert verdicts(message) == ["ok"] * (2 * group_commit.BATCH_MAX)
    assert store.groups == [1, group_commit.BATCH_MAX, group_commit.BATCH_MAX - 1]


def test_who_finds_too_many_waiting_is_told_to_come_again() -> None:
    store = RunRecord()
    stored(store, b.record(seq=7))

    message = submitted(store, range(8, 8 + group_commit.WAITING_MAX + 3))

    assert [response.status for response in message[-3:]] == [200, 503, 503]
    assert ("retry-after", "2") in message[-1].headers
    record = store.load(b.RUN_ID)
    assert record is not None
    assert record.lease.seq == 8 + group_commit.WAITING_MAX


def test_heartbeats_that_cannot_be_stored_are_not_acknowledged() -> None:
    store = RunRecord()
    stored(store, b.record(seq=7))
    store.down = True

    message = submitted(store, [8, 9, 10])

    assert [response.status for response in message] == [503] * 3
    record = store.load(b.RUN_ID)
    assert record is not None
    assert record.lease.seq == 7


def test_a_bug_that_one_heartbeat_meets_takes_no_other_answer_with_it() -> None:
    store = RunRecord()
    stored(store, b.record(seq=7))
    store.poison = 10

    message = submitted(store, [8, 9, 10, 11])

    assert [response.status for response in message] == [200, 200, 500, 200]
    assert "see its log" in str(message[2])
