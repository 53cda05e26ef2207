"""Machines whose run is not in the store: those that are surely orphans are ended, and a live attempt's never
is.
"""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from prime_train.buckets.keys import RECORDS
from prime_train.errors import TemporaryError
from prime_train.runs.change import requested
from prime_train.runs.run import DesiredState, Run, RunState
from prime_train.runs.signing import record_key_of
from prime_train.spec.causes import Cause
from prime_train.watch.attempt_records import recorded_run
from tests import builders as b
from tests.reconcile.ports import MASTER, DictBucket, Outside, RacedStore

SETTLE_S = b.spec().health.settle_s
YEARS_S = 10 * 365 * 86_400
E1, E2 = f"pt-{b.RUN_ID}-e1-a00000001", f"pt-{b.RUN_ID}-e2-a00000002"


class Everything:
    def __contains__(self, name: object) -> bool:
        return True


def shared() -> Outside:
    """Return an environment whose machines are on an account that several control planes may share."""
    w = Outside().with_identities()
    w.world = replace(w.world, shared=Everything())
    return w


def keeps_its_machine(w: Outside) -> None:
    """Let the provider refuse to take machines back."""
    w.fail["terminate"] = TemporaryError("HTTP 503")


def with_another_store(w: Outside) -> Outside:
    """Let a watcher go on whose store has never heard of the run, such as one restored from a copy that is
    older than it.
    """
    w.store = RacedStore(lambda: w.now_s)
    w.world = replace(w.world, store=w.store, strays={}, notified=set())
    w.fail.clear()
    w.reported.alerts.clear()
    return w


def cancelled() -> Outside:
    """Return an environment in which the run is over, and the store is another one, while its machine is
    still there.
    """
    w = shared().trains()
    keeps_its_machine(w)
    assert w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    assert w.run().state is RunState.CANCELLED
    return with_another_store(w)


def orphan_texts(w: Outside) -> list[str]:
    return [alert.text for alert in w.reported.alerts if alert.kind == "orphan"]


# -------------------------------------------------------------------------------------------------------
# surely an orphan


def test_a_machine_of_an_attempt_that_the_sealed_record_says_is_over_is_ended_and_told() -> None:
    w = cancelled()
    w.sweeps(SETTLE_S + 60)
    assert w.living() == []
    (text,) = orphan_texts(w)
    assert "was rented by this control plane for attempt 1" in text
    assert "(the run is cancelled)" in text
    assert text.endswith("terminated")


def test_within_the_grace_of_the_control_plane_that_may_be_ending_it_nothing_is_done_or_told() -> None:
    w = cancelled()
    w.sweeps(SETTLE_S - 60)
    assert (w.living(), orphan_texts(w)) == ([E1], [])


def test_a_machine_that_its_provider_does_not_give_back_is_asked_for_again() -> None:
    w = cancelled()
    keeps_its_machine(w)
    w.sweeps(SETTLE_S + 120)
    assert w.living() == [E1]
    w.fail.clear()
    w.sweeps(60)
    assert w.living() == []
    assert len(orphan_texts(w)) == 1


def test_of_two_machines_only_that_of_the_attempt_that_the_run_has_left_behind_is_ended() -> None:
    w = shared().trains()
    keeps_its_machine(w)
    w.exit(Cause.GPU_HARDWARE)
    w.sweeps(60)
    del w.fail["terminate"]
    # its provider's list is behind, so that the run goes on without it
    w.pods.hidden.update(pod.pod_id for pod in w.pods.real.list())
    w.trains(step=20)
    assert w.living() == [E1, E2]
    w.pods.hidden.clear()
    with_another_store(w).sweeps(2 * SETTLE_S)
    assert w.living() == [E2]
    assert sorted("not terminated" in text for text in orphan_texts(w)) == [False, True]


# --------------------------------------------------------------------------------------------------- perhaps
# somebody's


def test_a_store_restored_from_a_copy_older_than_the_run_never_ends_the_machine_of_its_live_attempt() -> None:
    w = with_another_store(shared().trains())
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]
    (text,) = orphan_texts(w)
    assert "attempt 1 may still hold it" in text
    assert "is not terminated" in text


@pytest.mark.parametrize("off_s", [YEARS_S, -YEARS_S])
def test_a_clock_that_is_years_off_never_ends_the_machine_of_a_live_attempt(off_s: int) -> None:
    w = with_another_store(shared().trains())
    w.now_s += off_s
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]


def test_a_clock_that_is_set_back_does_not_keep_a_machine_from_being_looked_at_again() -> None:
    w = cancelled()
    w.now_s += YEARS_S // 10
    keeps_its_machine(w)
    w.sweep()
    w.fail.clear()
    w.now_s -= YEARS_S // 10
    w.sweeps(SETTLE_S + 60)
    assert w.living() == []


def test_a_machine_whose_launch_is_in_flight_at_another_store_is_left_alone() -> None:
    w = shared()
    w.fail["put_agent"] = TemporaryError("HTTP 503")
    w.settle()
    assert w.run().state in (RunState.LAUNCHING, RunState.BOOTING)
    with_another_store(w).sweeps(2 * SETTLE_S)
    assert w.living() == [E1]


def test_a_second_control_plane_on_the_account_with_a_bucket_of_its_own_ends_nothing() -> None:
    w = cancelled()
    w.world = replace(w.world, bucket=DictBucket(w.faults))
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]
    (text,) = orphan_texts(w)
    assert "nothing in the bucket shows that it was rented here" in text


def test_a_record_with_another_master_keys_seal_proves_nothing() -> None:
    w = cancelled()
    w.world = replace(w.world, master=b"another")
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]


def test_a_machine_that_only_has_our_name_is_told_though_its_run_is_over() -> None:
    w = cancelled()
    stray = f"pt-{b.RUN_ID}-e1-affffffff"
    w.pods.real.create(stray, b.offer("memory-spot"), b.spec().hardware)
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [stray]


def test_a_name_without_an_identity_may_have_been_given_twice_and_proves_nothing() -> None:
    w = Outside()
    w.world = replace(w.world, shared=Everything())
    w.trains()
    keeps_its_machine(w)
    assert w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    with_another_store(w)
    w.pods.real.create(f"pt-{b.RUN_ID}-e1", b.offer("memory-spot-b"), b.spec().hardware)
    first, second = (pod.pod_id for pod in w.pods.real.list())
    w.sweeps(2 * SETTLE_S)
    assert [pod.pod_id for pod in w.pods.real.list()] == [second]
    assert first != second


def of_a_newer_version(w: Outside) -> None:
    """Write the newest record as a version of prime-train that is newer than this one would."""
    key = max(key for key in w.bucket.objects if key.startswith(RECORDS))
    run, lease = json.loads(w.bucket.objects[key].partition(b"\n")[2])
    body = json.dumps([run | {"form": 99}, lease]).encode()
    w.bucket.objects[key] = (
        hmac.new(record_key_of(MASTER), body, hashlib.sha256).hexdigest().encode() + b"\n" + body
    )


def away(w: Outside) -> None:
    w.fail["bucket"] = TemporaryError("HTTP 503")


@pytest.mark.parametrize("spoil", [of_a_newer_version, away])
def test_a_record_that_cannot_be_read_leaves_the_machine_alone(spoil: Callable[[Outside], None]) -> None:
    w = cancelled()
    spoil(w)
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]
    (text,) = orphan_texts(w)
    assert "whether an attempt holds it is not known" in text


def test_on_this_machine_too_a_live_attempt_of_a_run_that_the_store_lacks_is_left_alone() -> None:
    w = with_another_store(Outside().with_identities().trains())
    w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), b.spec().hardware)
    w.sweeps(2 * SETTLE_S)
    assert w.living() == [E1]


def test_a_store_restored_from_a_copy_of_the_first_attempt_keeps_the_machine_of_the_second() -> None:
    w = shared().trains()
    restore = w.copied()
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.after(40).settle()
    w.after(700).trains(step=20)
    assert w.living() == [E2]
    restore()
    w.after(60).sweeps(SETTLE_S)
    assert w.living() == [E2]


def test_the_newest_record_of_a_run_is_what_counts() -> None:
    w = shared().trains()
    recorded: Run | None = recorded_run(w.bucket, MASTER, b.RUN_ID)
    assert recorded is not None
    assert (recorded.attempt, recorded.turn) == (1, w.run().turn)
    assert recorded_run(w.bucket, b"another", b.RUN_ID) is None
    assert recorded_run(w.bucket, MASTER, "nobody") is None
