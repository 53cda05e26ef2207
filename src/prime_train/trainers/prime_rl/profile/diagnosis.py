"""The bottleneck of a prime-rl run, with the reasons for the diagnosis and the doubts about it.

First the limiting side is found from who waits for whom: if the trainer waits for batches, rollouts are the
limit; if the orchestrator holds finished batches back, the trainer is the limit; if both wait, they take
turns. Then the limit within that side is found. A share close to a threshold, a run that changed during the
examined steps, and missing metrics are doubts; one doubt is enough to make a diagnosis no longer sure.
"""

from collections.abc import Iterable, Iterator
from statistics import fmean

from prime_train.trainers.prime_rl.profile.bottlenecks import (
    TITLES,
    Bottleneck,
    Certainty,
    Critical,
    ProfileSummary,
    percent,
    seconds,
)
from prime_train.trainers.prime_rl.profile.metric_keys import StepPart
from prime_train.trainers.prime_rl.profile.rollouts import Engines, Rollouts
from prime_train.trainers.prime_rl.profile.times import Times
from prime_train.trainers.prime_rl.profile.waiting import (
    WAITS,
    EngineHeadroom,
    Side,
    best_s,
    engine_headroom,
    held_back_share,
    side,
)

TIE_SHARE = 0.05
HEAVY = 0.15
WORTH = 1.1
"""Minimum factor by which the run would be faster without a part of the trainer's step, for that part to be
the bottleneck.
"""

STEPS_SURE = 15
AGREE = 0.7
"""Minimum share of the steps that must agree with the overall result."""
OTHER_MAX = 0.15
TOOLS_LONG = 0.5


def diagnose(times: Times, first: Times, second: Times) -> ProfileSummary:
    """Return the diagnosis of all examined steps. `first` and `second` are the times of their two halves."""
    found, reasons, doubts = _found(times)
    doubts = [*_doubts(times), *doubts]
    if side(first) is not side(second):
        doubts.append(
            f"the bottleneck changed during the run: at first {_words(first)}, then {_words(second)}"
        )
    certainty = Certainty.LIKELY if doubts else Certainty.SURE
    return ProfileSummary(
        found, TITLES[found][1], certainty, _path(times, found), tuple(reasons), tuple(doubts)
    )


def _path(times: Times, found: Bottleneck) -> Critical:
    if found is Bottleneck.BALANCED:
        return Critical.EITHER
    match side(times):
        case Side.TRAINER:
            return Critical.ROLLOUTS
        case Side.BOTH:
            return Critical.BOTH
        case Side.ORCHESTRATOR | Side.NONE:
            return Critical.TRAINER


# ------------------------------------------------------------------------------------------------------------
# sides


Found = tuple[Bottleneck, list[str], list[str]]


def _found(times: Times) -> Found:
    """Return the bottleneck, the reasons and the doubts."""
    match side(times):
        case Side.TRAINER:
            return _pauses(times) or _starved(times)
        case Side.BOTH | Side.ORCHESTRATOR | Side.NONE as who:
            heavy = _heavy(times)
            return heavy if heavy is not None else _even(times, who)


def _pauses(times: Times) -> Found | None:
    """Return the finding that a few long waits cause nearly all waiting of the trainer, or None."""
    without_s = times.mean_s - times.long_waits_s
    waits = (times.mean_of(StepPart.WAIT) - times.long_waits_s) / without_s if without_s > 0 else 0.0
    if not times.long_waits or waits >= WAITS:
        return None
    share = times.long_waits_s / times.mean_s
    reasons = [
        f"{times.long_waits} of {times.steps} waits are far longer than the others, and take "
        f"{percent(share)} of the time"
    ]
    reasons.append(f"without them the trainer waits {percent(waits)} of a step")
    return (
        Bottleneck.PAUSES,
        reasons,
        [
            "the metrics do not show what the engines did meanwhile: an evaluation, a restart or very long "
            "rollouts"
        ],
    )


def _starved(times: Times) -> Found:
    reasons = [
        f"the trainer waits {percent(times.parts[StepPart.WAIT].share)} of a step; without that it takes "
        f"{seconds(times.busy_s)}"
    ]
    held_back = held_back_share(times)
    if held_back is not None:
        reasons.append(
            f"a finished batch is held back {percent(held_back)} of the time: rollouts do not wait for the "
            "trainer"
        )
    headroom, engines = engine_headroom(times.engines), times.engines
    tools, how = _tools_share(times.rollouts, engines)
    reasons += [
        *_engine_reasons(engines),
        *([f"tools and environment take {percent(tools)} of a rollout ({how})"] if tools is not None else []),
    ]
    if headroom is EngineHeadroom.NONE:
        doubts = (
            [f"tools still take {percent(tools)} of a rollout"]
            if tools is not None and tools >= TOOLS_LONG
            else []
        )
        return Bottleneck.INFERENCE, reasons, doubts
    if tools is not None and tools >= TOOLS_LONG:
        unclear = {
            EngineHeadroom.SOME: "the engines are neither full nor empty",
            EngineHeadroom.UNKNOWN: "the metrics do not show how full the engines are",
        }
        return Bottleneck.TOOLS, reasons, [unclear[headroom]] if headroom in unclear else []
    if headroom is EngineHeadroom.MUCH and tools is not None:
        return Bottleneck.CONCURRENCY, reasons, []
    if headroom is EngineHeadroom.MUCH:
        return (
            Bottleneck.ROLLOUTS,
            reasons,
            ["the engines are not the bottleneck, but the metrics do not show what a rollout does meanwhile"],
        )
    return Bottleneck.ROLLOUTS, reasons, []


def _heavy(times: Times) -> Found | None:
    """Return the finding that saving or broadcasting, not training itself, holds the trainer up, or None if
    leaving it out would gain little.
    """
    gains = {StepPart.SAVE: Bottleneck.CHECKPOINTS, StepPart.BROADCAST: Bottleneck.BROADCAST}
    part = max(gains, key=times.mean_of)
    cost_s, own_s = times.mean_of(part), times.rollouts.own_s if times.rollouts is not None else None
    if cost_s < HEAVY * times.mean_s or times.mean_s < WORTH * best_s(times.busy_s - cost_s, own_s):
        return None
    reasons = [f"{_WORDS[part]} takes {percent(cost_s / times.mean_s)} of the time"]
    if part is StepPart.SAVE:
        once_s = cost_s * times.steps / times.saves
        reasons.append(
            f"{times.saves} saves of {seconds(once_s)}"
            + (f", one in {times.save_every} steps" if times.save_every else "")
        )
    few = ["only one save was observed"] if part is StepPart.SAVE and times.saves < 2 else []
    return gains[part], reasons, few


_WORDS = {StepPart.SAVE: "saving", StepPart.BROADCAST: "sending weights"}


def _even(times: Times, who: Side) -> Found:
    waits, held_back = times.parts[StepPart.WAIT].share, held_back_share(times)
    train = times.parts[StepPart.TRAIN].share
    held_text = (
        f"a finished batch is held back {percent(held_back)} of the time" if held_back is not None else ""
    )
    if who is Side.BOTH:
        return Bottleneck.TURNS, [f"the trainer waits {percent(waits)} of a step, and {held_text}"], []
    reasons = [
        f"the trainer waits only {percent(waits)} of a step; forward, backward and optimizer take "
        f"{percent(train)}"
    ]
    own_s = times.rollouts.own_s if times.rollouts is not None else None
    if who is Side.ORCHESTRATOR and own_s is not None and own_s > (1 - WAITS) * times.mean_s:
        return (
            Bottleneck.BALANCED,
            [*reasons, f"rollouts alone need {seconds(own_s)} of {seconds(times.mean_s)} per batch, too"],
            [],
        )
    if who is Side.ORCHESTRATOR:
        return Bottleneck.TRAINER, [*reasons, f"{held_text}: rollouts wait for the trainer"], []
    if held_back is None:
        return (
            Bottleneck.TRAINER,
            reasons,
            ["the metrics do not show whether rollouts wait too: they may be as slow as the trainer"],
        )
    return Bottleneck.BALANCED, [*reasons, f"{held_text}: neither side is idle"], []


def _tools_share(rollouts: Rollouts | None, engines: Engines | None) -> tuple[float | None, str]:
    """Return the share of a rollout's time spent outside the model, and the source of that figure; (None, "")
    if it is unknown.
    """
    if rollouts is not None and rollouts.tools_share is not None:
        return rollouts.tools_share, "measured by their own clocks"
    if engines is not None and engines.outside_share is not None:
        return (
            engines.outside_share,
            "inferred from the share of rollouts in flight that are not at the engines",
        )
    return None, ""


def _engine_reasons(engines: Engines | None) -> Iterator[str]:
    if engines is None:
        return
    figures = [f"{engines.running:.0f} requests run" if engines.running is not None else ""]
    figures.append(f"{engines.waiting:.0f} wait" if engines.waiting is not None else "")
    figures.append(f"the cache is {percent(engines.cache)} full" if engines.cache is not None else "")
    yield (
        f"at the engines {', '.join(filter(None, figures))}; they were full "
        "in "
        f"{percent(engines.full_share)} of {engines.looks} samples"
    )


# ------------------------------------------------------------------------------------------------------------
# doubts


def _doubts(times: Times) -> Iterator[str]:
    if times.steps < STEPS_SURE:
        yield f"only {times.steps} steps"
    waits, held_back = times.parts[StepPart.WAIT].share, held_back_share(times)
    for what, share in (
        ("the wait of the trainer", waits),
        ("the time that batches are held back", held_back),
    ):
        if share is not None and abs(share - WAITS) < TIE_SHARE:
            yield f"{what}, {percent(share)}, is near the threshold of {percent(WAITS)}"
    alike = _alike(times.waits, waits >= WAITS)
    if alike < AGREE:
        yield f"only {percent(alike)} of the steps show this"
    if times.parts[StepPart.OTHER].share >= OTHER_MAX:
        yield f"{percent(times.parts[StepPart.OTHER].share)} of the time is not explained by any measurement"


def _alike(waits: Iterable[float], waiting: bool) -> float:
    return fmean((share >= WAITS) is waiting for share in waits)


def _words(half: Times) -> str:
    return f"{side(half).value} ({percent(half.parts[StepPart.WAIT].share)})"
