"""Which checkpoints are kept, and what is never deleted, whoever prunes with whatever list."""

import math
from collections.abc import Collection
from dataclasses import replace
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.buckets.keys import manifest_key
from prime_train.checkpoints.retention import Kept, RetentionPolicy, expired, why_kept
from prime_train.spec.spec import CheckpointSpec
from tests.core.given import PROPERTY

STEP_MAX = 12


def kept(step: int, metric: float | None = None, *, attempt: int = 1, complete: bool = True) -> Kept:
    return Kept(step, attempt, manifest_key("tiny-1", step, attempt), complete, metric)


METRICS = st.one_of(
    st.none(), st.integers(-3, 3).map(float), st.sampled_from([math.nan, math.inf, -math.inf])
)


class Best(Enum):
    """What a checkpoint says of the trainer's best."""

    ITSELF = "itself"
    AS_BEFORE = "what was named before it, if anything was"


def with_best(made: list[tuple[Kept, Best]]) -> list[Kept]:
    """Return the checkpoints, each of which names as the trainer's best itself or what was named before it: a
    trainer compares a checkpoint when it saves it, and finds no older one better later.
    """
    named: int | None = None
    told = {}
    for checkpoint, best in sorted(made, key=lambda pair: pair[0].age):
        named = checkpoint.step if best is Best.ITSELF else named
        told[checkpoint.age] = named
    return [replace(checkpoint, best_step=told[checkpoint.age]) for checkpoint, _ in made]


CHECKPOINTS = st.lists(
    st.tuples(
        st.builds(
            lambda checkpoint, proven, doubtful: replace(checkpoint, proven=proven, is_doubtful=doubtful),
            st.builds(
                kept,
                st.integers(0, STEP_MAX),
                METRICS,
                attempt=st.integers(1, 3),
                complete=st.sampled_from([True, True, False]),
            ),
            st.booleans(),
            st.booleans(),
        ),
        st.sampled_from(Best),
    ),
    max_size=10,
    unique_by=lambda pair: pair[0].age,
).map(with_best)
POLICIES = st.builds(
    RetentionPolicy,
    keep=st.integers(1, 4),
    every_steps=st.one_of(st.none(), st.integers(1, 5)),
    best=st.integers(0, 3),
    best_by=st.sampled_from(["loss", "reward"]),
)
COMMITTED = st.integers(-1, STEP_MAX + 1)
CHOICE = st.sets(st.integers(0, 9))


def some(checkpoints: list[Kept], choice: Collection[int]) -> list[Kept]:
    return [c for number, c in enumerate(checkpoints) if number in choice]


def keys(checkpoints: Collection[Kept]) -> set[str]:
    return {c.key for c in checkpoints}


def without(checkpoints: Collection[Kept], gone: Collection[Kept]) -> list[Kept]:
    return [c for c in checkpoints if c.key not in keys(gone)]


def steps(
    checkpoints: Collection[Kept],
    policy: RetentionPolicy,
    *,
    committed: int = STEP_MAX,
    pinned: Collection[str] = (),
) -> list[int]:
    """Return the steps that are deleted."""
    return [c.step for c in expired(checkpoints, policy, committed_step=committed, pinned=pinned)]


def run_of(*numbers: int) -> list[Kept]:
    return [kept(number) for number in numbers]


# ------------------------------------------------------------------------------------------------------------
# rules


def test_the_newest_stay_and_the_others_go_oldest_first() -> None:
    assert steps(run_of(3, 1, 4, 2), RetentionPolicy(keep=2)) == [1, 2]


def test_multiples_of_every_steps_stay_beside_the_newest() -> None:
    assert steps(run_of(*range(1, 11)), RetentionPolicy(keep=2, every_steps=4)) == [1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize(("best_by", "gone"), [("reward", [2, 4, 5]), ("loss", [1, 3, 5])])
def test_the_best_are_the_highest_reward_or_the_lowest_loss(best_by: str, gone: list[int]) -> None:
    spec = CheckpointSpec.model_validate({"keep": 1, "keep_best": 2, "best_by": best_by})
    made = [kept(1, 0.9), kept(2, 0.1), kept(3, 0.8), kept(4, 0.2), kept(5, 0.5), kept(6, None)]
    assert steps(made, RetentionPolicy.of(spec)) == gone


@pytest.mark.parametrize("best_by", ["reward", "loss"])
@pytest.mark.parametrize("unusual", [None, math.nan, math.inf, -math.inf])
def test_what_has_no_finite_metric_is_never_among_the_best(unusual: float | None, best_by: str) -> None:
    spec = CheckpointSpec.model_validate({"keep": 1, "keep_best": 1, "best_by": best_by})
    assert steps([kept(1, unusual), kept(2, 0.5), kept(3, unusual), kept(4)], RetentionPolicy.of(spec)) == [
        1,
        3,
    ]


@pytest.mark.parametrize("best_by", ["reward", "loss"])
def test_of_two_that_are_equally_good_the_newer_stays(best_by: str) -> None:
    spec = CheckpointSpec.model_validate({"keep": 1, "keep_best": 1, "best_by": best_by})
    assert steps([kept(1, 0.5), kept(2, 0.5), kept(3)], RetentionPolicy.of(spec)) == [1]


def test_of_one_step_the_later_attempts_checkpoint_is_the_newer() -> None:
    made = [kept(2, attempt=1), kept(2, attempt=3), kept(2, attempt=2)]
    assert [c.attempt for c in expired(made, RetentionPolicy(keep=1), committed_step=5)] == [1, 2]


def test_what_is_pinned_stays_and_takes_no_place_of_the_newest() -> None:
    made = run_of(1, 2, 3, 4)
    assert steps(made, RetentionPolicy(keep=2), pinned=[made[0].key]) == [2]


def test_what_is_not_committed_is_neither_taken_nor_counted() -> None:
    assert steps(run_of(1, 2, 3, 4), RetentionPolicy(keep=1), committed=2) == [1]


def test_of_several_at_the_committed_step_none_is_taken() -> None:
    assert steps([kept(1), kept(2, attempt=1), kept(2, attempt=2)], RetentionPolicy(keep=1), committed=2) == [
        1
    ]


def test_a_machine_whose_commits_were_all_refused_deletes_nothing() -> None:
    assert steps(run_of(1, 2, 3), RetentionPolicy(keep=1), committed=0) == []


def test_an_incomplete_checkpoint_takes_no_place_of_the_newest_the_multiples_or_the_best() -> None:
    made = [kept(1, 0.1), kept(2, 0.2), kept(4, 0.9, complete=False), kept(5, complete=False)]
    assert steps(made, RetentionPolicy(keep=1, best=1)) == [1]


def test_an_incomplete_checkpoint_goes_once_it_is_older_than_all_complete_ones_that_are_kept() -> None:
    made = [kept(1, complete=False), kept(2), kept(3, complete=False), kept(4)]
    assert steps(made, RetentionPolicy(keep=2)) == [1]
    assert steps(made, RetentionPolicy(keep=1)) == [1, 2, 3]


def test_an_incomplete_checkpoint_below_none_but_uncommitted_ones_stays() -> None:
    assert steps([kept(1, complete=False), kept(3)], RetentionPolicy(keep=1), committed=2) == []


def test_an_incomplete_checkpoint_a_run_refers_to_stays() -> None:
    broken = kept(1, complete=False)
    assert steps([broken, kept(2), kept(3)], RetentionPolicy(keep=1), pinned=[broken.key]) == [2]


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"keep": 0}, "at least one"), ({"every_steps": 0}, "every_steps is 0"), ({"best": -1}, "-1")],
)
def test_a_policy_that_makes_no_sense_is_refused(changes: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(RetentionPolicy(keep=1), **changes)  # type: ignore[arg-type]  # one of several fields, all of them numbers


def test_the_policy_is_what_the_user_wrote() -> None:
    spec = CheckpointSpec(keep=5, keep_every_steps=100, keep_best=2, best_by="loss")
    assert RetentionPolicy.of(spec) == RetentionPolicy(keep=5, every_steps=100, best=2, best_by="loss")


def test_a_user_who_wrote_nothing_keeps_the_newest_only() -> None:
    assert RetentionPolicy.of(CheckpointSpec()) == RetentionPolicy(keep=CheckpointSpec().keep)


# ------------------------------------------------------------------------------------------------------------
# why


def test_people_read_every_reason_a_checkpoint_stays_for() -> None:
    made = [
        kept(1, 0.9),
        kept(2, 0.1),
        kept(4, 0.2),
        kept(5, complete=False),
        kept(6, 0.3),
        kept(7, complete=False),
        kept(8),
        kept(9),
    ]
    policy = RetentionPolicy(keep=2, every_steps=4, best=2, best_by="reward")
    why = why_kept(made, policy, committed_step=8, pinned=[made[1].key])
    assert {c.step: why.get(c.key) for c in made} == {
        1: "best 2 by reward",
        2: "pinned",
        4: "every 4",
        5: None,
        6: "newest 2, best 2 by reward",
        7: "incomplete, newer than one that is kept",
        8: "newest 2, every 4",
        9: "not committed",
    }


def test_people_read_why_a_checkpoint_no_rule_holds_cannot_go_yet() -> None:
    broken, older, newer = kept(1, complete=False), kept(2, attempt=1), kept(2, attempt=2)
    assert why_kept([older, newer], RetentionPolicy(keep=1), committed_step=2) == {
        newer.key: "newest 1",
        older.key: "at the committed step",
    }
    assert why_kept([broken], RetentionPolicy(keep=1), committed_step=2) == {
        broken.key: "incomplete, but no older one is complete"
    }


# ------------------------------------------------------------------------------------------------------------
# promises


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE)
def test_each_rule_holds_what_it_names(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int]
) -> None:
    pins = keys(some(made, choice))
    left = keys(without(made, expired(made, policy, committed_step=committed, pinned=pins)))
    usable = sorted(
        (c for c in made if c.complete and c.step <= committed), key=lambda c: (c.step, c.attempt)
    )
    sign = 1.0 if policy.best_by == "reward" else -1.0
    good = [c for c in usable if not c.is_doubtful]
    measured = [c for c in good if c.metric is not None and math.isfinite(c.metric)]
    by_metric = sorted(measured, key=lambda c: (sign * (c.metric or 0.0), c.step, c.attempt))
    assert left >= keys(usable[-1:]) | keys(good[-policy.keep :]) | keys([c for c in good if c.proven][-1:])
    assert left >= keys([c for c in good if policy.every_steps and c.step % policy.every_steps == 0])
    assert left >= keys(by_metric[len(by_metric) - min(policy.best, len(by_metric)) :])
    assert left >= pins | keys([c for c in made if c.step >= committed])


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE)
def test_what_no_rule_names_goes(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int]
) -> None:
    pins = keys(some(made, choice))
    left = without(made, expired(made, policy, committed_step=committed, pinned=pins))
    free = [c for c in left if c.complete and c.step < committed and c.key not in pins]
    multiples = [c for c in free if policy.every_steps and c.step % policy.every_steps == 0]
    others = 3  # the newest of all, the newest proven one, and the trainer's best
    assert len(without(free, multiples)) <= policy.keep + policy.best + others
    usable = [c.age for c in left if c.complete and c.step <= committed]
    unusable = [c.age for c in left if not c.complete and c.step < committed and c.key not in pins]
    assert not usable or not unusable or min(unusable) > min(usable)


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE)
def test_a_complete_checkpoint_is_left_if_there_was_one(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int]
) -> None:
    left = without(made, expired(made, policy, committed_step=committed, pinned=keys(some(made, choice))))
    complete = [c.age for c in made if c.complete]
    assert max((c.age for c in left if c.complete), default=None) == max(complete, default=None)


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE, data=st.data())
def test_pruning_is_in_order_of_age_whatever_the_order_of_the_listing(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int], data: st.DataObject
) -> None:
    pins = keys(some(made, choice))
    gone = expired(made, policy, committed_step=committed, pinned=pins)
    shuffled = data.draw(st.permutations(made))
    assert [c.age for c in gone] == sorted(c.age for c in gone)
    assert [c.key for c in expired(shuffled, policy, committed_step=committed, pinned=pins)] == [
        c.key for c in gone
    ]


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE, cut=st.integers(0, 10))
def test_pruning_again_takes_no_more_even_after_one_that_was_cut_off(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int], cut: int
) -> None:
    pins = keys(some(made, choice))
    gone = expired(made, policy, committed_step=committed, pinned=pins)
    again = expired(without(made, gone[:cut]), policy, committed_step=committed, pinned=pins)
    assert [c.key for c in again] == [c.key for c in gone[cut:]]


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, committed=COMMITTED, choice=CHOICE)
def test_every_checkpoint_goes_or_has_a_reason_to_stay(
    made: list[Kept], policy: RetentionPolicy, committed: int, choice: set[int]
) -> None:
    pins = keys(some(made, choice))
    gone = expired(made, policy, committed_step=committed, pinned=pins)
    why = why_kept(made, policy, committed_step=committed, pinned=pins)
    assert set(why) == keys(without(made, gone))
    assert all(why.values())


# ------------------------------------------------------------------------------------------------------------
# two at a time


@PROPERTY
@given(
    made=CHECKPOINTS,
    policy=POLICIES,
    marks=st.tuples(COMMITTED, COMMITTED),
    since=st.integers(0, STEP_MAX + 1),
    choice=CHOICE,
)
def test_whatever_an_old_view_gives_up_a_fresh_one_gives_up_too(
    made: list[Kept], policy: RetentionPolicy, marks: tuple[int, int], since: int, choice: set[int]
) -> None:
    pins = keys(some(made, choice))
    old = [c for c in made if c.step < since]
    stale = expired(old, policy, committed_step=min(marks), pinned=pins)
    fresh = expired(made, policy, committed_step=max(marks), pinned=pins)
    assert keys(stale) <= keys(fresh)


@PROPERTY
@given(made=CHECKPOINTS, policy=POLICIES, marks=st.tuples(COMMITTED, COMMITTED), seen=CHOICE, choice=CHOICE)
def test_a_complete_checkpoint_that_an_old_view_gives_up_is_not_missed_whatever_that_view_lacked(
    made: list[Kept], policy: RetentionPolicy, marks: tuple[int, int], seen: set[int], choice: set[int]
) -> None:
    pins = keys(some(made, choice))
    stale = expired(some(made, seen), policy, committed_step=min(marks), pinned=pins)
    fresh = expired(made, policy, committed_step=max(marks), pinned=pins)
    assert keys([c for c in stale if c.complete]) <= keys(fresh)


@PROPERTY
@given(
    made=CHECKPOINTS,
    policies=st.tuples(POLICIES, POLICIES),
    marks=st.tuples(COMMITTED, COMMITTED),
    views=st.tuples(CHOICE, CHOICE),
    choice=CHOICE,
)
def test_two_who_prune_at_once_leave_the_newest_complete_one_and_all_that_is_pinned(
    made: list[Kept],
    policies: tuple[RetentionPolicy, RetentionPolicy],
    marks: tuple[int, int],
    views: tuple[set[int], set[int]],
    choice: set[int],
) -> None:
    pins = keys(some(made, choice))
    seen = [some(made, view) for view in views]
    gone = [
        c
        for view, policy, mark in zip(seen, policies, marks, strict=True)
        for c in expired(view, policy, committed_step=mark, pinned=pins)
    ]
    known = [c for c in made if c.key in keys(seen[0] + seen[1]) and c.complete]
    left = without(made, gone)
    assert not keys(gone) & pins
    assert max((c.age for c in left if c in known), default=None) == max((c.age for c in known), default=None)


def test_a_metric_that_came_late_is_too_late_for_a_checkpoint_that_is_gone() -> None:
    policy = RetentionPolicy(keep=1, best=1)
    before = [kept(1), kept(2, 0.5), kept(3)]
    after = [kept(1, 0.9), kept(2, 0.5), kept(3)]
    assert steps(before, policy) == [1]
    assert steps(after, policy) == [2]


# ---------------------------------------------------------------------------------------------------- proven
# and doubtful ones


def marked(step: int, *, proven: bool = False, doubtful: bool = False, best_step: int | None = None) -> Kept:
    return replace(kept(step), proven=proven, is_doubtful=doubtful, best_step=best_step)


def test_checkpoints_that_are_not_finite_push_out_no_finite_one() -> None:
    checkpoints = [*run_of(1, 2, 3), *(marked(step, doubtful=True) for step in (4, 5, 6))]
    assert steps(checkpoints, RetentionPolicy(3)) == [4, 5]


def test_a_run_that_saves_nothing_finite_any_more_keeps_its_last_good_one_whatever_follows() -> None:
    checkpoints = [kept(1), *(marked(step, doubtful=True) for step in range(2, 12))]
    assert steps(checkpoints, RetentionPolicy(1)) == list(range(2, 11))


def test_the_newest_proven_checkpoint_stays_until_a_newer_one_is_proven() -> None:
    unproven = run_of(3, 4, 5, 6)
    assert steps([marked(1, proven=True), marked(2, proven=True), *unproven], RetentionPolicy(2)) == [1, 3, 4]
    assert steps([marked(2, proven=True), *run_of(3, 4, 5), marked(6, proven=True)], RetentionPolicy(2)) == [
        2,
        3,
        4,
    ]


def test_a_proven_checkpoint_whose_figures_are_not_finite_does_not_replace_one_whose_are() -> None:
    assert 1 not in steps(
        [marked(1, proven=True), marked(2, proven=True, doubtful=True), *run_of(3, 4)], RetentionPolicy(1)
    )


def test_a_doubtful_checkpoint_is_not_among_the_best_however_good_its_metric() -> None:
    best, doubtful = kept(1, 1.0), replace(kept(2, 5.0), is_doubtful=True)
    assert steps([best, doubtful, *run_of(3, 4)], RetentionPolicy(1, best=1)) == [2, 3]


def test_the_checkpoint_that_the_trainer_calls_its_best_stays_until_it_names_another() -> None:
    assert steps([*run_of(1, 2, 3), marked(4, best_step=1)], RetentionPolicy(1)) == [2, 3]
    assert steps([*run_of(1, 2, 3), marked(4, best_step=1), marked(5, best_step=3)], RetentionPolicy(1)) == [
        1,
        2,
        4,
    ]


@PROPERTY
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=10), st.integers(1, 3))
def test_pruning_after_each_save_never_loses_the_newest_good_nor_the_newest_good_proven_one(
    flags: list[tuple[bool, bool]], keep: int
) -> None:
    left: list[Kept] = []
    for step, (proven, doubtful) in enumerate(flags, 1):
        left = [*left, marked(step, proven=proven, doubtful=doubtful)]
        gone = keys(expired(left, RetentionPolicy(keep), committed_step=step))
        good = [c for c in left if not c.is_doubtful]
        newest_proven = [c for c in good if c.proven][-1:]
        assert not keys([*good[-keep:], *newest_proven, left[-1]]) & gone
        left = [c for c in left if c.key not in gone]
