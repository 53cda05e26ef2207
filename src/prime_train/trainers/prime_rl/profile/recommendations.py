"""Recommended changes, with the largest gain that each can bring, computed from the run's own times (see
`profile/times.py`).

Speeding up one side shortens a step only down to the time of the other side. `gain` is None if it cannot be
computed. Changes that would gain less than a twentieth are left out.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.advice import Call, Operation
from prime_train.text.invocations import command
from prime_train.trainers.prime_rl.profile.bottlenecks import Bottleneck, percent, seconds
from prime_train.trainers.prime_rl.profile.metric_keys import StepPart
from prime_train.trainers.prime_rl.profile.rollouts import BINDING, CACHE_FULL
from prime_train.trainers.prime_rl.profile.times import Times
from prime_train.trainers.prime_rl.profile.waiting import EngineHeadroom, Side, best_s, engine_headroom, side

GAIN_MIN = 1.05
LOST_MIN = 0.1
"""Minimum share of lost rollouts that is worth a recommendation."""
SAVE_SHARE = 0.05
RARER_MAX = 20
LONG_TAIL = 4.0
MFU_LOW_PCT = 20.0


@dataclass(frozen=True)
class Recommendation:
    """A change to make. `gain` is the factor by which the run becomes faster at most; None if it cannot be
    predicted. `why` is the estimate behind it.
    """

    what: str
    why: str
    gain: float | None = None


def recommend(times: Times, bottleneck: Bottleneck) -> tuple[Recommendation, ...]:
    """Return the recommendations, the largest gain first and those with unknown gain last."""
    sides = {
        Bottleneck.INFERENCE: _inference,
        Bottleneck.TOOLS: _tools,
        Bottleneck.CONCURRENCY: _concurrency,
        Bottleneck.ROLLOUTS: _rollouts,
        Bottleneck.TURNS: _turns,
        Bottleneck.TRAINER: _trainer,
        Bottleneck.CHECKPOINTS: _trainer,
        Bottleneck.BROADCAST: _trainer,
        Bottleneck.BALANCED: _trainer,
    }
    found = [*(sides[bottleneck](times) if bottleneck in sides else ()), *_pauses(times)]
    if bottleneck in (Bottleneck.INFERENCE, Bottleneck.TOOLS, Bottleneck.CONCURRENCY, Bottleneck.ROLLOUTS):
        found += _lost(times)
    found += [*_saves(times), *_broadcast(times)]
    worth = [advice for advice in found if advice.gain is None or advice.gain >= GAIN_MIN]
    return tuple(sorted(worth, key=lambda advice: -(advice.gain or 0.0)))


# ------------------------------------------------------------------------------------------------------------
# rollouts


def _faster_rollouts(times: Times, factor: float) -> float:
    """Return the gain if batches came `factor` times as fast and the trainer stayed the same. At present one
    batch comes per step.
    """
    return times.mean_s / max(times.busy_s, times.mean_s / factor)


def _limit(times: Times) -> str:
    return f"the trainer alone needs {seconds(times.busy_s)} of {seconds(times.mean_s)}"


def _inference(times: Times) -> Iterator[Recommendation]:
    yield Recommendation(
        "twice the inference GPUs",
        f"batches are at best produced twice as fast; {_limit(times)}",
        _faster_rollouts(times, 2),
    )
    busy = times.busy_s / times.mean_s
    if busy < 0.5:
        yield Recommendation(
            "move training GPUs to inference", f"the training GPUs are busy {percent(busy)} of the time"
        )
    short = "orchestrator.train.sampling.max_completion_tokens"
    yield Recommendation(
        f"shorter completions ({short})", "fewer tokens per rollout, with more rollouts at once in proportion"
    )


def _tools(times: Times) -> Iterator[Recommendation]:
    share = times.rollouts.tools_share if times.rollouts is not None else None
    if share is None and times.engines is not None:
        share = times.engines.outside_share
    yield from _more_at_once(times)
    if share is not None:
        factor = 1 / (1 - share / 2)
        why = (
            f"they take {percent(share)} of a rollout; at half that time a rollout is {factor:.1f}x "
            "as "
            f"fast; {_limit(times)}"
        )
        yield Recommendation(
            "make tools and environments twice as fast", why, _faster_rollouts(times, factor)
        )
    yield from _long_tail(times)


def _concurrency(times: Times) -> Iterator[Recommendation]:
    yield from _more_at_once(times)
    yield from _long_tail(times)


def _rollouts(times: Times) -> Iterator[Recommendation]:
    if engine_headroom(times.engines) is EngineHeadroom.MUCH:
        yield from _more_at_once(times)
    look = (
        f"ask an engine: {command(Call(Operation.SSH, 'RUN'))} -- curl -s localhost:8100/metrics | "
        "grep num_requests"
    )
    yield Recommendation(
        "find out what rollouts wait for before you rent more",
        f"{look}; {_limit(times)}",
        _gain(times, times.busy_s),
    )
    yield from _long_tail(times)


def _pauses(times: Times) -> Iterator[Recommendation]:
    if not times.long_waits:
        return
    share = percent(times.long_waits_s / times.mean_s)
    why = (
        f"{times.long_waits} of {times.steps} waits were far longer than the others: {share} of all the time"
    )
    what = "evaluate less often, if evaluations are the long waits (orchestrator.eval.interval)"
    yield Recommendation(what, why, _gain(times, times.mean_s - times.long_waits_s))


def _more_at_once(times: Times) -> Iterator[Recommendation]:
    """Recommend as many more concurrent rollouts as fit into the cache; twice as many if its use is unknown.
    The speed-up is at most that factor.
    """
    engines = times.engines
    cache = engines.cache if engines is not None else None
    factor = min(CACHE_FULL / cache, 8.0) if cache else 2.0
    if factor < GAIN_MIN:
        return
    factor = min(factor, times.mean_s / times.busy_s) if times.busy_s > 0 else factor
    cache_text = f"the cache is {percent(cache)} full" if cache is not None else "with twice as many"
    why = f"{cache_text}; if tools and engines keep up; {_limit(times)}"
    yield Recommendation(
        f"run more rollouts at once{_setting(times, factor)}", why, _faster_rollouts(times, factor)
    )


def _setting(times: Times, factor: float) -> str:
    engines = times.engines
    if engines is None or not engines.inflight:
        return " (orchestrator.concurrency.initial_inflight)"
    if engines.allowed is None or engines.inflight >= BINDING * engines.allowed:
        wanted = math.ceil(engines.inflight * factor)
        return f" ({wanted} instead of {engines.inflight:.0f}: orchestrator.concurrency.initial_inflight)"
    others = "orchestrator.max_off_policy_steps and tasks_per_minute"
    return f" (only {engines.inflight:.0f} of {engines.allowed:.0f} allowed are in flight: look at {others})"


def _long_tail(times: Times) -> Iterator[Recommendation]:
    rollouts = times.rollouts
    if rollouts is None or not rollouts.rollout_s or rollouts.longest_s is None:
        return
    if rollouts.longest_s >= LONG_TAIL * rollouts.rollout_s:
        tail = (
            f"the longest took {seconds(rollouts.longest_s)}, the mean {seconds(rollouts.rollout_s)}; "
            "a group waits for its longest"
        )
        yield Recommendation("set a time limit for rollouts", tail)


def _lost(times: Times) -> Iterator[Recommendation]:
    rollouts = times.rollouts
    if rollouts is None:
        return
    shares = (
        ("end in errors", rollouts.failed_share),
        ("are dropped because their weights are too old", rollouts.dropped_share),
    )
    for what, share in shares:
        if share is not None and LOST_MIN <= share < 1:
            why = f"{percent(share)} of the rollouts {what}; {_limit(times)}"
            yield Recommendation("lose fewer rollouts", why, _faster_rollouts(times, 1 / (1 - share)))


# ------------------------------------------------------------------------------------------------------------
# trainer


def _own_s(times: Times) -> float | None:
    """Return the seconds that rollouts need for a batch, or None. If the trainer waits, it gets one batch a
    step, so a step's time is their pace.
    """
    if side(times) is Side.TRAINER:
        return times.mean_s
    return times.rollouts.own_s if times.rollouts is not None else None


def _without(times: Times, spared_s: float) -> float | None:
    """Return the gain if the trainer's own part of a step became `spared_s` seconds shorter and the rollouts
    stayed the same.
    """
    return _gain(times, best_s(times.busy_s - spared_s, _own_s(times)))


def _gain(times: Times, left_s: float) -> float | None:
    return times.mean_s / left_s if left_s > 0 else None


def _trainer(times: Times) -> Iterator[Recommendation]:
    train_s, own_s = times.mean_of(StepPart.TRAIN), _own_s(times)
    paced = times.rollouts is not None and times.rollouts.paced
    pace = (
        f"rollouts need {seconds(own_s)}"
        if own_s is not None and paced
        else "if rollouts keep up, which the metrics do not show"
    )
    why = f"forward, backward and optimizer take {seconds(train_s)} of {seconds(times.mean_s)}; {pace}"
    gain = _without(times, train_s / 2)
    if gain is None or gain < GAIN_MIN:
        return
    yield Recommendation("twice the training GPUs", why, gain)
    if times.mfu_pct is not None and times.mfu_pct < MFU_LOW_PCT:
        yield Recommendation(
            "turn off offloading if memory allows (trainer.model.optim_cpu_offload, ac_offloading)",
            f"training uses {times.mfu_pct:.0f} % of what the GPUs can compute (MFU)",
        )


def _turns(times: Times) -> Iterator[Recommendation]:
    own_s = _own_s(times)
    why = (
        f"in parallel a step takes the longer of {seconds(times.busy_s)} (trainer) "
        "and "
        f"{seconds(own_s or 0.0)} (rollouts)"
    )
    yield Recommendation(
        "let rollouts run further ahead (orchestrator.max_off_policy_steps)", why, _without(times, 0.0)
    )


def _saves(times: Times) -> Iterator[Recommendation]:
    cost_s = times.mean_of(StepPart.SAVE)
    if cost_s <= SAVE_SHARE * times.mean_s:
        return
    rarer = min(RARER_MAX, math.ceil(cost_s / times.mean_s / SAVE_SHARE))
    every = (
        f"{times.save_every * rarer} steps instead of {times.save_every}"
        if times.save_every
        else f"{rarer} times as many steps"
    )
    why = (
        f"saves take {percent(cost_s / times.mean_s)} of the time; the status of the run weighs "
        "that against what a preemption costs"
    )
    yield Recommendation(
        f"save every {every} (checkpoints.every_steps)", why, _without(times, cost_s * (1 - 1 / rarer))
    )


def _broadcast(times: Times) -> Iterator[Recommendation]:
    """Recommend a faster broadcast. Engines may pause while they receive new weights, so both sides save the
    time.
    """
    cost_s = times.mean_of(StepPart.BROADCAST)
    if cost_s <= SAVE_SHARE * times.mean_s:
        return
    left_s = best_s(times.busy_s - cost_s, max(0.0, (_own_s(times) or 0.0) - cost_s))
    what = "send weights faster (weight_broadcast.type nccl, if it is filesystem and no LoRA is trained)"
    yield Recommendation(
        what, f"sending takes {percent(cost_s / times.mean_s)} of the time", _gain(times, left_s)
    )
