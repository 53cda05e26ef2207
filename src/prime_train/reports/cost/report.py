"""What a training costs: for each machine the bills of the full run and of the smoke run, and the source of the step time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from prime_train.core.market.quotes import Market
from prime_train.core.offers import Offer, variant_title
from prime_train.core.spec import HardwareSpec, RunSpec
from prime_train.estimate import gpus
from prime_train.estimate.cost.bill import Amount, Bill, Known, Rate, StepTime, full_run, smoke_run
from prime_train.estimate.cost.duration import Between
from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.reports.cost.machine import Machine
from prime_train.reports.cost.seen import MeasuredKind, measured, measured_kinds, seen_of
from prime_train.rules.hardware.host_bytes import disk_bytes
from prime_train.rules.hardware.memory_plan import Plan
from prime_train.rules.rule import Subject

OFFERS_MAX = 5


@dataclass(frozen=True)
class Priced:
    machine: Machine
    step: StepTime
    full: Bill
    smoke: Bill | None


@dataclass(frozen=True)
class CostReport:
    title: str
    spec: RunSpec
    priced: tuple[Priced, ...]
    unknown: tuple[str, ...] = ()
    """Machines whose GPU has no known speed."""
    measured: tuple[MeasuredKind, ...] = ()
    """What was measured of the config in earlier runs, on each kind of machine."""

    @property
    def cheapest(self) -> Priced | None:
        """Return the machine with the lowest expected cost of the full run; None if there is none."""
        return min(self.priced, key=lambda one: one.full.usd.expected, default=None)


def cost_report(
    title: str,
    subject: Subject,
    machines: Iterable[Machine],
    *,
    steps: int,
    known: StepTime | None,
    plan: Plan | None,
    market: Market | None = None,
) -> CostReport:
    """Return the report, with the cheapest machines first. `known`: a step time that was given; without it, the one that was measured on
    such a machine counts, as far as the `market` knows it, or else the published speeds of its GPU."""
    assert subject.spec is not None
    priced, unknown, machines = [], [], tuple(machines)
    among = [machine.offer for machine in machines if machine.offer is not None]
    for machine in machines:
        step = known or measured(market, machine) or published(plan, machine)
        if step is None:
            unknown.append(machine.name)
            continue
        amount, seen = amount_of(subject, plan, steps, step), seen_of(market, machine, among)
        priced.append(Priced(machine, step, full_run(amount, machine.rate, seen), smoke_run(amount, machine.rate, seen)))
    return CostReport(
        title, subject.spec, tuple(sorted(priced, key=lambda one: one.full.usd.expected)), tuple(unknown), measured_kinds(market)
    )


def all_of(reports: Sequence[CostReport]) -> CostReport:
    """Return one report on the machines of all, the cheapest first: those of a config's variants."""
    priced = sorted((one for report in reports for one in report.priced), key=lambda one: one.full.usd.expected)
    return replace(reports[0], priced=tuple(priced), unknown=tuple(name for report in reports for name in report.unknown))


def published(plan: Plan | None, machine: Machine) -> StepTime | None:
    """Return the step time estimated from published speeds of the machine's kind of GPU; None if the GPU, the model or the batch is not
    known."""
    gpu = gpus.facts(machine.kind, machine.socket)
    if plan is None or gpu is None or plan.batch_tokens < 1:
        return None
    training = plan.training
    done = Pass(training.seq_len, training.micro_batch, training.method, training.recompute, rl=plan.serve_gpus > 0)
    slow, fast = tokens_per_s(plan.model, done, gpu, machine.count)
    few, most = plan.batch_tokens * plan.shortest, plan.batch_tokens
    tokens = f"{most:,}" if plan.shortest == 1 else f"{few:,.0f} to {most:,}"
    times = ", RL as measured in two published runs (one was 3 times slower)" if done.rl else ""
    at_once = training.seq_len * training.micro_batch
    why = f"{tokens} tokens per step, {at_once:,} of them at a time, at {slow:,.0f} to {fast:,.0f} tokens/s{times}"
    return StepTime(Between(few / fast, most / slow), Known.PUBLISHED, why)


def amount_of(subject: Subject, plan: Plan | None, steps: int, step: StepTime) -> Amount:
    """Return the work of a run, as the spec and the plan describe it."""
    spec = subject.spec
    assert spec is not None
    saved = disk_bytes(plan, subject)[1] if plan is not None else 0.0
    smoke = spec.smoke
    return Amount(
        steps,
        step,
        every_steps=spec.checkpoints.every_steps,
        smoke_steps=smoke.steps or 0 if smoke is not None else 0,
        smoke_s_max=float(smoke.timeout_s) if smoke is not None else 0.0,
        model_bytes=2.0 * plan.model.params if plan is not None else 0.0,
        checkpoint_bytes=saved,
    )


def of_offers(offers: Sequence[Offer], hardware: HardwareSpec) -> tuple[Machine, ...]:
    """Return the cheapest offer per hour of each type of machine, at most `OFFERS_MAX` of them, each with the variant that it gets."""
    found: dict[tuple[str, str, int, bool], Machine] = {}
    for offer in sorted(offers, key=lambda offer: offer.usd_per_hour):
        sold = "spot" if offer.spot else "on-demand"
        name = f"{offer.gpu_count}x {offer.gpu} {sold}" if offer.gpu else f"{offer.provider} {sold}"
        variant = variant_title(offer, hardware)
        name = f"{name}, {variant}" if variant else name
        rate = Rate(offer.usd_per_hour, offer.spot)
        machine = Machine(name, offer.gpu, offer.gpu_count, rate, offer.socket, offer)
        found.setdefault((offer.gpu, offer.socket, offer.gpu_count, offer.spot), machine)
    return tuple(found.values())[:OFFERS_MAX]
