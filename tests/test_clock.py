"""The time of a store: it is not affected by setting a clock, and never guessed."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from prime_train.clock import (
    ANSWER_S_MAX,
    COUNTED_S_MAX,
    Anchor,
    MeasuredClock,
    anchored,
    boot_id,
    http_date_s,
    uptime_s,
)
from prime_train.errors import TemporaryError
from prime_train.stores.sqlite.store import SqliteStore

HOUR_S, DAY_S = 3600, 86_400
STORE_S = 1_800_000_000.0


@dataclass
class Machine:
    """The clocks of a watcher's machine, set by the test, and a remote store."""

    monotonic_s: float = 50.0
    wall_s: float = 1_000.0
    store_s: float = STORE_S
    requested: int = 0
    on_its_way: list[Callable[[], None]] = field(default_factory=list)

    def passes(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds
        self.store_s += seconds

    def freezes(self, seconds: float) -> None:
        """Suspend a virtual machine: its wall clock is right again only afterwards."""
        self.wall_s += seconds
        self.store_s += seconds

    def ask(self) -> float:
        self.requested += 1
        told_s = self.store_s
        if self.on_its_way:
            self.on_its_way.pop(0)()
        return told_s

    def clock(self) -> MeasuredClock:
        return MeasuredClock(self.ask, monotonic=lambda: self.monotonic_s, wall=lambda: self.wall_s)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("wrong_by_s", [-DAY_S, -HOUR_S, 0, 285, HOUR_S, DAY_S])
def test_a_watcher_knows_the_stores_time_whatever_its_own_clock_says(
    machine: Machine, wrong_by_s: float
) -> None:
    machine.wall_s = STORE_S + wrong_by_s
    clock = machine.clock()
    for _ in range(5):
        assert clock() == int(machine.store_s)
        machine.passes(7)


def test_what_the_store_reported_is_counted_on_from_for_a_few_seconds_only(machine: Machine) -> None:
    clock = machine.clock()
    assert clock() == int(STORE_S)
    machine.passes(COUNTED_S_MAX - 1)
    assert (clock(), machine.requested) == (int(machine.store_s), 1)
    machine.store_s += 5  # nobody else's clock is exact either
    machine.passes(2)
    assert (clock(), machine.requested) == (int(machine.store_s), 2)


@pytest.mark.parametrize("happens", ["is set forward", "is set back", "was frozen"])
def test_a_clock_that_is_set_or_stood_still_makes_the_store_be_retried(
    machine: Machine, happens: str
) -> None:
    clock = machine.clock()
    clock()
    match happens:
        case "is set forward":
            machine.wall_s += HOUR_S
        case "is set back":
            machine.wall_s -= HOUR_S
        case _:
            machine.freezes(HOUR_S)
    assert (clock(), machine.requested) == (int(machine.store_s), 2)


def test_an_answer_that_took_long_tells_no_time(machine: Machine) -> None:
    machine.on_its_way = [lambda: machine.passes(ANSWER_S_MAX + 1)] * 2
    with pytest.raises(TemporaryError, match="time is not known"):
        machine.clock()()


def test_a_process_that_was_frozen_while_the_answer_came_asks_again(machine: Machine) -> None:
    machine.on_its_way = [lambda: machine.freezes(HOUR_S)]
    assert (machine.clock()(), machine.requested) == (int(machine.store_s), 2)


def test_an_answer_on_the_way_tells_the_time_too(machine: Machine) -> None:
    clock = machine.clock()
    began = clock.begin()
    machine.passes(1)
    clock.end(began, machine.store_s)
    assert (clock(), machine.requested) == (int(machine.store_s + 0.5), 0)


@pytest.mark.parametrize("wall_s", [STORE_S - DAY_S, STORE_S + DAY_S])
def test_every_process_of_a_boot_counts_from_the_same_moment(wall_s: float) -> None:
    first = anchored(None, 0, boot="a", uptime_s=100, wall_s=STORE_S)
    later = anchored(first, int(STORE_S) + 4990, boot="a", uptime_s=5100, wall_s=wall_s)
    assert (later, later.now_s(5100)) == (first, STORE_S + 5000)


def test_after_a_boot_with_a_clock_that_is_behind_time_does_not_run_backward() -> None:
    before = Anchor("a", STORE_S)
    after = anchored(before, int(STORE_S) + 900, boot="b", uptime_s=30, wall_s=STORE_S - DAY_S)
    assert after.now_s(30) == STORE_S + 900


def test_after_a_boot_the_time_in_which_the_machine_was_off_has_passed() -> None:
    after = anchored(Anchor("a", STORE_S), int(STORE_S) + 900, boot="b", uptime_s=30, wall_s=STORE_S + DAY_S)
    assert after.now_s(30) == STORE_S + DAY_S


def test_a_system_that_does_not_name_its_boots_has_another_one_each_time() -> None:
    assert (
        anchored(Anchor("", STORE_S), 0, boot="", uptime_s=30, wall_s=STORE_S + 60).now_s(30) == STORE_S + 60
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777.5),
        ("", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 06 Xyz 1994 1:2:3 GMT", None),
    ],
)
def test_the_date_of_an_answer_is_read(text: str, seconds: float | None) -> None:
    assert http_date_s(text) == seconds


OTHER_CLOCK = """
import sys, time
wrong_by_s = float(sys.argv[2])
real = time.time
time.time = lambda: real() + wrong_by_s
from pathlib import Path
from prime_train.stores.sqlite.store import SqliteStore
print(SqliteStore(Path(sys.argv[1])).now_s())
"""


@pytest.mark.parametrize("wrong_by_s", [-DAY_S, 285, DAY_S])
def test_a_process_with_another_clock_reads_the_same_time_from_the_file(
    tmp_path: Path, wrong_by_s: int
) -> None:
    if not boot_id():
        pytest.skip("this system does not name its boots")
    store = SqliteStore(tmp_path / "store.sqlite")
    before_s = store.now_s()
    reported = subprocess.run(
        [sys.executable, "-c", OTHER_CLOCK, str(tmp_path / "store.sqlite"), str(wrong_by_s)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert before_s <= int(reported.stdout) <= store.now_s()


def test_the_uptime_goes_on_by_itself() -> None:
    first = uptime_s()
    while uptime_s() == first:
        pass
    assert uptime_s() > first
