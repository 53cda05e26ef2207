"""Where the training is not expected to fit, a machine comes last; cards on PCIe are kinds of their own."""

import pytest

from prime_train.estimate import gpus
from prime_train.market.quotes import Market, Work
from prime_train.market.ranking import rank
from prime_train.market.step_times import Measurement, StepTime, TimeSource
from prime_train.runs.forecast import GIB, Fit, GpuNeed, kind_of, need_on
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec
from prime_train.text.gpu_names import TWO_BOARDS

NEED = GpuNeed(1, 30 * GIB, 40 * GIB, 50 * GIB)


def offer(gpu: str, usd: float, socket: str = "") -> Offer:
    return Offer("prime", f"{gpu}-{usd}", usd, spot=False, gpu=gpu, gpu_count=1, disk_gib=500, socket=socket)


def order(work: Work, *offers: Offer) -> list[str]:
    return [one.gpu for one in rank(offers, HardwareSpec(disk_gib=1), market=Market(work)).best]


@pytest.mark.parametrize(("gb", "fit"), [(60, Fit.YES), (48, Fit.TIGHT), (32, Fit.UNLIKELY), (24, Fit.NO)])
def test_a_need_is_judged_by_its_band(gb: int, fit: Fit) -> None:
    assert NEED.fit(gb) is fit


def test_a_machine_that_the_training_does_not_fit_is_rented_only_if_there_is_no_other() -> None:
    times = {
        (kind, 1): StepTime(10.0, TimeSource.ESTIMATED)
        for kind in ("RTX4090_24GB", "A100_40GB", "L40S_48GB", "CPU_NODE")
    }
    small, doubtful, tight = offer("RTX4090_24GB", 0.3), offer("A100_40GB", 0.2), offer("L40S_48GB", 3.0)
    work = Work(steps=1000, step_times=times, needs=(NEED,))
    assert order(work, small, doubtful, tight) == ["L40S_48GB", "A100_40GB", "RTX4090_24GB"]
    quotes = rank([small], HardwareSpec(disk_gib=1), market=Market(work)).quotes
    assert "it needs 30 to 50 GiB of each GPU, of 24 GB: it does not fit" in quotes[0].why


def test_where_it_has_trained_before_it_fits_whatever_is_estimated() -> None:
    measured = {("RTX4090_24GB", 1): StepTime(10.0, TimeSource.MEASURED, Measurement(10.0, 40))}
    work = Work(steps=1000, step_times=measured, needs=(NEED,))
    assert work.fit(offer("RTX4090_24GB", 0.3)) is Fit.YES
    assert Work(needs=(NEED,)).fit(Offer("prime", "cpu", 0.1, spot=False)) is Fit.NO
    assert Work().fit(offer("RTX4090_24GB", 0.3)) is None


def test_the_need_on_more_gpus_than_the_training_uses_is_that_of_those_it_uses() -> None:
    two = GpuNeed(2, GIB, GIB, GIB)
    assert [need_on((NEED, two), count) for count in (1, 2, 8)] == [NEED, two, two]
    assert need_on((two,), 1) is None


def test_a_slower_card_of_the_same_kind_is_not_taken_for_the_faster_board() -> None:
    times = {
        ("H100_80GB", 1): StepTime(10.0, TimeSource.ESTIMATED),
        ("H100_80GB PCIe", 1): StepTime(30.0, TimeSource.ESTIMATED),
    }
    board, card = offer("H100_80GB", 3.0, "SXM5"), offer("H100_80GB", 2.0, "PCIe")
    ranked = rank(
        [card, board],
        HardwareSpec(gpus=("H100_80GB",), disk_gib=1),
        market=Market(Work(steps=1000, step_times=times)),
    )
    assert [one.socket for one in ranked.best] == ["SXM5", "PCIe"]
    assert kind_of(offer("L40S_48GB", 1.0, "PCIe")) == ("L40S_48GB", 1)
    assert set(TWO_BOARDS) == set(gpus.PCIE)
