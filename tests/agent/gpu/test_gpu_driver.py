"""Reading a driver through NVIDIA's own binding: what it reports, what it refuses, and how long callers wait
for it.
"""

import shutil
from collections.abc import Iterator

import pytest

from prime_agent.gpu.driver import HANGS_S
from prime_agent.gpu.reading import Xid
from tests.agent.gpu.gpu_reader_process import Eyes, eyes
from tests.fakes.nvml import Driver
from tests.waiting import await_true


@pytest.fixture
def look(driver: Driver) -> Iterator[Eyes]:
    with eyes(driver.env) as found:
        yield found


def test_each_gpu_tells_its_figures(driver: Driver, look: Eyes) -> None:
    driver.says(
        gpu1_util=35, gpu1_used=512 << 20, gpu1_temperature=74, gpu1_power=350_500, gpu1_power_limit=700_000
    )
    driver.says(gpu1_reasons=0x04 | 0x20 | 0x80, gpu1_ecc=2, gpu1_remap_pending=1)
    first, second = look.look().loads
    assert (first.index, first.name, first.uuid, first.slowed_by) == (
        0,
        "NVIDIA H100 80GB HBM3",
        "GPU-00000000",
        (),
    )
    assert (second.util_pct, second.used_mib, second.total_mib, second.temperature_c) == (
        35.0,
        512.0,
        81_559.0,
        74,
    )
    assert (second.power_w, second.power_limit_w, second.slowed_by) == (
        350.5,
        700.0,
        ("heat", "the power supply"),
    )
    assert (second.uncorrected, second.repair_pending, second.repair_failed, second.problem) == (
        2,
        True,
        False,
        "",
    )


REFUSALS = {
    "util": ("util_pct",),
    "used": ("used_mib", "total_mib"),
    "temperature": ("temperature_c",),
    "power": ("power_w",),
    "power_limit": ("power_limit_w",),
    "ecc": ("uncorrected",),
    "name": (),
    "uuid": (),
    "reasons": (),
    "memory_v2": (),
}


@pytest.mark.parametrize("figure", REFUSALS)
@pytest.mark.parametrize("code", ["E3", "E999"])
def test_a_figure_that_is_refused_costs_none_of_the_others(
    driver: Driver, look: Eyes, figure: str, code: str
) -> None:
    driver.says(count=1, **{f"gpu0_{figure}": code})
    (load,) = look.look().loads
    figures = (
        "util_pct",
        "used_mib",
        "total_mib",
        "temperature_c",
        "power_w",
        "power_limit_w",
        "uncorrected",
        "repair_pending",
    )
    assert tuple(name for name in figures if getattr(load, name) is None) == REFUSALS[figure]
    assert load.problem == ""


def test_a_board_without_row_remapping_tells_of_retired_pages(driver: Driver, look: Eyes) -> None:
    driver.says(count=1, gpu0_remap_pending="E3", gpu0_retirement=1)
    (load,) = look.look().loads
    assert (load.repair_pending, load.repair_failed) == (True, None)


@pytest.mark.parametrize("where", ["handle", "temperature"])
def test_a_gpu_that_is_lost_is_reported_to_be_and_the_others_are_read(
    driver: Driver, look: Eyes, where: str
) -> None:
    driver.says(**{f"gpu0_{where}": "E15"})
    first, second = look.look().loads
    assert (first.lost, first.problem, first.util_pct) == (True, "GPU is lost", None)
    assert (second.lost, second.util_pct) == (False, 90.0)


def test_a_gpu_nobody_lets_us_ask_is_not_lost(driver: Driver, look: Eyes) -> None:
    driver.says(gpu0_handle="E4")
    assert [(load.lost, load.problem) for load in look.look().loads] == [
        (False, "Insufficient Permissions"),
        (False, ""),
    ]


@pytest.mark.parametrize("call", ["init", "count"])
def test_a_driver_that_cannot_be_queried_says_why_and_is_retried(
    driver: Driver, look: Eyes, call: str
) -> None:
    driver.says(**{call: "E18"})
    assert look.look().problem == "NVML: RM has detected an NVML/RM version mismatch."
    driver.says(**{call: None})
    assert (look.look().problem, len(look.look().loads)) == ("", 2)


def test_a_driver_that_hangs_keeps_nobody_and_what_was_known_gets_old(driver: Driver, look: Eyes) -> None:
    assert look.look().age_s < HANGS_S
    driver.says(hang=1)
    await_true("the driver counts as hanging", lambda: look.look(0.1).problem)
    hangs = look.look(0.0)
    assert "the GPU driver has not answered for " in hangs.problem
    assert hangs.age_s >= HANGS_S
    assert [load.util_pct for load in hangs.loads] == [90.0, 90.0]
    driver.says(hang=None, gpu0_util=10)
    await_true("it answers again", lambda: not look.look().problem)
    assert look.look().loads[0].util_pct == 10.0


def test_xids_are_heard_with_their_gpu_in_their_order(driver: Driver, look: Eyes) -> None:
    driver.reports(1, 31)
    driver.reports(0, 79)
    assert look.look_until_heard(2).xids == (Xid(1, 31), Xid(0, 79))


def test_where_no_gpu_tells_its_xids_that_is_reported(driver: Driver, look: Eyes) -> None:
    driver.says(gpu0_events=0, gpu1_events="E3")
    await_true("nobody is listened to", lambda: look.look().deaf == "no GPU of this machine reports its Xids")


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a driver")
def test_without_a_driver_it_is_reported_that_there_is_none() -> None:
    with eyes({}) as found:
        assert found.look().problem == "NVML: NVML Shared Library Not Found"
