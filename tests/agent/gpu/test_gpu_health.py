"""When GPUs count as broken or idle; each case that must not count is next to the one that does."""

from dataclasses import replace

import pytest

from prime_agent.gpu.health import FRESH_S, UNASKABLE_S, GpuHealth, idle_s, seen
from prime_agent.gpu.reading import EMPTY_MIB, GpuLoad, GpuSnapshot, Xid
from prime_agent.gpu.report import report_gpus
from prime_agent.gpu.xids import BROKEN, NOTED, words
from tests.agent.gpu.gpu_snapshots import BUSY, EMPTY, LOST, WAITING, snapshot

NO_PERMISSION = GpuLoad(problem="Insufficient Permissions")


def after(*sights: GpuSnapshot, every_s: float = 10.0, training: bool = True) -> GpuHealth:
    """Return the health after these readings: the first at second 0, the others at intervals."""
    health = GpuHealth()
    for count, found in enumerate(sights):
        health = seen(health, found, count * every_s, training=training)
    return health


# ------------------------------------------------------------------------------------------------------------
# broken


def test_gpus_that_work_are_not_broken() -> None:
    assert after(*[snapshot(BUSY, WAITING)] * 20).fault == ""


def test_a_gpu_that_has_left_the_bus_is_named() -> None:
    assert (
        after(snapshot(BUSY, BUSY), snapshot(BUSY, LOST)).fault == "GPU 1 (H100), GPU-1, is lost: GPU is lost"
    )


def test_of_gpus_that_move_up_the_one_that_is_gone_is_named() -> None:
    three = snapshot(BUSY, BUSY, BUSY)
    gone = GpuSnapshot((three.loads[0], replace(three.loads[2], index=1)))
    assert (
        after(three, gone, gone).fault
        == "GPU 1 (H100), GPU-1, is no longer listed by the driver: it lists 2 GPUs, and listed 3 before"
    )


def test_a_gpu_that_cannot_be_queried_for_a_moment_is_not_broken_and_for_a_minute_it_is() -> None:
    good, bad = snapshot(BUSY, BUSY), snapshot(BUSY, GpuLoad(problem="Unknown Error"))
    shorter, longer = int(UNASKABLE_S / 10), int(UNASKABLE_S / 10) + 1
    assert after(good, *[bad] * shorter, good, *[bad] * shorter).fault == ""
    assert (
        after(good, *[bad] * longer).fault == "GPU 1 (H100), GPU-1, can no longer be queried: Unknown Error"
    )


def test_between_two_refusals_that_a_hang_lies_between_nobody_knows_what_was() -> None:
    good, bad, hung = (
        snapshot(BUSY, BUSY),
        snapshot(BUSY, GpuLoad(problem="Unknown Error")),
        GpuSnapshot(age_s=FRESH_S + 1),
    )
    longer = int(UNASKABLE_S / 10) + 1
    assert after(good, bad, *[hung] * longer, bad).fault == ""


def test_a_gpu_that_one_look_does_not_list_is_not_gone() -> None:
    good, fewer = snapshot(BUSY, BUSY), snapshot(BUSY)
    assert after(good, fewer, good, fewer).fault == ""
    assert "is no longer listed by the driver" in after(good, fewer, fewer).fault


def test_a_gpu_that_never_could_be_queried_is_somebody_elses() -> None:
    assert after(*[snapshot(BUSY, NO_PERMISSION)] * 30).fault == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uncorrected": 2}, "has 2 new memory errors that ECC could not correct"),
        ({"repair_pending": True}, "has bad memory that only a reset takes out of use"),
        ({"repair_failed": True}, "failed to take bad memory out of use"),
    ],
)
def test_worn_memory_counts_when_it_is_new(change: dict[str, int], message: str) -> None:
    worn = replace(BUSY, **change)  # type: ignore[arg-type]
    assert message in after(snapshot(BUSY), snapshot(worn)).fault
    assert after(*[snapshot(worn)] * 3).fault == "", "it was so before this attempt began"


def test_a_board_that_does_not_tell_is_not_broken_by_telling_later() -> None:
    silent = replace(BUSY, uncorrected=None, repair_pending=None, repair_failed=None)
    worn = replace(BUSY, uncorrected=2, repair_pending=True, repair_failed=True)
    assert after(snapshot(silent), snapshot(worn)).fault == ""


@pytest.mark.parametrize("code", BROKEN)
def test_xids_that_need_a_reset_break_the_gpu(code: int) -> None:
    assert (
        after(snapshot(BUSY, xids=(Xid(0, 13), Xid(0, code)))).fault
        == f"GPU 0 reports Xid {code}: {BROKEN[code]}"
    )


@pytest.mark.parametrize("code", [*NOTED, 12345])
def test_xids_of_programs_and_unknown_ones_do_not(code: int) -> None:
    assert after(snapshot(BUSY, xids=(Xid(0, code),))).fault == ""
    assert f"Xid {code}: " in words(Xid(None, code))


def test_an_xid_is_heard_while_the_driver_hangs() -> None:
    hangs = snapshot(BUSY, problem="the GPU driver has not answered for 20 s", xids=(Xid(None, 79),))
    assert after(snapshot(BUSY), hangs).fault == "a GPU reports Xid 79: the GPU has fallen off the bus"


def test_what_was_broken_stays_so() -> None:
    assert "is lost" in after(snapshot(BUSY), snapshot(LOST), *[snapshot(BUSY)] * 9).fault


# ------------------------------------------------------------------------------------------------------------
# idle


def idle_after(*sights: GpuSnapshot, training: bool = True) -> int:
    return idle_s(after(*sights, training=training), (len(sights) - 1) * 10.0)


def test_gpus_are_idle_only_all_together() -> None:
    assert idle_after(*[snapshot(EMPTY, EMPTY)] * 10) == 90
    assert idle_after(*[snapshot(EMPTY, BUSY)] * 10) == 0


@pytest.mark.parametrize(
    "load",
    [
        replace(EMPTY, util_pct=3.0),
        replace(EMPTY, used_mib=EMPTY_MIB),
        replace(EMPTY, util_pct=None),
        replace(EMPTY, used_mib=None),
        NO_PERMISSION,
    ],
)
def test_a_gpu_that_does_or_holds_something_or_does_not_tell_is_not_idle(load: GpuLoad) -> None:
    assert idle_after(*[snapshot(EMPTY, load)] * 10) == 0


def test_before_the_first_step_no_gpu_is_idle() -> None:
    assert idle_after(*[snapshot(EMPTY)] * 10, training=False) == 0


def test_one_busy_moment_begins_the_count_anew() -> None:
    assert idle_after(*[snapshot(EMPTY)] * 8, snapshot(BUSY), snapshot(EMPTY), snapshot(EMPTY)) == 10


def test_old_figures_prove_nothing() -> None:
    old = snapshot(EMPTY, age_s=FRESH_S + 1)
    hangs = snapshot(EMPTY, problem="the GPU driver has not answered for 20 s")
    assert idle_after(*[snapshot(EMPTY)] * 8, old) == 0
    assert idle_after(*[snapshot(EMPTY)] * 8, hangs) == 0


def test_where_there_are_no_gpus_none_is_idle() -> None:
    assert idle_after(*[GpuSnapshot()] * 10) == 0


def test_the_fullest_gpu_of_any_reading_is_reported() -> None:
    full = replace(BUSY, used_mib=61_000.0)
    found = after(snapshot(BUSY, EMPTY), snapshot(BUSY, full), snapshot(EMPTY, EMPTY, NO_PERMISSION))
    report = report_gpus(found.snapshot, found.fullest)
    assert report is not None
    assert (report.memory_peak_mib, report.memory_mib) == (61_000.0, 81_559.0)
    blind = after(snapshot(NO_PERMISSION))
    nothing = report_gpus(blind.snapshot, blind.fullest)
    assert nothing is not None
    assert nothing.memory_peak_mib is None
