"""What failed for one run comes last for all, fades, and is never blamed for what a config or an image does
everywhere.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from prime_train.market.observations import observations
from prime_train.market.quotes import Market
from prime_train.market.ranking import rank
from prime_train.market.reputation import HALF_LIFE_H, WEIGHTS, Reputation, reputation
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Probe, Run
from prime_train.runs.stored_json import dump, load
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HardwareSpec
from tests import builders as b

NOW_S = 10_000_000
DAY_S = 86_400
BAD = Offer("vast", "o-1", 1.0, spot=False, disk_gib=100, machine="m-1", host="h-1", data_center="dc-1")
GOOD = replace(BAD, offer_id="o-2", usd_per_hour=2.0, machine="m-2", host="h-2", data_center="dc-2")


def attempt(
    number: int, offer: Offer, cause: Cause | None, *, ago_s: int = 0, trained: bool = False
) -> Attempt:
    at_s = NOW_S - ago_s
    return Attempt(
        number,
        offer,
        at_s - 600,
        pod_id=f"{offer.offer_id}-{number}-{ago_s}",
        first_heartbeat_s=at_s - 400 if trained else None,
        first_step_s=at_s - 300 if trained else None,
        fenced_s=at_s if cause is not None else None,
        cause=cause,
    )


def run_of(name: str, *attempts: Attempt, image: str | None = None) -> Run:
    hardware: Mapping[str, Any] = {"image": image} if image else {}
    spec = b.spec(name=name, hardware=hardware)
    return Run(name, spec, created_s=NOW_S - 30 * DAY_S, attempts=attempts, attempt=len(attempts))


def failed(
    name: str, offer: Offer, cause: Cause = Cause.BOOT_FAILED, *, ago_s: int = 0, image: str | None = None
) -> Run:
    return run_of(name, attempt(1, offer, cause, ago_s=ago_s), image=image)


def named(found: Reputation) -> set[str]:
    return {place.text for place in found.exclusions}


def test_a_machine_that_failed_for_one_run_comes_last_for_another_until_it_has_faded() -> None:
    runs = [failed("one", BAD, ago_s=3600)]
    found = reputation(runs, NOW_S)
    exclusion = found.against(BAD)
    assert exclusion is not None
    assert exclusion.until_s == pytest.approx(NOW_S - 3600 + HALF_LIFE_H * 3600, abs=2)
    assert exclusion.text.startswith(
        "machine m-1 of vast: machine setup failed, last 1 h ago; until 1970-04-29 16:46 UTC"
    )
    assert found.against(GOOD) is None
    assert reputation(runs, exclusion.until_s - 60).against(BAD) is not None
    assert reputation(runs, exclusion.until_s + 60).against(BAD) is None


def test_a_bad_offer_comes_last_and_is_kept() -> None:
    market = Market(seen=observations([failed("one", BAD)], NOW_S))
    ranked = rank([BAD, GOOD], HardwareSpec(disk_gib=1), market=market)
    assert [offer.offer_id for offer in ranked.best] == ["o-2", "o-1"]
    assert set(ranked.exclusions) == {BAD}
    assert rank([BAD], HardwareSpec(disk_gib=1), market=market).best == (BAD,), (
        "a bad machine is better than none"
    )


def test_what_a_run_does_to_itself_is_blamed_on_no_machine() -> None:
    own = [cause for cause in Cause if cause not in WEIGHTS]
    assert {
        Cause.TRAINER_ERROR,
        Cause.GPU_OOM,
        Cause.SETUP_FAILED,
        Cause.START_TIMEOUT,
        Cause.NO_CAPACITY,
    } <= {*own}
    assert (
        reputation([run_of("one", *(attempt(n, BAD, cause) for n, cause in enumerate(own, 1)))], NOW_S)
        == Reputation()
    )


def test_a_config_that_fails_everywhere_excludes_nothing() -> None:
    offers = [
        replace(BAD, offer_id=f"o-{n}", machine=f"m-{n}", host=f"h-{n}", data_center=f"dc-{n}")
        for n in range(3)
    ]
    crashes = run_of(
        "crashes", *(attempt(n, offer, Cause.PREFLIGHT_FAILED) for n, offer in enumerate(offers, 1))
    )
    assert named(reputation([crashes], NOW_S)) == set()
    went_well = run_of("crashes", attempt(9, replace(GOOD, machine="m-9"), None, trained=True))
    assert named(reputation([crashes, went_well], NOW_S)) == {f"machine m-{n} of vast" for n in range(3)}, (
        "so it was not the config"
    )


def test_a_probe_that_goes_well_clears_its_config_like_any_run() -> None:
    offers = [
        replace(BAD, offer_id=f"o-{n}", machine=f"m-{n}", host=f"h-{n}", data_center=f"dc-{n}")
        for n in range(3)
    ]
    crashes = run_of(
        "crashes", *(attempt(n, offer, Cause.PREFLIGHT_FAILED) for n, offer in enumerate(offers, 1))
    )
    probe = run_of("crashes-probe", attempt(9, replace(GOOD, machine="m-9"), None, trained=True))
    runs = [crashes, replace(probe, probe=Probe("crashes", 10, 60.0))]
    assert named(reputation(runs, NOW_S)) == {f"machine m-{n} of vast" for n in range(3)}


def test_a_config_that_hangs_every_machine_after_its_first_step_excludes_nothing() -> None:
    offers = [replace(BAD, machine=f"m-{n}", host="", data_center="") for n in range(4)]
    hangs = run_of(
        "hangs", *(attempt(n, offer, Cause.GPU_HARDWARE, trained=True) for n, offer in enumerate(offers, 1))
    )
    assert named(reputation([hangs], NOW_S)) == set()


def test_an_image_that_never_starts_is_blamed_instead_of_its_machines() -> None:
    image = "template:broken"
    runs = [failed(f"run-{n}", replace(BAD, machine=f"m-{n}"), image=image) for n in range(3)]
    found = reputation(runs, NOW_S)
    assert named(found) == {f"image {image} of vast"}
    assert found.against(GOOD, image) is not None
    assert found.against(GOOD, "template:other") is None
    assert found.against(replace(GOOD, provider="lambda"), image) is None, "elsewhere it may well start"
    works = run_of("works", attempt(9, replace(GOOD, machine="m-9"), None, trained=True), image=image)
    assert named(reputation([*runs, works], NOW_S)) == {f"machine m-{n} of vast" for n in range(3)} | {
        "host h-1 of vast"
    }, "it starts elsewhere, so it was the machines"


def test_a_host_and_a_data_centre_are_excluded_only_after_several_of_their_machines_failed() -> None:
    offers = [replace(BAD, machine=f"m-{n}") for n in range(4)]
    runs = [failed(f"run-{n}", offer) for n, offer in enumerate(offers)]
    assert "host h-1 of vast" not in named(reputation(runs[:1] * 3, NOW_S)), (
        "one machine three times is one machine"
    )
    assert "host h-1 of vast" in named(reputation(runs[:2], NOW_S))
    assert "data centre dc-1 of vast" not in named(reputation(runs[:3], NOW_S))
    assert "data centre dc-1 of vast" in named(reputation(runs[:4], NOW_S))


def test_a_place_where_most_machines_train_is_not_excluded_for_a_few_that_failed_or_for_preemptions() -> None:
    offers = [replace(BAD, machine="", host="", offer_id=f"o-{n}") for n in range(40)]
    failures = [failed(f"run-{n}", offer) for n, offer in enumerate(offers[:5])]
    assert named(reputation(failures, NOW_S)) == {"data centre dc-1 of vast"}
    trained = [
        run_of(f"good-{n}", attempt(1, offer, None, ago_s=3600, trained=True))
        for n, offer in enumerate(offers)
    ]
    assert named(reputation([*failures, *trained], NOW_S)) == set()
    preempted = [failed(f"run-{n}", offer, Cause.PREEMPTED) for n, offer in enumerate(offers)]
    assert named(reputation(preempted, NOW_S)) == set(), (
        "the expected losses are in the price of spot machines"
    )


def test_a_machine_that_trains_again_is_mended() -> None:
    bad = failed("one", BAD, Cause.GPU_HARDWARE, ago_s=DAY_S)
    again = [run_of(f"again-{n}", attempt(1, BAD, None, ago_s=n * 3600, trained=True)) for n in range(3)]
    assert named(reputation([bad], NOW_S)) == {"machine m-1 of vast"}
    assert named(reputation([bad, *again], NOW_S)) == set()


def test_losses_add_up_and_one_preemption_is_none() -> None:
    lost = [failed(f"run-{n}", BAD, Cause.MACHINE_LOST, ago_s=n * 3600) for n in range(2)]
    assert named(reputation(lost[:1], NOW_S)) == set()
    assert named(reputation(lost, NOW_S)) == {"machine m-1 of vast"}
    preempted = [failed(f"run-{n}", BAD, Cause.PREEMPTED) for n in range(3)]
    assert [len(named(reputation(preempted[:n], NOW_S))) for n in (1, 2, 3)] == [0, 0, 1]


def test_a_clock_that_is_behind_the_failure_does_not_break_anything() -> None:
    exclusion = reputation([failed("one", BAD, ago_s=-900)], NOW_S).against(BAD)
    assert exclusion is not None
    assert "last 0 s ago" in exclusion.why
    assert reputation([failed("one", BAD)], NOW_S + 400 * DAY_S) == Reputation()


def test_runs_of_an_older_store_are_read_and_blame_nothing() -> None:
    runs = [failed(f"run-{n}", replace(BAD, machine=f"m-{n}")) for n in range(9)]
    assert len(reputation([load(Run, dump(run)) for run in runs], NOW_S).exclusions) == 11
    stored = [json.loads(dump(run)) for run in runs]
    for record in stored:
        for name in ("machine", "host", "data_center", "usd_per_gib_down", "usd_per_gib_up"):
            del record["attempts"][0]["offer"][name]
    assert reputation([load(Run, json.dumps(record)) for record in stored], NOW_S) == Reputation()
