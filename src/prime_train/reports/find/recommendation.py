"""The advice of `find`: the machine to take and why, the next best, what would help if none fits, and how many were excluded."""

from collections import Counter
from collections.abc import Iterator

from prime_train.core.offers import Offer
from prime_train.core.spec import Spot
from prime_train.estimate import gpus
from prime_train.estimate.cost.duration import SPOT_SHARE, START_S
from prime_train.estimate.cost.training_speed import RL_TIMES
from prime_train.estimate.memory.phases import Serving
from prime_train.estimate.placement import Against, Candidate, Choice, Job, Wishes
from prime_train.reports.find.words import percent_range, size_range, time_range, usd_range

REASONS_MAX = 6
FASTER_MIN = 1.2
"""A smaller gain in speed is within the uncertainty of the estimates."""


def advice(choice: Choice, job: Job, wishes: Wishes, *, limit: int) -> Iterator[tuple[str, str]]:
    """Yield each line as a pair of label and text. `limit` is the number of machines shown above the lines."""
    more = len(choice.able) - limit
    if more > 0:
        yield "more", f"{more} more like these; --limit {len(choice.able)} shows all"
    yield from _with_best(choice, choice.best, wishes) if choice.best is not None else _without_best(choice)
    if choice.left_out:
        yield "left out", _grouped(choice)
    yield "assumed", assumptions(job, wishes)


def left_out(choice: Choice) -> Counter[str]:
    """Return the number of excluded machines for each first reason."""
    return Counter(one.against[0].why for one in choice.left_out)


def machine(offer: Offer) -> str:
    """Return the machine's name, such as 8x H100; with the socket only if it makes the GPU slower."""
    slower = gpus.facts(offer.gpu, offer.socket) != gpus.facts(offer.gpu)
    family = gpus.family(offer.gpu).replace("_", " ")
    return f"{offer.gpu_count}x {family}" + (f" {offer.socket}" if slower else "")


def needed(one: Candidate) -> str:
    """Return the GiB needed on each GPU, from the low to the high end of the band, or "?" if they are not known."""
    return "?" if one.need is None else size_range(one.need.low, one.need.high)


def hardware(one: Candidate, wishes: Wishes) -> str:
    """Return the `hardware` section of a config that requests this machine."""
    offer = one.offer
    spot = Spot.ONLY if offer.spot else Spot.NEVER
    return f"{{provider: {offer.provider}, gpus: [{offer.gpu}], count: {offer.gpu_count}, spot: {spot}, disk_gib: {wishes.disk_gib}}}"


def assumptions(job: Job, wishes: Wishes) -> str:
    """Return the assumptions behind the figures."""
    guessed = "The shape of the model is guessed from its size. " if job.model.guessed else ""
    bits = round(job.training.weight_bytes * 8)
    times = f", {RL_TIMES:.0f} times that for RL" if job.rl else ""
    served = f"roll-outs: 16-bit weights and {Serving().sequences} sequences at once; " if job.rl else ""
    return (
        f"{guessed}Memory: {bits}-bit weights and AdamW, sharded over the GPUs, activations recomputed, one sequence a GPU; {served}"
        f"{wishes.disk_gib:,} GiB of disk. Time: what such GPUs reach in published trainings{times}, "
        f"{START_S.low / 60:.0f} to {START_S.high / 60:.0f} min to start; spot adds {percent_range(SPOT_SHARE)} for preemptions. "
        f"See --help for what changes them."
    )


def _with_best(choice: Choice, best: Candidate, wishes: Wishes) -> Iterator[tuple[str, str]]:
    yield "take", f"{_named(best)}: {_outcome(best)}"
    among = f"the least expected total of {len(choice.certain)} that fit" if len(choice.certain) > 1 else "the only one that fits"
    yield "why", f"{among} even at the upper end of what is needed, {_memory(best)}"
    other = choice.runner_up
    if other is not None:
        yield "next best", f"{_named(other)}: {_outcome(other)}, {_compared(other, best)}"
    yield "hardware", hardware(best, wishes)


def _without_best(choice: Choice) -> Iterator[tuple[str, str]]:
    near = choice.nearest
    if not near:
        yield "take", "nothing: there is no machine with a GPU we know for rent now"
    elif not near[0].against:
        yield "take", "nothing for certain: what fits is tight, and may run out of memory"
        yield "nearest", f"{_named(near[0])}: needs {_memory(near[0])}; try some steps first, or a shorter --seq-len"
    else:
        yield "take", "nothing: no machine for rent meets all of it"
        for place, one in enumerate(near):
            yield "or" if place else "nearest", f"{_named(one)}, {_outcome(one)}: {_obstacles(one)}"


def _obstacles(one: Candidate) -> str:
    whys = [f"needs {_memory(one)}" if objection.against is Against.MEMORY else objection.why for objection in one.against]
    fixes = [objection.fix for objection in one.against]
    return "; ".join(f"{why}, try {fix}" if fix else why for why, fix in zip(whys, fixes, strict=True))


def _grouped(choice: Choice) -> str:
    groups = left_out(choice).most_common()
    told = [f"{count} {why}" for why, count in groups[:REASONS_MAX]]
    rest = sum(count for _, count in groups[REASONS_MAX:])
    return f"{len(choice.left_out)}: " + ", ".join([*told, *([f"{rest} for other reasons"] if rest else [])])


def _named(one: Candidate) -> str:
    offer = one.offer
    sold = "spot" if offer.spot else "on-demand"
    return f"{machine(offer)} {sold} in {offer.region or 'a place not told'} at ${offer.usd_per_hour:.2f}/h"


def _outcome(one: Candidate) -> str:
    return f"{time_range(one.time_s)} and {usd_range(one.usd)}" if one.time_s and one.usd else "of unknown speed"


def _compared(other: Candidate, best: Candidate) -> str:
    """Return why this machine is not the best, and its advantages."""
    times = other.expected_usd / best.expected_usd
    lost = f"{times:.1f} times the money" if times >= 1.05 else "about the same money"
    faster = best.time_s.expected / other.time_s.expected if best.time_s and other.time_s else 1.0
    gains = [f"{faster:.1f} times as fast"] if faster >= FASTER_MIN else []
    gains += ["never taken away"] if best.offer.spot and not other.offer.spot else []
    return f"{lost}, but {' and '.join(gains)}" if gains else lost


def _memory(one: Candidate) -> str:
    return f"{needed(one)} of the {one.offer.gpu_gb} GB of each GPU"
