"""Chooses a machine for a training from those for rent: what each would need and cost, why it is unsuitable,
and the best one.

For a config the order is that in which a launch would try them. For a model alone, of which nobody has chosen
the kinds of GPU, machines on which it certainly fits come first.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.estimate import gpus
from prime_train.estimate.cost.duration import Between
from prime_train.estimate.gpus import Gpu
from prime_train.estimate.job import JobDescription, ModelTraining
from prime_train.estimate.memory.phases import Method, Need
from prime_train.estimate.run_costs import MachineCosts, RunCosts, run_costs
from prime_train.market.quotes import Market
from prime_train.market.ranking import NOTHING_KNOWN
from prime_train.market.reputation import Exclusion
from prime_train.market.step_times import StepTime, TimeSource
from prime_train.runs.forecast import Fit, GpuNeed, Kind, kind_of, usable_bytes
from prime_train.runs.offer import Offer, memory_gb
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec

COUNTS = (1, 2, 4, 8, 16)
"""The GPU counts that a config can request."""
FIXED_WEIGHT = 3
"""How many fixable mismatches weigh as much as one that no option can fix."""
NEAREST_MAX = 3


class Against(StrEnum):
    """Kinds of reasons to exclude a machine, in the order in which they are reported."""

    NO_GPU = "no_gpu"
    KIND = "kind"
    COUNT = "count"
    VARIANT = "variant"
    SPOT = "spot"
    HINDRANCE = "hindrance"
    DISK = "disk"
    UNKNOWN = "unknown"
    MEMORY = "memory"
    PRICE = "price"


@dataclass(frozen=True)
class Mismatch:
    """A reason to exclude a machine. `why` has the same wording for all machines with that reason, so that
    they can be counted; `fix` names the settings that would help.
    """

    against: Against
    why: str
    fix: Advice = field(default=Advice())


@dataclass(frozen=True)
class MachineConstraints:
    """The user's constraints. `gpus` None: any number. `kinds` empty: any kind. `usd_per_hour_max` is for the
    entire box.
    """

    gpus: int | None = None
    usd_per_hour_max: float | None = None
    spot: Spot = Spot.PREFER
    kinds: tuple[str, ...] = ()
    disk_gib: int = 1


@dataclass(frozen=True)
class Candidate:
    """A machine with what this job would need and cost on it. `variant`: the number of the config's variant
    that it would get; 0: none. `costs`: None if they are not known. `gpu_need`: the memory that each of its
    GPUs must have; None: not known. `exclusion`: why it comes last although it fits.
    """

    offer: Offer
    job: JobDescription
    against: tuple[Mismatch, ...]
    variant: int = 0
    costs: MachineCosts | None = None
    gpu_need: GpuNeed | None = None
    exclusion: Exclusion | None = None

    @cached_property
    def gpu(self) -> Gpu | None:
        return gpus.facts(self.offer.gpu, self.offer.socket)

    @cached_property
    def need(self) -> Need | None:
        """Return what the job needs of each GPU, by phase; None for a machine without GPUs."""
        return self.job.phases if self.offer.gpu_count > 0 else None

    @property
    def fit(self) -> Fit:
        if self.costs is not None and self.costs.quote.fit is not None:
            return self.costs.quote.fit
        return Fit.NO if self.gpu_need is None else self.gpu_need.fit(memory_gb(self.offer))

    @property
    def time_s(self) -> Between | None:
        """Return the seconds from the order to the last durable step; None if they are not known."""
        return self.costs.full.time if self.costs is not None and self.costs.full is not None else None

    @property
    def usd(self) -> Between | None:
        """Return the dollars of the entire job; None if they are not known."""
        return self.costs.full.usd if self.costs is not None and self.costs.full is not None else None

    @property
    def expected_usd(self) -> float:
        """Return the dollars to expect; infinite if they are not known."""
        return math.inf if self.costs is None else self.costs.quote.usd


@dataclass(frozen=True)
class Placement:
    """The result. `able` are the machines without a mismatch, the best first, and last those that failed
    before. `left_out` are the others. `is_launch`: they are those of a config, in the order in which a launch
    would try them.
    """

    able: tuple[Candidate, ...]
    left_out: tuple[Candidate, ...]
    is_launch: bool = False

    @property
    def best(self) -> Candidate | None:
        """Return the machine to take: of a config that which a launch would rent, if the training is expected
        to fit it; else the first of those that fit even at the upper end of the band. None if there is none.
        """
        if self.is_launch:
            return self.able[0] if self.able and self.able[0].fit.is_expected else None
        return self.certain[0] if self.certain else None

    @property
    def runner_up(self) -> Candidate | None:
        """Return the next machine of a different type; the same type in another place is not an alternative.
        None if there is none.
        """
        best, others = self.best, self.able if self.is_launch else self.certain
        return next((one for one in others[1:] if best is not None and _differs(one.offer, best.offer)), None)

    @property
    def certain(self) -> tuple[Candidate, ...]:
        """Return the suitable machines that fit even at the upper end of the band."""
        return tuple(one for one in self.able if one.fit is Fit.YES)

    @property
    def nearest(self) -> tuple[Candidate, ...]:
        """Return up to `NEAREST_MAX` nearly suitable machines if none certainly fits: those with the smallest
        weight of mismatches, one for each set of reasons, ordered by missing memory and price.
        """
        if self.best is not None:
            return ()
        priced = sorted((one for one in (*self.able, *self.left_out) if one.usd is not None), key=_distance)
        found = {frozenset(objection.against for objection in one.against): one for one in reversed(priced)}
        first = [one for one in priced if one in found.values() and _weight(one) == _weight(priced[0])]
        return tuple(first[:NEAREST_MAX])


def none_of(offer: Offer) -> int:
    """Return the variant that an offer gets of a config without variants."""
    del offer
    return 0


def choose(
    offers: Sequence[Offer],
    job: ModelTraining,
    constraints: MachineConstraints,
    variant_for: Callable[[Offer], int] = none_of,
    *,
    market: Market = NOTHING_KNOWN,
    image: str | None = None,
) -> Placement:
    """Return the choice for a model, which contains every offer once, in the order of the ranking, but for
    machines on which the training certainly fits, which come first. `variant_for` returns the number of the
    config's variant that an offer gets, 0 if it fits none; then the offer is left out. `market`: what this
    account has seen of machines; `image`: the one that the config names.
    """
    judged = []
    for offer in offers:
        number, placed = variant_for(offer), job.on(max(1, offer.gpu_count))
        against = objections(
            offer, placed, constraints, job, fits_variant=bool(number) or variant_for is none_of
        )
        judged.append(Candidate(offer, placed, tuple(against), number))
    work = replace(market.work, steps=1, step_times=dict(_times(judged)), needs=_needs(judged))
    costs = run_costs(offers, ANY.model_copy(update={"image": image}), replace(market, work=work))
    known = {one.offer: (place, one) for place, one in enumerate(costs.machines)}
    able: list[Candidate] = []
    left_out: list[Candidate] = []
    for one in judged:
        machine_costs = (
            known[one.offer][1] if one.offer in known and work.step_time(one.offer) is not None else None
        )
        (left_out if one.against else able).append(_with_costs(one, machine_costs, costs))
    able.sort(key=lambda one: (one.exclusion is not None, list(Fit).index(one.fit), known[one.offer][0]))
    return Placement(tuple(able), tuple(left_out))


def choose_for_config(
    costs: RunCosts,
    jobs: Sequence[JobDescription],
    constraints: MachineConstraints,
    variant_for: Callable[[Offer], int],
) -> Placement:
    """Return the choice for a config, in the order in which a launch would try the machines. `jobs`: those of
    its variants; `variant_for`: the number of the variant that an offer gets, 0 if there is none. The
    constraints only say why others are left out.
    """
    able: list[Candidate] = []
    left_out: list[Candidate] = []
    for one in costs.machines:
        number = variant_for(one.offer)
        candidate = Candidate(
            one.offer, jobs[max(0, number - 1)], tuple(_wishes(one.offer, constraints)), number
        )
        (left_out if candidate.against else able).append(_with_costs(candidate, one, costs))
    for left in costs.ranking.left_out:
        number = variant_for(left.offer)
        job = jobs[max(0, number - 1)]
        has_variant = bool(number) or variant_for is none_of
        against = objections(left.offer, job, constraints, fits_variant=has_variant)
        against = against or [Mismatch(Against.HINDRANCE, f"that cannot be rented (it {left.why})")]
        left_out.append(_with_costs(Candidate(left.offer, job, tuple(against), number), None, costs))
    return Placement(tuple(able), tuple(left_out), is_launch=True)


ANY = HardwareSpec(disk_gib=1)
"""Hardware that every machine has."""
NO_VARIANT = Mismatch(Against.VARIANT, "that fit no variant of the config")


def _with_costs(one: Candidate, costs: MachineCosts | None, known: RunCosts) -> Candidate:
    need = known.market.work.need(one.offer)
    if need is None and not known.market.work.needs and one.offer.gpu_count > 0:
        need = one.job.gpu_need(one.offer.gpu_count)
    return replace(one, costs=costs, gpu_need=need, exclusion=known.ranking.exclusions.get(one.offer))


def _times(judged: Sequence[Candidate]) -> Iterator[tuple[Kind, StepTime]]:
    """Yield how long all of the training takes on each kind of machine whose speed is known."""
    for one in judged:
        if one.gpu is not None and one.offer.gpu_count > 0:
            took = one.job.step_s(one.gpu, one.offer.gpu_count)
            yield (
                kind_of(one.offer),
                StepTime(took.expected, TimeSource.ESTIMATED, factor=took.high / took.expected),
            )


def _needs(judged: Sequence[Candidate]) -> tuple[GpuNeed, ...]:
    counts = {one.offer.gpu_count: one.job for one in judged if one.offer.gpu_count > 0}
    return tuple(job.gpu_need(count) for count, job in counts.items())


def objections(
    offer: Offer,
    job: JobDescription,
    constraints: MachineConstraints,
    model: ModelTraining | None = None,
    *,
    fits_variant: bool = True,
) -> list[Mismatch]:
    """Return all mismatches of the offer, in the order of `Against`. `model`: the training that could be
    placed otherwise; None: a config's. `fits_variant`: the offer fits a variant of the config, or it has
    none.
    """
    if not offer.gpu or offer.gpu_count < 1:
        return [Mismatch(Against.NO_GPU, "without a GPU"), *([] if fits_variant else [NO_VARIANT])]
    found = [*_against_constraints(offer, constraints), *_against_machine(offer, constraints)]
    if memory_gb(offer) and not job.gpu_need(offer.gpu_count).fit(memory_gb(offer)).is_expected:
        fix = _more_memory(offer, model) if model is not None else Advice()
        found.append(Mismatch(Against.MEMORY, "with too little GPU memory", fix))
    most_usd = constraints.usd_per_hour_max
    if most_usd is not None and offer.usd_per_hour > most_usd:
        cents = math.ceil(round(offer.usd_per_hour * 100, 6))
        found.append(
            Mismatch(
                Against.PRICE,
                f"above ${most_usd:,.2f}/h",
                _setting(SettingAdvice.USD_PER_HOUR_MAX, f"{cents / 100:.2f}"),
            )
        )
    if not fits_variant:
        found.append(NO_VARIANT)
    return sorted(found, key=lambda one: list(Against).index(one.against))


def _wishes(offer: Offer, constraints: MachineConstraints) -> list[Mismatch]:
    """Return what speaks against a machine that a launch would take: wishes that a config cannot express."""
    return (
        [
            one
            for one in _against_constraints(offer, constraints)
            if one.against in (Against.KIND, Against.COUNT)
        ]
        if offer.gpu
        else []
    )


def _against_constraints(offer: Offer, constraints: MachineConstraints) -> list[Mismatch]:
    found = []
    if constraints.kinds and not any(
        gpus.plain(kind) in gpus.names(offer.gpu, offer.socket) for kind in constraints.kinds
    ):
        found.append(
            Mismatch(
                Against.KIND,
                f"not {' or '.join(constraints.kinds)}",
                _setting(SettingAdvice.KIND, gpus.family(offer.gpu)),
            )
        )
    if offer.gpu_count not in COUNTS:
        found.append(Mismatch(Against.COUNT, "with a number of GPUs that a config cannot request"))
    elif constraints.gpus is not None and offer.gpu_count != constraints.gpus:
        found.append(
            Mismatch(
                Against.COUNT,
                f"with another number of GPUs than {constraints.gpus}",
                _setting(SettingAdvice.GPUS, offer.gpu_count),
            )
        )
    if constraints.spot is Spot.ONLY and not offer.spot:
        found.append(Mismatch(Against.SPOT, "not spot", Advice("without ", Option(SettingAdvice.SPOT))))
    if constraints.spot is Spot.NEVER and offer.spot:
        found.append(Mismatch(Against.SPOT, "spot", Advice("without ", Option(SettingAdvice.ON_DEMAND))))
    return found


def _against_machine(offer: Offer, constraints: MachineConstraints) -> list[Mismatch]:
    found = []
    if offer.hindrance:
        found.append(
            Mismatch(Against.HINDRANCE, f"that cannot be rented (it {offer.hindrance.split(',')[0]})")
        )
    if offer.disk_gib < constraints.disk_gib:
        found.append(
            Mismatch(
                Against.DISK,
                f"with less than {constraints.disk_gib:,} GiB of disk",
                _setting(SettingAdvice.DISK_GIB, offer.disk_gib),
            )
        )
    if not gpus.has_bf16(offer.gpu):
        found.append(Mismatch(Against.UNKNOWN, "with a GPU too old for bf16"))
    elif gpus.facts(offer.gpu, offer.socket) is None or offer.gpu_gb < 1:
        found.append(Mismatch(Against.UNKNOWN, "with a GPU of unknown speed or memory"))
    return found


def _setting(setting: SettingAdvice, value: object) -> Advice:
    return Advice(Option(setting, str(value)))


def _more_memory(offer: Offer, job: ModelTraining) -> Advice:
    """Return the settings with which the job would certainly fit, if there are any."""

    def is_enough(job: ModelTraining, count: int) -> bool:
        return job.on(count).gpu_need(count).fit(memory_gb(offer)) is Fit.YES

    count = next((each for each in COUNTS if is_enough(job, each)), None)
    ways = [Option(SettingAdvice.GPUS, str(count))] if count is not None and count > offer.gpu_count else []
    lora = replace(job, training=replace(job.training, method=Method.LORA))
    if job.training.method is Method.FULL and is_enough(lora, offer.gpu_count):
        ways.append(Option(SettingAdvice.LORA))
    return Advice(*[part for way in ways for part in (" or ", way)][1:])


def machine(offer: Offer) -> str:
    """Return the machine's name, such as 8x H100; with the socket only if it makes the GPU slower."""
    slower = gpus.facts(offer.gpu, offer.socket) != gpus.facts(offer.gpu)
    family = gpus.family(offer.gpu).replace("_", " ")
    return f"{offer.gpu_count}x {family}" + (f" {offer.socket}" if slower else "")


def _differs(one: Offer, other: Offer) -> bool:
    return (one.gpu, one.gpu_gb, one.gpu_count, one.spot, one.socket) != (
        other.gpu,
        other.gpu_gb,
        other.gpu_count,
        other.spot,
        other.socket,
    )


def _distance(one: Candidate) -> tuple[float, ...]:
    return (_weight(one), _shortfall(one), one.offer.usd_per_hour)


def _weight(one: Candidate) -> int:
    """Return the weight of all mismatches; one that no option can fix weighs more."""
    return sum(1 if objection.fix else FIXED_WEIGHT for objection in one.against)


def _shortfall(one: Candidate) -> float:
    """Return the needed memory relative to the available memory; 1 if it is enough."""
    if one.gpu_need is None or one.offer.gpu_gb < 1:
        return math.inf
    return max(1.0, one.gpu_need.expected_bytes / usable_bytes(one.offer.gpu_gb))
