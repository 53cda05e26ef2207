"""When silence proves nothing: the rows of the outage measurements, and the recovery."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.runs.breaker import (
    FELL_KEPT_S,
    HOLD_S,
    OVERRULED_S,
    PROOF_S,
    TOGETHER_S,
    TRANSITIONS,
    Breaker,
    Hearing,
    Limits,
    Sign,
    State,
    Watch,
    listen,
    moved,
)
from tests.core.given import PROPERTY

RUNS = [f"run-{n:02d}" for n in range(20)]
LONG_AGO_S = -100_000
LISTENING = Watch(inbound=Breaker(works_since_s=LONG_AGO_S))
"""State in which heartbeats could be received for as long as matters."""


def hear(
    watch: Watch,
    now_s: int,
    *,
    silent: int = 0,
    active: int = 20,
    canary: bool = True,
    heartbeats_s: tuple[int, ...] = (),
) -> tuple[Watch, Hearing]:
    """Sweep once. `silent` of `active` runs have sent no heartbeat for some time, the first one longest; they
    fell silent one by one. `heartbeats_s`: the last heartbeats of as many other runs. The rest is not
    overdue; while the canary fails, their last heartbeats are older than everything else.
    """
    silences = {run: 9000 - (TOGETHER_S + 1) * n for n, run in enumerate(RUNS[:silent])}
    others = dict(
        zip(RUNS[silent:active], (*heartbeats_s, *[now_s - 20 if canary else 900] * active), strict=False)
    )
    last_s = {run: now_s - age_s for run, age_s in silences.items()} | others
    return listen(watch, canary=canary, silent_s=silences, active=last_s, now_s=now_s)


def outage(seconds: int, *, canary: bool, every_s: int = 60) -> list[Hearing]:
    """Return what each sweep may conclude while the heartbeats of all 20 runs cannot be received for this
    long.
    """
    watch, _ = hear(LISTENING, 1000)
    received = []
    for now_s in range(1000 + every_s, 1000 + seconds + 1, every_s):
        watch, hearing = hear(watch, now_s, silent=20, canary=canary)
        received.append(hearing)
    return received


def fell_through(received: list[Hearing]) -> int:
    """Return the runs that could be replaced, if each is let through once."""
    return sum(1 for hearing in received if hearing.blind is None or hearing.through is not None)


@pytest.mark.parametrize("minutes", [1, 2, 10, 30])
def test_an_outage_shorter_than_the_hold_lets_no_run_through(minutes: int) -> None:
    assert fell_through(outage(minutes * 60, canary=True)) == 0


def test_an_outage_longer_than_the_hold_lets_one_run_a_sweep_through() -> None:
    received = outage(HOLD_S + 300, canary=True)
    assert fell_through(received) == 5
    assert all(hearing.blind is not None for hearing in received)


@pytest.mark.parametrize("minutes", [1, 20, 600])
def test_a_failing_canary_holds_without_limit(minutes: int) -> None:
    received = outage(minutes * 60, canary=False)
    assert fell_through(received) == 0
    assert "canary" in (received[-1].blind or "")


def test_the_canarys_silence_is_reported_with_its_length() -> None:
    watch, _ = hear(Watch(), 1000, canary=False)
    _, hearing = hear(watch, 1300, canary=False)
    assert hearing.blind == "the webhook has not answered its canary heartbeat for 300 s"


@pytest.mark.parametrize(
    ("silent", "active", "blind"), [(9, 20, False), (10, 20, True), (2, 3, True), (1, 3, False), (3, 3, True)]
)
def test_the_breaker_opens_on_the_share_of_runs_that_are_silent(
    silent: int, active: int, blind: bool
) -> None:
    _, hearing = hear(LISTENING, 5000, silent=silent, active=active)
    assert (hearing.blind is not None) == blind


def test_a_run_that_falls_silent_alone_is_judged_also_where_it_is_the_only_one() -> None:
    _, hearing = hear(LISTENING, 1000, silent=1, active=1)
    assert hearing.blind is None


def test_no_runs_at_all_leave_the_breaker_closed() -> None:
    _, hearing = hear(Watch(), 1000, active=0)
    assert hearing.blind is None


@pytest.mark.parametrize(
    ("held_s", "through"), [(HOLD_S - 1, None), (HOLD_S, RUNS[0]), (HOLD_S + 1, RUNS[0])]
)
def test_the_hold_is_bounded_in_time_and_then_the_longest_silent_run_comes_first(
    held_s: int, through: str | None
) -> None:
    watch, _ = hear(LISTENING, 1000, silent=10)
    _, hearing = hear(watch, 1000 + held_s, silent=10)
    assert hearing.through == through
    assert hearing.blind_for(RUNS[0]) == (None if through else hearing.blind)
    assert hearing.blind_for(RUNS[1]) is not None


def test_when_heartbeats_are_heard_again_the_breaker_closes_and_the_next_hold_is_complete() -> None:
    watch, _ = hear(LISTENING, 1000, silent=10)
    watch, hearing = hear(watch, 1600)
    assert hearing.blind is None
    watch, _ = hear(watch, 1700, silent=10)
    _, hearing = hear(watch, 1700 + HOLD_S - 1, silent=10)
    assert hearing.through is None


def test_time_in_which_the_canary_failed_does_not_count_as_silence() -> None:
    watch, _ = hear(Watch(), 1000)
    watch, _ = hear(watch, 1060, canary=False)
    watch, hearing = hear(watch, 2000, silent=1)
    assert hearing.receiving_since_s == 2000
    _, hearing = hear(watch, 2060)
    assert hearing.receiving_since_s == 2000


@pytest.mark.parametrize(("failed_s", "receiving_since_s"), [(5, 1000), (30, 1000), (31, 1091)])
def test_a_canary_that_was_lost_once_does_not_make_what_was_heard_before_forgotten(
    failed_s: int, receiving_since_s: int
) -> None:
    watch, _ = hear(Watch(), 1000)
    watch, lost = hear(watch, 1060, canary=False)
    assert lost.blind is not None
    _, hearing = hear(watch, 1060 + failed_s)
    assert hearing.receiving_since_s == receiving_since_s


def test_while_the_canary_sings_the_time_since_which_heartbeats_can_be_heard_stands_still() -> None:
    watch, first = hear(Watch(), 1000)
    for now_s in range(1060, 5001, 60):
        watch, second = hear(watch, now_s, silent=20)
    assert first.receiving_since_s == second.receiving_since_s == 1000


def test_a_run_that_stays_silent_for_good_reason_does_not_keep_the_others_from_being_let_through() -> None:
    """For example one whose machine is cut off from the webhook while its tracker advances: it is silent
    longest, and is rightly left alone.
    """
    watch, through = hear(LISTENING, 1000, silent=3, active=3)[0], set()
    for now_s in range(1000 + HOLD_S, 1000 + HOLD_S + 3600, 60):
        watch, hearing = hear(watch, now_s, silent=3, active=3)
        through.add(hearing.through)
    assert through >= set(RUNS[:3])


def cut(
    seconds_ago: list[int] | Mapping[str, int], *, active: int, now_s: int = 20_000, watch: Watch = LISTENING
) -> tuple[Watch, Hearing]:
    """Sweep once with one silent run for each of these last heartbeats; the other runs send heartbeats."""
    silent = (
        seconds_ago
        if isinstance(seconds_ago, Mapping)
        else {f"run-{n:03d}": age_s for n, age_s in enumerate(seconds_ago)}
    )
    last_s = {run_id: now_s - silent.get(run_id, 0) for run_id in (f"run-{n:03d}" for n in range(active))}
    return listen(watch, canary=True, silent_s=silent, active=last_s, now_s=now_s)


def held(hearing: Hearing) -> set[str]:
    """Return the runs about which nothing is concluded."""
    return {
        run_id for run_id in (f"run-{n:03d}" for n in range(200)) if hearing.blind_for(run_id) is not None
    }


@pytest.mark.parametrize(("silent", "active"), [(60, 200), (10, 200), (3, 20), (2, 200), (2, 5), (2, 2)])
def test_machines_that_fall_silent_together_are_held_however_small_a_part_they_are(
    silent: int, active: int
) -> None:
    _, hearing = cut([400 + n % 30 for n in range(silent)], active=active)
    assert held(hearing) == {f"run-{n:03d}" for n in range(silent)}


@pytest.mark.parametrize("step_s", [1, 60, 200, TOGETHER_S])
def test_a_region_that_is_cut_off_in_steps_is_one_cohort(step_s: int) -> None:
    _, hearing = cut([400 + step_s * n for n in range(5)], active=40)
    assert len(held(hearing)) == 5


def test_runs_that_fall_silent_one_by_one_are_no_group() -> None:
    _, hearing = cut([100 + (TOGETHER_S + 1) * n for n in range(60)], active=200)
    assert hearing.blind is None


def test_a_run_that_was_silent_long_before_the_group_is_not_held_with_it() -> None:
    _, hearing = cut([1000] + [400] * 20, active=200)
    assert hearing.blind == "20 of 200 runs fell silent within 5 minutes of another one"
    assert held(hearing) == {f"run-{n:03d}" for n in range(1, 21)}


def test_a_group_of_which_one_run_is_left_is_still_held() -> None:
    """The others send heartbeats again, or were replaced."""
    watch, _ = cut([400] * 3, active=40)
    watch, hearing = cut({"run-001": 700}, active=40, now_s=20_300, watch=watch)
    assert held(hearing) == {"run-001"}
    watch, hearing = cut([], active=40, now_s=20_400, watch=watch)
    _, alone = cut({"run-001": 100}, active=40, now_s=30_000, watch=watch)
    assert (hearing.blind, alone.blind) == (None, None)


@pytest.mark.parametrize("heard_anew", [False, True])
@pytest.mark.parametrize(("later_s", "is_held"), [(TOGETHER_S, True), (TOGETHER_S + 1, False)])
def test_who_follows_one_that_was_replaced_belongs_to_its_group(
    later_s: int, is_held: bool, heard_anew: bool
) -> None:
    """The first run of a region that is cut off in steps cannot be distinguished from one that failed alone.
    `heard_anew`: its next attempt sends heartbeats.
    """
    watch, first = cut({"run-000": 400}, active=40)
    now_s = 20_000 - 400 + later_s + 100
    silent = {"run-001": 100}
    others = [f"run-{n:03d}" for n in range(2, 40)]
    watch, _ = listen(
        watch, canary=True, silent_s={}, active=dict.fromkeys(others, now_s - 9), now_s=now_s - 5
    )
    last_s = (
        dict.fromkeys(others, now_s) | {"run-001": now_s - 100} | ({"run-000": now_s} if heard_anew else {})
    )
    _, hearing = listen(watch, canary=True, silent_s=silent, active=last_s, now_s=now_s)
    assert first.blind is None
    assert (hearing.blind_for("run-001") is not None) == is_held


def test_one_that_was_only_unheard_for_a_while_makes_no_group_of_the_next_one() -> None:
    watch, _ = cut({"run-000": 100}, active=40)
    watch, _ = cut([], active=40, now_s=20_030, watch=watch)
    _, hearing = cut({"run-001": 100}, active=40, now_s=20_130, watch=watch)
    assert hearing.blind is None


def test_what_was_forgotten_of_those_that_fell_silent_is_bounded_in_time() -> None:
    watch, _ = cut({"run-000": 400}, active=40)
    last_s = {f"run-{n:03d}": 19_600 + FELL_KEPT_S for n in range(1, 40)}
    watch, _ = listen(watch, canary=True, silent_s={}, active=last_s, now_s=19_601 + FELL_KEPT_S)
    assert watch.fell_s == {}


@pytest.mark.parametrize("received", [False, True])
def test_a_patient_run_that_is_quiet_speaks_for_a_hasty_one_until_it_is_heard(received: bool) -> None:
    """If both are cut off together, the one with the long silence limit is overdue only long after the other
    would have been replaced.
    """
    last_s = {"hasty": 19_880, "patient": 19_990 if received else 19_885} | {
        f"run-{n:03d}": 19_990 for n in range(20)
    }
    _, hearing = listen(LISTENING, canary=True, silent_s={"hasty": 120}, active=last_s, now_s=20_000)
    assert (hearing.blind_for("hasty") is None) == received


@pytest.mark.parametrize(("silent", "active"), [(60, 200), (10, 200), (3, 20), (2, 20)])
def test_those_that_are_not_heard_after_an_outage_fell_silent_together_when_it_was_over(
    silent: int, active: int
) -> None:
    """This holds whenever during the outage their last heartbeats came: they are a cohort, or a few that were
    lost in it by chance.
    """
    ages_s = [500 + (TOGETHER_S + 1) * n for n in range(silent)]
    _, hearing = cut(ages_s, active=active, watch=Watch(inbound=Breaker(works_since_s=19_600)))
    assert len(held(hearing)) == silent


def test_who_is_not_heard_after_an_outage_is_held_from_its_end_on_and_then_let_through_one_by_one() -> None:
    let_through: list[str] = []
    watch = Watch(inbound=Breaker(works_since_s=20_000))
    for now_s in range(20_300, 20_000 + HOLD_S + 60, 15):
        ages_s = [now_s - 19_000 - n for n in range(18)]
        watch, hearing = cut(ages_s, active=40, now_s=now_s, watch=watch)
        free = {f"run-{n:03d}" for n in range(18)} - held(hearing)
        assert len(free) == (now_s >= 20_000 + HOLD_S)
        let_through += free
    assert let_through == ["run-000", "run-001", "run-002", "run-003"]


def test_one_that_falls_silent_long_after_an_outage_is_not_held_with_those_it_hid() -> None:
    _, hearing = cut([100] + [1500] * 20, active=200, watch=Watch(inbound=Breaker(works_since_s=19_500)))
    assert hearing.blind_for("run-000") is None
    assert hearing.blind_for("run-001") == "20 of 200 runs fell silent within 5 minutes of another one"


def test_a_group_is_let_through_one_by_one_after_its_hold() -> None:
    watch, early = cut([HOLD_S - 1] * 20, active=200)
    watch, first = cut([HOLD_S] * 20, active=200, now_s=20_001, watch=watch)
    _, second = cut([HOLD_S + 1] * 20, active=200, now_s=20_002, watch=watch)
    assert [early.through, first.through, second.through] == [None, "run-000", "run-001"]


def test_the_last_of_a_group_go_one_a_sweep_too() -> None:
    """Two of three were replaced; the third still waits for its turn, and no other sweep lets two through at
    once.
    """
    watch, _ = cut([HOLD_S - 1] * 3, active=40)
    for turn in range(3):
        left = {f"run-{n:03d}": HOLD_S + turn for n in range(turn, 3)}
        watch, hearing = cut(left, active=40, now_s=20_001 + turn, watch=watch)
        assert len(left.keys() - held(hearing)) == 1


def test_a_group_that_is_rightly_left_alone_takes_nothing_from_the_time_of_those_that_fall_silent_later() -> (
    None
):
    left_alone = [7200] * 3
    watch = LISTENING
    for now_s in range(20_000, 20_000 + HOLD_S, 15):
        watch, hearing = cut(left_alone, active=20, now_s=now_s, watch=watch)
    _, another = cut(left_alone + [100] * 3, active=20, now_s=23_000, watch=watch)
    _, most = cut(left_alone + [100] * 17, active=20, now_s=23_000, watch=watch)
    assert hearing.through is not None
    assert another.through in {"run-000", "run-001", "run-002"}
    assert most.through is None


# ------------------------------------------------------------------------------------------------- heartbeats
# outweigh the canary


def test_a_canary_that_fails_while_heartbeats_arrive_keeps_nobody_from_being_judged() -> None:
    watch, _ = hear(Watch(), 1000)
    watch, first = hear(watch, 1015, silent=1, active=3, canary=False)
    _, second = hear(watch, 1045, silent=1, active=3, canary=False, heartbeats_s=(1030, 1031))
    assert first.blind is not None
    assert (second.blind, second.receiving_since_s) == (None, 1000)


@pytest.mark.parametrize(
    ("others", "heartbeats_s", "judges"),
    [
        (19, (1030,), False),  # one of many may have slipped through
        (19, (1030, 1031), True),
        (1, (1030,), True),
        (1, (910,), False),  # it was on its way when the canary began to fail
        (2, (1030, 910), False),
        (0, (), False),
    ],
)
def test_two_runs_heartbeats_outweigh_it_or_one_where_only_one_lives(
    others: int, heartbeats_s: tuple[int, ...], judges: bool
) -> None:
    watch, _ = hear(Watch(), 1015, silent=1, active=others + 1, canary=False)
    _, hearing = hear(watch, 1045, silent=1, active=others + 1, canary=False, heartbeats_s=heartbeats_s)
    assert hearing.deaf != judges


def test_once_heartbeats_no_longer_arrive_the_canary_counts_again_and_that_time_is_no_silence() -> None:
    watch, _ = hear(Watch(), 1000, canary=False)
    watch, received = hear(watch, 1030, canary=False, heartbeats_s=(1028, 1029))
    watch, recent = hear(watch, 1140, canary=False, heartbeats_s=(1028, 1029))
    watch, deaf = hear(watch, 1155, canary=False, heartbeats_s=(1028, 1029))
    _, again = hear(watch, 2000, canary=False, heartbeats_s=(1998, 1999))
    assert [h.blind is None for h in (received, recent, deaf, again)] == [True, True, False, True]
    assert again.receiving_since_s == 2000


def test_a_run_is_silent_only_up_to_the_newest_heartbeat_of_the_others_while_the_canary_fails() -> None:
    """The webhook may have failed right after it."""
    watch, _ = hear(LISTENING, 1000)
    watch, _ = hear(watch, 1015, silent=1, active=3, canary=False)
    watch, _ = hear(watch, 1045, silent=1, active=3, canary=False, heartbeats_s=(1030, 1031))
    _, hearing = hear(watch, 1145, silent=1, active=3, canary=False, heartbeats_s=(1074, 1075))
    assert hearing.blind is None
    assert hearing.unheard_s(1040, 1145) == 70
    assert hearing.unheard_s(1100, 1145) == 45


def test_an_outage_between_a_heartbeat_and_the_next_canary_is_no_silence_also_where_canaries_were_lost_before() -> (
    None
):
    watch, _ = hear(LISTENING, 1000)
    watch, _ = hear(watch, 1060, silent=1, active=3, canary=False)
    for now_s in (1120, 1180, 1240):
        watch, _ = hear(watch, now_s, silent=1, active=3)
    watch, during = hear(watch, 1300, silent=1, active=3, canary=False, heartbeats_s=(1288, 1289))
    _, after = hear(watch, 1370, silent=1, active=3, heartbeats_s=(1362, 1366))
    assert (during.deaf, during.unheard_s(1200, 1300)) == (False, 11)
    assert after.receiving_since_s == 1120
    assert after.unheard_s(1200, 1370) == 1362 - 1289


def test_a_brief_failure_of_the_canary_is_no_silence_though_what_was_heard_before_counts() -> None:
    watch, _ = hear(LISTENING, 1000)
    watch, before = hear(watch, 1060)
    watch, _ = hear(watch, 1105, silent=1, canary=False)
    watch, after = hear(watch, 1120, silent=1)
    _, later = hear(watch, 1180, silent=1)
    assert (before.blind, after.blind) == (None, None)
    assert before.unheard_s(960, 1060) == 0
    assert after.unheard_s(960, 1120) == later.unheard_s(960, 1180) == 60
    assert later.unheard_s(1100, 1180) == 20
    assert later.unheard_s(1130, 1180) == 0


@pytest.mark.parametrize(("closed_s", "open_s"), [(5, 60), (60, 60), (60, 15), (15, 45)])
@pytest.mark.parametrize("living", [1, 4])
def test_a_watcher_whose_own_way_is_closed_takes_nothing_from_what_another_remembers(
    closed_s: int, open_s: int, living: int
) -> None:
    """Each watcher has its own pace; the living runs send heartbeats every 30 s, and one run is dead."""
    watch, longest_s = Watch(), 0
    for now_s in range(100_000, 100_000 + 7200, 5):
        ways = [
            canary
            for every_s, canary, late_s in ((closed_s, False, 0), (open_s, True, 40))
            if (now_s - late_s) % every_s == 0
        ]
        for canary in ways:
            heartbeats_s = tuple(now_s - (now_s + 7 * n) % 30 for n in range(living))
            watch, hearing = hear(
                watch, now_s, silent=1, active=1 + living, canary=canary, heartbeats_s=heartbeats_s
            )
            longest_s = max(longest_s, now_s - hearing.receiving_since_s if canary else 0)
    assert longest_s > 7000


def test_people_are_notified_of_a_closed_way_when_it_lasts_and_once() -> None:
    watch, reported = Watch(), []
    for now_s in range(1000, 1000 + 86_400, 15):
        watch, hearing = hear(watch, now_s, silent=1, canary=now_s % 60 == 0, heartbeats_s=(now_s - 1, now_s))
        reported.append((hearing.overruled_since_s, now_s))
    assert {since_s for since_s, _ in reported} == {None, 1000}
    assert min(now_s for since_s, now_s in reported if since_s is not None) == 1000 + OVERRULED_S


# ------------------------------------------------------------------------------------------------- machines
# yet to be heard first


def boots(hearing: Hearing, *, launched_s: int, now_s: int) -> tuple[bool, int]:
    """Return whether nothing is concluded about a machine whose first heartbeat was due 600 s after its
    launch, and its seconds that count.
    """
    return hearing.blind_for_boot(now_s - launched_s - 600) is not None, now_s - max(
        launched_s, hearing.boot_since_s(launched_s)
    )


def test_while_answers_are_lost_no_new_machine_is_late_though_heartbeats_arrive() -> None:
    watch, _ = hear(LISTENING, 1000)
    for now_s in range(1015, 3000, 15):
        watch, hearing = hear(watch, now_s, canary=False, heartbeats_s=(now_s - 2, now_s - 1))
    assert hearing.blind is None
    assert boots(hearing, launched_s=1000, now_s=3000) == (True, 2000)
    _, again = hear(watch, 3000)
    assert boots(again, launched_s=1000, now_s=3000) == (False, 0)


def test_a_watcher_whose_own_way_stays_closed_comes_to_judge_new_machines_too() -> None:
    watch, _ = hear(LISTENING, 1000)
    for now_s in range(1015, 1015 + HOLD_S + 16, 15):
        watch, hearing = hear(watch, now_s, canary=False, heartbeats_s=(now_s - 2, now_s - 1))
    assert boots(hearing, launched_s=now_s - 700, now_s=now_s) == (False, 700)


def test_time_in_which_the_provider_did_not_answer_makes_no_machine_late_but_not_for_ever() -> None:
    watch, _ = hear(LISTENING, 1000)
    active = dict.fromkeys(RUNS, 1980)
    for now_s in (1015, 1800):
        watch, _ = listen(watch, canary=True, silent_s={}, active=active, now_s=now_s, provider=False)
    watch, hearing = listen(watch, canary=True, silent_s={}, active=active, now_s=2000)
    assert boots(hearing, launched_s=1000, now_s=2000) == (False, 0)
    assert boots(hearing, launched_s=1000 - HOLD_S, now_s=2000) == (False, 1000)


def test_while_a_group_is_held_new_machines_are_held_with_it_and_no_longer() -> None:
    _, hearing = cut([400] * 5, active=40)
    assert boots(hearing, launched_s=19_000, now_s=20_000)[0]
    assert not boots(hearing, launched_s=19_399 - HOLD_S, now_s=20_000)[0]


# ------------------------------------------------------------------------------------------------------------
# the store


@pytest.mark.parametrize(("stored", "since_s"), [(False, 3000), (True, LONG_AGO_S)])
def test_time_in_which_nothing_could_be_stored_is_no_silence(stored: bool, since_s: int) -> None:
    """No sweep ran for long: either the store was unavailable, or no watcher ran, in which case heartbeats
    were stored nevertheless.
    """
    watch = LISTENING
    for now_s in (1000, 1015, 1030):
        watch, _ = listen(
            watch, canary=True, silent_s={}, active={"a": now_s - 5, "b": now_s - 5}, now_s=now_s
        )
    _, hearing = listen(
        watch,
        canary=True,
        silent_s={"a": 1975},
        active={"a": 1025, "b": 2990 if stored else 1026},
        now_s=3000,
    )
    assert hearing.receiving_since_s == since_s


def test_time_in_which_nobody_put_agents_on_machines_makes_no_machine_late() -> None:
    """No sweep ran for long, although heartbeats were stored: an agent that no watcher has put on its machine
    can send none.
    """
    watch = LISTENING
    for now_s in (1000, 1060, 1120):
        watch, hearing = listen(watch, canary=True, silent_s={}, active={"a": now_s - 5}, now_s=now_s)
    assert hearing.boot_since_s(1010) <= 1010
    watch, _ = listen(watch, canary=True, silent_s={}, active={"a": 1990}, now_s=2000)
    _, hearing = listen(watch, canary=True, silent_s={}, active={"a": 2050}, now_s=2060)
    assert hearing.boot_since_s(1010) == 2000
    assert hearing.boot_since_s(2010) <= 2010


def test_a_watcher_that_looks_every_ten_minutes_does_not_take_its_own_pace_for_an_outage() -> None:
    watch = LISTENING
    for now_s in (600, 1200, 1800, 2400):
        watch, hearing = listen(
            watch, canary=True, silent_s={"a": now_s - 500}, active={"a": 500}, now_s=now_s
        )
    assert hearing.receiving_since_s == LONG_AGO_S


# ------------------------------------------------------------------------------------------------------------
# the table


def test_the_table_says_what_follows_from_every_sign_in_every_state() -> None:
    assert TRANSITIONS.keys() == {(state, sign) for state in State for sign in Sign}


def test_a_path_that_flaps_is_closed_only_once_it_has_worked_for_long_enough() -> None:
    limits, breaker = Limits(brief_s=30), Breaker()
    states = []
    for now_s, works in (
        (0, False),
        (60, True),
        (75, False),
        (90, True),
        (90 + PROOF_S - 1, True),
        (90 + PROOF_S, True),
    ):
        breaker = moved(breaker, works=works, now_s=now_s, limits=limits)
        states.append(breaker.state.value)
    assert states == ["open", "half_open", "open", "half_open", "half_open", "closed"]
    assert breaker.works_since_s == 90


@PROPERTY
@given(
    steps=st.lists(st.tuples(st.integers(1, 900), st.booleans()), max_size=30),
    limits=st.builds(
        Limits, st.sampled_from([0, 30]), st.sampled_from([0, 120]), st.sampled_from([None, HOLD_S])
    ),
)
def test_no_breaker_stays_open_beyond_its_hold_or_half_open_beyond_its_proof(
    steps: list[tuple[int, bool]], limits: Limits
) -> None:
    breaker, now_s = Breaker(), 0
    for after_s, works in steps:
        now_s += after_s
        before, breaker = breaker, moved(breaker, works=works, now_s=now_s, limits=limits)
        assert (breaker.state is State.CLOSED) == (breaker.failing_s is None)
        assert works or breaker.state is not State.CLOSED
        assert not works or breaker.state is not State.OPEN
        if breaker.state is State.OPEN and before.failing_s is not None and limits.hold_s is not None:
            assert now_s - before.failing_s < limits.hold_s


SWEEPS = st.lists(
    st.tuples(st.integers(1, 1000), st.booleans(), st.integers(0, 6), st.integers(0, 6)), max_size=20
)


@PROPERTY
@given(sweeps=SWEEPS)
def test_whatever_happened_a_run_is_let_through_only_while_somebody_is_heard_and_after_the_hold(
    sweeps: list[tuple[int, bool, int, int]],
) -> None:
    watch, now_s, opened_s = Watch(), 1000, None
    for after_s, canary, silent, others in sweeps:
        now_s += after_s
        known = bool(watch.members)
        active = silent + others
        watch, hearing = hear(watch, now_s, silent=silent, active=active, canary=canary)
        crowd = active >= 3 and 2 * silent >= active
        received = canary or watch.inbound.state is not State.OPEN
        assert received or "canary" in (hearing.blind or "")
        if received:
            opened_s = (opened_s if opened_s is not None else now_s) if crowd else None
        hidden = silent >= 2 and now_s - 9000 + TOGETHER_S + 1 < hearing.receiving_since_s + TOGETHER_S
        assert canary or received <= (others > 0), "only a heartbeat outweighs the canary"
        assert (hearing.blind is not None) or (received and not crowd)
        assert (hearing.blind is None) or (crowd or hidden or known or not received)
        if hearing.through is not None:
            assert received
            assert now_s - (opened_s if opened_s is not None else hearing.receiving_since_s) >= HOLD_S
        assert hearing.receiving_since_s <= now_s
        assert watch.last_sweep_s == now_s
