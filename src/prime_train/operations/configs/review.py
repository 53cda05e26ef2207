"""Review a run's config: what it needs and costs on machines for rent now, and the effects of a change to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prime_train.configs.changes import Change, of_config, of_trainer
from prime_train.configs.loaded import LoadedConfig
from prime_train.control_plane.wiring.providers import is_set_up, offers_to_rent, providers_to_rent_from
from prime_train.core.finding import Finding, Severity
from prime_train.core.market.observations import Observations
from prime_train.core.market.quotes import NO_STORE
from prime_train.core.offers import Ranking, rank, variant_of
from prime_train.core.registry.providers import allowed_providers, is_rented
from prime_train.core.spec import RunSpec
from prime_train.operations.cost import machine_at_most
from prime_train.operations.launching.market import market_for
from prime_train.reports.cost.forecast import forecast_of
from prime_train.reports.cost.machine import Machine
from prime_train.reports.cost.report import CostReport, cost_report, of_offers
from prime_train.reports.market import save_advice
from prime_train.reports.memory.report import MemoryReport, memory_report
from prime_train.rules.hardware.memory_plan import plan_of

Texts = Mapping[str, str | None]
"""File contents by path; None: the file does not exist."""


@dataclass(frozen=True)
class ConfigReview:
    """The result of a review. `machines`: those for rent now; if they are not known (`is_priced_by_offers` False), one at the highest price
    that the config allows, or none. `why_none`: why no machine for rent fits now. `cost`: what the run costs on the machines; None: the
    config sets no steps. `memory`: None if the config does not say what is trained. `variant`: the variant that `cost` and `memory` are
    about, in words; empty if the config has none. `changes`: those in files that existed before; `is_new`: the config itself did not exist
    before."""

    spec: RunSpec
    variant: str
    machines: tuple[Machine, ...]
    is_priced_by_offers: bool
    why_none: str
    cost: CostReport | None
    memory: MemoryReport | None
    changes: tuple[Change, ...]
    is_new: bool
    ranking: Ranking | None = None
    """The machines for rent now in the order in which they would be tried; None if they are not known."""
    saving: str = ""
    """How often the trainer should save on the best of them, in words."""

    @property
    def unpriced(self) -> tuple[Machine, ...]:
        """The machines that get another variant than the one that `cost` is about."""
        cost = self.cost
        known = {*cost.unknown, *(one.machine.name for one in cost.priced)} if cost is not None else set()
        return tuple(machine for machine in self.machines if machine.name not in known)


def review(loaded: LoadedConfig, ranking: Ranking | None, seen: Observations | None, *, before: Texts, after: Texts) -> ConfigReview:
    """Review a config that can be parsed. `ranking`: the offers, None if they are not known. `seen`: what the account has seen of machines,
    None if it could not be read. `before` and `after`: contents of the config and the files it refers to. Of several variants, that of the
    best offer is reviewed, or the first one."""
    assert loaded.subject is not None
    assert loaded.subject.spec is not None
    hardware, best = loaded.subject.spec.hardware, ranking.best if ranking is not None else ()
    number = (variant_of(best[0], hardware) if best else None) or 0
    variant, subject = loaded.judged[number]
    spec, plan = subject.spec, plan_of(subject)
    assert spec is not None
    most = machine_at_most(spec)
    alike = [offer for offer in best if not hardware.variants or variant_of(offer, hardware) == number]
    machines = of_offers(best, hardware) if ranking is not None else (most,) if most is not None else ()
    priced = of_offers(alike, hardware) if ranking is not None else machines
    steps, market = spec.trainer.steps, market_for(loaded.subject.spec, forecast_of([one for _, one in loaded.judged]), seen)
    return ConfigReview(
        spec,
        variant,
        machines,
        ranking is not None,
        ranking.why_none if ranking is not None else "",
        cost_report("", subject, priced, steps=steps, known=None, plan=plan, market=market) if steps else None,
        memory_report("", plan, spec.hardware.gpus) if plan is not None else None,
        tuple(_changed(before, after)),
        before.get(loaded.file) is None,
        ranking,
        save_advice(ranking.quotes[0], spec, forecast_of([subject])) if ranking is not None and ranking.quotes else "",
    )


def reviewable(read: Sequence[LoadedConfig], found: Sequence[Finding]) -> list[LoadedConfig]:
    """Return the configs that define a run and have no errors."""
    faulty = {finding.file for finding in found if finding.severity is Severity.ERROR}
    return [loaded for loaded in read if loaded.subject is not None and loaded.subject.spec is not None and loaded.file not in faulty]


def offers_for(
    environment: Mapping[str, str], loaded: LoadedConfig, seen: Observations | None, *, why_unread: str = NO_STORE
) -> Ranking | None:
    """Return the ranked offers for a config that can be parsed, or None if its providers rent out no machines, or none is set up here.
    `seen`: what the account has seen of machines; None: it could not be read, `why_unread` in words. Raises ExternalError if no provider
    answers."""
    spec = loaded.spec
    assert spec is not None
    names = providers_to_rent_from(environment, allowed_providers(spec.hardware))
    if not is_rented(names) or not any(is_set_up(name, environment) for name in names):
        return None
    market = market_for(spec, forecast_of([subject for _, subject in loaded.judged]), seen, why_unread=why_unread)
    return rank(offers_to_rent(environment, spec.hardware), spec.hardware, market=market)


def _changed(before: Texts, after: Texts) -> Iterator[Change]:
    """Yield the changes in files that exist in both `before` and `after`."""
    for file, text in after.items():
        old = before.get(file)
        if old is not None and text is not None and old != text:
            yield from (of_trainer(old, text) if file.endswith(".toml") else of_config(old, text)) or ()
