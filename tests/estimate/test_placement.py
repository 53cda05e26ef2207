"""Which machine is recommended, which are left out, and what would help if none fits."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.job import ModelTraining
from prime_train.estimate.memory.phases import GIB, Method, Need, Phase, Training, Use
from prime_train.estimate.models.dimensions import MODELS, Model
from prime_train.estimate.models.lookup import resolve_model
from prime_train.planning.placement import Against, Candidate, MachineConstraints, Placement, choose
from prime_train.runs.forecast import Fit
from prime_train.runs.offer import Offer
from prime_train.spec.choices import Spot
from prime_train.text.invocations import worded
from tests.core.given import PROPERTY


def model(name: str) -> Model:
    found = resolve_model(name)
    assert found is not None
    return found


JOB = ModelTraining(model("Qwen3-8B"), Training(), tokens=10**8)
SMALL = ModelTraining(model("Qwen3-0.6B"), Training(), tokens=10**8)


def box(gpu: str = "H100_80GB", count: int = 8, usd_per_hour: float = 20.0, **changes: Any) -> Offer:
    gpu_gb = int(gpu.rsplit("_", 1)[1].removesuffix("GB"))
    offer = Offer(
        "prime",
        f"{gpu}-{count}-{usd_per_hour}",
        usd_per_hour,
        False,
        gpu,
        count,
        1000,
        "US",
        gpu_gb,
        socket="SXM5",
    )
    return replace(offer, **changes)


def codes(one: Candidate) -> list[Against]:
    return [objection.against for objection in one.against]


def only(offer: Offer, job: ModelTraining = JOB, **constraints: Any) -> Candidate:
    choice = choose([offer], job, MachineConstraints(**constraints))
    (one,) = (*choice.able, *choice.left_out)
    return one


# ------------------------------------------------------------------------------------------------------------
# the best one


def test_the_cheapest_total_is_recommended_and_not_the_cheapest_hour() -> None:
    slow, fast = box("A100_80GB", usd_per_hour=14.0), box("H100_80GB", usd_per_hour=20.0)
    choice = choose([slow, fast], JOB, MachineConstraints())

    assert choice.best is not None
    assert choice.runner_up is not None
    assert (choice.best.offer, choice.runner_up.offer) == (fast, slow)
    assert choice.best.expected_usd < choice.runner_up.expected_usd


def test_what_only_fits_by_the_estimate_comes_last_and_is_not_recommended() -> None:
    tight, roomy = box("H200_141GB", 1, 0.10), box("H100_80GB", 8, 30.0)
    choice = choose([tight, roomy], JOB, MachineConstraints())

    assert [(one.offer, one.fit) for one in choice.able] == [(roomy, Fit.YES), (tight, Fit.TIGHT)]
    assert choice.best is not None
    assert choice.best.offer == roomy


def test_where_all_is_tight_nothing_is_recommended_but_the_nearest_is_reported() -> None:
    choice = choose([box("H200_141GB", 1)], JOB, MachineConstraints())
    assert choice.best is None
    assert [one.against for one in choice.nearest] == [()]


def test_the_runner_up_is_another_machine_and_not_the_same_elsewhere() -> None:
    here, there, other = (
        box(region="US"),
        box(region="FI", usd_per_hour=21.0),
        box("B200_180GB", usd_per_hour=60.0),
    )
    choice = choose([there, here, other], JOB, MachineConstraints())
    assert choice.runner_up is not None
    assert choice.runner_up.offer == other


def test_a_fit_is_judged_by_what_is_usable_of_a_gpu() -> None:
    def need(gib: float) -> Need:
        return Need((Use(Phase.STEP, weights=gib * GIB),))

    found = [need(gib).on(1).fit(80) for gib in (73, 75, 78, 79, 80.8, 81)]
    assert found == [Fit.YES, Fit.TIGHT, Fit.TIGHT, Fit.UNLIKELY, Fit.UNLIKELY, Fit.NO]


# -----------------------------------------------------------------------------------------------------------
# what is left out


@pytest.mark.parametrize(
    ("offer", "constraints", "against", "fix"),
    [
        (Offer("prime", "cpu", 0.1, False, disk_gib=1000), {}, Against.NO_GPU, ""),
        (box(), {"kinds": ("A100", "h200")}, Against.KIND, "--kind H100"),
        (box(), {"gpus": 4}, Against.COUNT, "--gpus 8"),
        (box(count=3), {}, Against.COUNT, ""),
        (box(), {"spot": Spot.ONLY}, Against.SPOT, "without --spot"),
        (box(spot=True), {"spot": Spot.NEVER}, Against.SPOT, "without --on-demand"),
        (box(hindrance="is paid 24 h in advance, even if it is used for less"), {}, Against.HINDRANCE, ""),
        (box(), {"disk_gib": 1001}, Against.DISK, "--disk 1000"),
        (box("V100_32GB"), {}, Against.UNKNOWN, ""),
        (box("H1000_80GB"), {}, Against.UNKNOWN, ""),
        (box(gpu_gb=0), {}, Against.UNKNOWN, ""),
        (box(usd_per_hour=2.49), {"usd_per_hour_max": 1.0}, Against.PRICE, "--budget 2.49"),
    ],
)
def test_a_machine_is_left_out_with_the_reason_and_what_would_help(
    offer: Offer, constraints: dict[str, Any], against: Against, fix: str
) -> None:
    one = only(offer, SMALL, **constraints)
    assert codes(one) == [against]
    assert worded(one.against[0].fix) == fix


def test_a_price_of_just_the_budget_is_within_it() -> None:
    assert codes(only(box(usd_per_hour=20.0), usd_per_hour_max=20.0)) == []


def test_a_kind_is_known_by_what_people_call_it() -> None:
    for word in ("H100", "h100-80gb", "H100 SXM5"):
        assert codes(only(box(), kinds=(word,))) == []


def test_too_little_memory_tells_how_many_gpus_would_do_and_whether_lora_would() -> None:
    one = only(box("H100_80GB", 1))
    assert codes(one) == [Against.MEMORY]
    assert worded(one.against[0].fix) == "--gpus 4 or --lora"


def test_a_model_that_fits_no_box_of_a_kind_has_no_remedy_there() -> None:
    one = only(box("RTX4090_24GB", 1), replace(JOB, model=model("Llama-3.1-405B")))
    assert not one.against[0].fix


def test_all_that_speaks_against_a_machine_is_reported() -> None:
    one = only(box("H100_80GB", 1, 9.0), gpus=8, usd_per_hour_max=5.0, spot=Spot.ONLY)
    assert codes(one) == [Against.COUNT, Against.SPOT, Against.MEMORY, Against.PRICE]


# ------------------------------------------------------------------------------------------------------------
# the nearest


def test_the_nearest_are_those_that_one_wish_less_would_let_in() -> None:
    dear, far = box(usd_per_hour=30.0), box("H100_80GB", 1, 50.0, spot=True)
    choice = choose([far, dear], JOB, MachineConstraints(gpus=8, usd_per_hour_max=20.0))
    assert [one.offer for one in choice.nearest] == [dear]


def test_the_cheapest_of_those_over_the_budget_is_the_nearest() -> None:
    choice = choose(
        [box(usd_per_hour=usd) for usd in (30.0, 22.0, 25.0)], JOB, MachineConstraints(usd_per_hour_max=20.0)
    )
    assert [one.offer.usd_per_hour for one in choice.nearest] == [22.0]


def test_each_set_of_reasons_has_its_own_nearest() -> None:
    dear, other = box(usd_per_hour=30.0), box("A100_80GB", usd_per_hour=15.0)
    choice = choose([dear, other], JOB, MachineConstraints(kinds=("H100",), usd_per_hour_max=20.0))
    assert {one.offer for one in choice.nearest} == {dear, other}


def test_what_nothing_can_be_done_about_is_farther_than_what_an_option_lifts() -> None:
    barred, dear = box(usd_per_hour=1.0, hindrance="has no price"), box(usd_per_hour=30.0, spot=True)
    choice = choose([barred, dear], JOB, MachineConstraints(usd_per_hour_max=20.0, spot=Spot.NEVER))
    assert [one.offer for one in choice.nearest] == [dear]


def test_without_machines_there_is_nothing_to_tell() -> None:
    assert choose([], JOB, MachineConstraints()) == Placement((), ())
    assert choose([], JOB, MachineConstraints()).nearest == ()
    assert choose([Offer("prime", "cpu", 0.1, False)], JOB, MachineConstraints()).nearest == ()


# ------------------------------------------------------------------------------------------------------------
# what must hold

KINDS = ["H100_80GB", "A100_40GB", "RTX4090_24GB", "V100_16GB", "NEW_99GB", "B200_180GB"]
OFFER = st.builds(
    box,
    st.sampled_from(KINDS),
    st.sampled_from([1, 2, 3, 8]),
    st.floats(0.01, 100),
    spot=st.booleans(),
    disk_gib=st.sampled_from([10, 1000]),
    hindrance=st.sampled_from(["", "has no price"]),
)
WISHES = st.builds(
    MachineConstraints,
    gpus=st.sampled_from([None, 1, 8]),
    usd_per_hour_max=st.sampled_from([None, 1.0, 20.0]),
    spot=st.sampled_from(list(Spot)),
    kinds=st.sampled_from([(), ("H100",), ("A100", "B200")]),
    disk_gib=st.sampled_from([1, 100]),
)
JOBS = st.builds(
    ModelTraining,
    st.sampled_from(MODELS),
    st.builds(Training, method=st.sampled_from(Method), seq_len=st.sampled_from([512, 32_768])),
    st.sampled_from([1e6, 1e9]),
    st.booleans(),
)


@PROPERTY
@given(st.lists(OFFER, max_size=12), JOBS, WISHES)
def test_every_offer_is_reported_once_and_the_best_keeps_to_the_wishes(
    offers: list[Offer], job: ModelTraining, constraints: MachineConstraints
) -> None:
    choice = choose(offers, job, constraints)

    reported = [one.offer for one in (*choice.able, *choice.left_out)]
    assert sorted(map(repr, reported)) == sorted(map(repr, offers))
    assert all(one.against for one in choice.left_out)
    assert all(one.fit.is_expected for one in choice.able)
    best = choice.best
    if best is None:
        assert all(one.fit is Fit.TIGHT for one in choice.able)
        return
    assert choice.nearest == ()
    assert best.fit is Fit.YES
    assert best.offer.usd_per_hour <= (constraints.usd_per_hour_max or math.inf)
    assert constraints.gpus in (None, best.offer.gpu_count)
    assert best.expected_usd == min(one.expected_usd for one in choice.certain)


@PROPERTY
@given(OFFER, JOBS)
def test_where_more_gpus_are_named_as_a_remedy_they_do_help(offer: Offer, job: ModelTraining) -> None:
    for objection in only(offer, job).against:
        way = worded(objection.fix).split(" or ")[0]
        if objection.against is Against.MEMORY and way.startswith("--gpus"):
            larger = replace(offer, gpu_count=int(way.split()[1]))
            assert only(larger, job).fit is Fit.YES
