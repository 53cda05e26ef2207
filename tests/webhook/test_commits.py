"""A commit counts only if its manifest is in the bucket; whatever else happens there, it is never accepted
unseen.
"""

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from prime_train.buckets.port import Content
from prime_train.errors import PermanentError, TemporaryError
from prime_train.stores.memory import MemoryStore
from prime_train.webhook import commits
from prime_train.webhook.commits import CommitCheck
from prime_train.webhook.state import WebhookContext
from tests import builders as b
from tests.reconcile.ports import DictBucket
from tests.webhook.calls import ATTEMPT, MASTER, ask, bucket, commit, handle, manifest_of, stored


def control_plane(store: MemoryStore, there: DictBucket) -> WebhookContext:
    stored(store)
    return WebhookContext(store, (MASTER,), secrets={}, bucket_url="file:///bucket", bucket=lambda: there)


def committed_step(store: MemoryStore) -> int:
    record = store.load(b.RUN_ID)
    assert record is not None
    return record.lease.committed_step


def nothing(there: DictBucket) -> None:
    there.objects.clear()


def torn(there: DictBucket) -> None:
    there.objects[commit(10).key] = there.objects[commit(10).key][:-7]


def no_text(there: DictBucket) -> None:
    there.objects[commit(10).key] = b"\xff\x00" * 1000


def of_another_step(there: DictBucket) -> None:
    there.objects[commit(10).key] = manifest_of(commit(9)).model_dump_json().encode()


def of_another_attempt(there: DictBucket) -> None:
    there.objects[commit(10).key] = manifest_of(commit(10, attempt=ATTEMPT - 1)).model_dump_json().encode()


def of_another_identity(there: DictBucket) -> None:
    there.objects[commit(10).key] = (
        manifest_of(commit(10, identity="0123456789abcdef")).model_dump_json().encode()
    )


def of_another_run(there: DictBucket) -> None:
    other = manifest_of(commit(10)).model_dump(mode="json") | {"run": "other"}
    there.objects[commit(10).key] = json.dumps(other).encode()


@pytest.mark.parametrize(
    "spoil",
    [nothing, torn, no_text, of_another_step, of_another_attempt, of_another_identity, of_another_run],
    ids=lambda f: f.__name__,
)
def test_a_commit_whose_manifest_is_not_in_the_bucket_is_refused(spoil: Callable[[DictBucket], None]) -> None:
    store, there = MemoryStore(), bucket()
    spoil(there)

    response = handle(control_plane(store, there), ask("commit", commit(10)))

    assert (response.status, committed_step(store)) == (422, 5)


@pytest.mark.parametrize("error", [None, TemporaryError("HTTP 503"), PermanentError("access denied")])
def test_a_replaced_attempt_is_fenced_whatever_the_bucket_holds_or_answers(error: Exception | None) -> None:
    store, there = MemoryStore(), bucket()
    nothing(there)
    if error is not None:
        there.faults.fail["bucket"] = error

    response = handle(
        control_plane(store, there), ask("commit", commit(10, attempt=ATTEMPT - 1), attempt=ATTEMPT - 1)
    )

    assert (response.status, json.loads(response.body)["outcome"], committed_step(store)) == (
        409,
        "fenced",
        5,
    )


@pytest.mark.parametrize("error", [TemporaryError("HTTP 503"), PermanentError("access denied")])
def test_a_commit_that_cannot_be_checked_is_to_be_tried_again(error: Exception) -> None:
    store, there = MemoryStore(), bucket()
    there.faults.fail["bucket"] = error
    webhook = control_plane(store, there)

    response = handle(webhook, ask("commit", commit(10)))

    assert (response.status, committed_step(store)) == (503, 5)
    assert dict(response.headers)["retry-after"]
    there.faults.fail.clear()
    assert (handle(webhook, ask("commit", commit(10))).status, committed_step(store)) == (200, 10)


class SlowBucket(DictBucket):
    """A bucket that answers when it is told to."""

    def __init__(self) -> None:
        there = bucket()
        super().__init__(there.faults)
        self.objects, self.answers = there.objects, threading.Event()

    def get(self, key: str) -> Content | None:
        self.answers.wait()
        return super().get(key)


@pytest.fixture
def slow() -> Iterator[SlowBucket]:
    there = SlowBucket()
    yield there
    there.answers.set()


def test_a_bucket_that_does_not_answer_holds_up_no_more_than_a_few_commits(
    slow: SlowBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "READ_S_MAX", 0.01)
    store = MemoryStore()
    webhook = control_plane(store, slow)
    before = threading.active_count()

    statuses = [handle(webhook, ask("commit", commit(10))).status for _ in range(3 * commits.READS_MAX)]

    assert set(statuses) == {503}
    assert threading.active_count() <= before + commits.READS_MAX
    assert committed_step(store) == 5


def test_a_machine_that_commits_large_manifests_over_and_over_waits_and_others_do_not() -> None:
    """A manifest of megabytes takes seconds to be parsed, in which no other machine is heard."""
    there, parsing = bucket(), Parsing()
    check = CommitCheck(lambda: there, clock=parsing)
    check.check(commit(10))
    with pytest.raises(TemporaryError, match="taken long"):
        check.check(commit(10))
    check.check(commit(10, attempt=1))
    parsing.now_s += commits.REST_S_MAX
    check.check(commit(10))


class Parsing:
    """A clock by which each manifest takes a second to be parsed."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.5
        return self.now_s


def test_one_machine_has_one_commit_checked_at_a_time() -> None:
    there, entered, go_on = bucket(), threading.Event(), threading.Event()

    class Slow(DictBucket):
        def get(self, key: str) -> Content | None:
            if key == commit(10).key:
                entered.set()
                go_on.wait()
            return there.get(key)

    check = CommitCheck(lambda: Slow(there.faults), clock=lambda: 0.0)
    first = threading.Thread(target=check.check, args=(commit(10),))
    first.start()
    entered.wait()
    try:
        for _ in range(commits.READS_MAX):
            with pytest.raises(TemporaryError, match="another commit of the attempt"):
                check.check(commit(10))
        check.check(commit(10, attempt=1))
    finally:
        go_on.set()
        first.join()
    check.check(commit(10))
