"""The advice of `find`: the machine to take and why, the next best, what would help if none fits, and how
many were excluded.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from prime_train.advice import Option, SettingAdvice
from prime_train.estimate.cost.training_speed import RL_TIMES
from prime_train.estimate.job import ModelTraining
from prime_train.estimate.memory.phases import Serving
from prime_train.estimate.ranges import size_range, time_range, usd_range
from prime_train.planning.market_rows import excluded_rows
from prime_train.planning.placement import Against, Candidate, MachineConstraints, Placement, machine
from prime_train.spec.choices import Spot
from prime_train.text.invocations import flag, worded

REASONS_MAX = 6
FASTER_MIN = 1.2
"""Minimum factor of speed that is worth mentioning; a smaller gain is within the uncertainty of the
estimates.
"""


def advice(
    placement: Placement,
    job: ModelTraining,
    constraints: MachineConstraints,
    *,
    limit: int,
    variants: Sequence[str] = (),
    notes: Sequence[tuple[str, str]] = (),
    ways: Sequence[str] = (),
) -> Iterator[tuple[str, str]]:
    """Yield each line as a pair of label and text. `limit` is the number of machines shown above the lines,
    `variants` are those of the config, in words; `notes`: further lines; `ways`: what would fit if nothing
    does.
    """
    more = len(placement.able) - limit
    if more > 0:
        yield "more", f"{more} more like these; {_flag(SettingAdvice.LIMIT, len(placement.able))} shows all"
    if variants:
        yield "variants", ", ".join(variants)
    yield from (
        _with_best(placement, placement.best, constraints, variants)
        if placement.best is not None
        else _without_best(placement, ways)
    )
    for line in excluded_rows(
        {one.offer: one.exclusion for one in placement.able if one.exclusion is not None}
    ):
        yield "comes last", line
    if placement.left_out:
        yield "left out", _grouped(placement)
    yield from notes
    yield "assumed", assumptions(job, constraints)


def left_out(placement: Placement) -> Counter[str]:
    """Return how many machines were excluded, by the first reason for each."""
    return Counter(one.against[0].why for one in placement.left_out)


def needed(one: Candidate) -> str:
    """Return the GiB needed on each GPU, from the low to the high end of the band, or "?" if they are not
    known.
    """
    return "?" if one.gpu_need is None else size_range(one.gpu_need.low_bytes, one.gpu_need.high_bytes)


def hardware(one: Candidate, constraints: MachineConstraints) -> str:
    """Return the `hardware` section of a config that requests this machine."""
    offer = one.offer
    spot = Spot.ONLY if offer.spot else Spot.NEVER
    return (
        f"{{provider: {offer.provider}, gpus: [{offer.gpu}], count: {offer.gpu_count}, spot: "
        f"{spot}, "
        f"disk_gib: {constraints.disk_gib}}}"
    )


def assumptions(job: ModelTraining, constraints: MachineConstraints) -> str:
    """Return the assumptions behind the figures."""
    guessed = "The model's architecture is estimated from its size. " if job.model.guessed else ""
    bits = round(job.training.weight_bytes * 8)
    times = f", {RL_TIMES:.0f} times that for RL" if job.rl else ""
    served = f"rollouts: 16-bit weights and {Serving().sequences} sequences at once; " if job.rl else ""
    return (
        f"{guessed}Memory: {bits}-bit weights and AdamW, sharded over the GPUs, recomputed activations, one "
        f"sequence per GPU; {served}"
        f"{constraints.disk_gib:,} GiB of disk. Time: speeds of these GPUs in published trainings{times}. "
        "Options change all of these "
        f"assumptions."
    )


def _with_best(
    placement: Placement, best: Candidate, constraints: MachineConstraints, variants: Sequence[str]
) -> Iterator[tuple[str, str]]:
    gets = f", with {variants[best.variant - 1]}" if best.variant else ""
    yield "take", f"{_named(best)}{gets}: {_outcome(best)}"
    if best.costs is not None:
        yield "expected", best.costs.quote.why
    yield "why", _why(placement, best)
    other = placement.runner_up
    if other is not None:
        yield "next best", f"{_named(other)}: {_outcome(other)}, {_compared(other, best)}"
        if other.costs is not None:
            yield "expected", other.costs.quote.why
    if not variants:
        yield "hardware", hardware(best, constraints)


def _why(placement: Placement, best: Candidate) -> str:
    if not placement.is_launch:
        return f"{_among(placement, best)} even at the upper end of the estimated need, {_memory(best)}"
    late = (
        "; no machine for rent is expected to be done by the deadline"
        if best.costs is not None and best.costs.quote.is_late
        else ""
    )
    failed = (
        "; something about it failed before, but that is so for every machine that fits"
        if best.exclusion is not None
        else ""
    )
    return f"the first in the order in which a launch tries machines; it needs {_memory(best)}{late}{failed}"


def _among(placement: Placement, best: Candidate) -> str:
    trusted = [one for one in placement.certain if one.exclusion is None]
    if best.exclusion is not None:
        return "something about it failed before, but that is so for every machine that fits"
    if len(trusted) == len(placement.certain):
        return (
            f"the least expected total of {len(trusted)} that fit"
            if len(trusted) > 1
            else "the only machine that fits"
        )
    return (
        f"the least expected total of {len(trusted)} that did not fail before and fit"
        if len(trusted) > 1
        else ("the only machine that did not fail before and fits")
    )


def _without_best(placement: Placement, ways: Sequence[str]) -> Iterator[tuple[str, str]]:
    nearest = placement.nearest
    if placement.is_launch and placement.able:
        first = placement.able[0]
        memory = first.costs.quote.memory if first.costs is not None else ""
        yield "take", f"nothing certain: a launch would rent {_named(first)}, but {memory}"
    elif not nearest:
        yield "take", "nothing: no machine with a known GPU is for rent now"
    elif not nearest[0].against:
        yield "take", "nothing certain: the machines that fit have little spare memory and may run out of it"
        yield (
            "nearest",
            f"{_named(nearest[0])}: needs {_memory(nearest[0])}; try some steps first, or a shorter "
            f"{_flag(SettingAdvice.SEQ_LEN)}",
        )
    else:
        yield (
            "take",
            "nothing: no machine for rent meets all requirements" + ("; what would do:" if ways else ""),
        )
        for way in ways:
            yield "", way
        for place, one in enumerate(nearest):
            yield "or" if place else "nearest", f"{_named(one)}, {_outcome(one)}: {_obstacles(one)}"


def _obstacles(one: Candidate) -> str:
    whys = [
        f"needs {_memory(one)}" if objection.against is Against.MEMORY else objection.why
        for objection in one.against
    ]
    fixes = [worded(objection.fix) for objection in one.against]
    return "; ".join(f"{why}, try {fix}" if fix else why for why, fix in zip(whys, fixes, strict=True))


def _flag(setting: SettingAdvice, value: object = "") -> str:
    return flag(Option(setting, str(value)))


def _grouped(placement: Placement) -> str:
    groups = left_out(placement).most_common()
    shown = [f"{count} {why}" for why, count in groups[:REASONS_MAX]]
    rest = sum(count for _, count in groups[REASONS_MAX:])
    return f"{len(placement.left_out)}: " + ", ".join(
        [*shown, *([f"{rest} for other reasons"] if rest else [])]
    )


def _named(one: Candidate) -> str:
    offer = one.offer
    sold = "spot" if offer.spot else "on-demand"
    return (
        f"{machine(offer)} {sold} in {offer.region or 'an unknown region'} "
        "at "
        f"${offer.usd_per_hour:.2f}/h from {offer.provider}"
    )


def _outcome(one: Candidate) -> str:
    return (
        f"{time_range(one.time_s)} and {usd_range(one.usd)}" if one.time_s and one.usd else "of unknown speed"
    )


def _compared(other: Candidate, best: Candidate) -> str:
    """Return why this machine is not the best, and its advantages."""
    if other.exclusion is not None and best.exclusion is None:
        return f"but it comes last because of the {other.exclusion.place.axis}"
    times = other.expected_usd / best.expected_usd
    lost = f"{times:.1f} times the money" if times >= 1.05 else "about the same money"
    faster = best.time_s.expected / other.time_s.expected if best.time_s and other.time_s else 1.0
    gains = [f"{faster:.1f} times as fast"] if faster >= FASTER_MIN else []
    gains += ["never preempted"] if best.offer.spot and not other.offer.spot else []
    return f"{lost}, but {' and '.join(gains)}" if gains else lost


def _memory(one: Candidate) -> str:
    return f"{needed(one)} of the {one.offer.gpu_gb} GB of each GPU"
