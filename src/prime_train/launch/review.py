"""Review a run's config: what it needs and costs on machines for rent now, and the effects of a change to
it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prime_train.checks.changes import ConfigChange, of_config, of_trainer
from prime_train.checks.memory_plan import plan_of
from prime_train.configs.loader import LoadedConfig
from prime_train.market.observations import Observations
from prime_train.market.quotes import NO_STORE
from prime_train.planning.cost_forecast import forecast_of
from prime_train.planning.cost_report import CostReport, cost_report
from prime_train.planning.market_for_run import market_for
from prime_train.planning.market_rows import save_advice
from prime_train.planning.memory_report import MemoryReport, memory_report
from prime_train.planning.offered import Offered, PricedOffers, priced_offers
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.runs.offer import variant_of
from prime_train.spec.finding import Finding, Severity
from prime_train.spec.spec import HardwareSpec, RunSpec

Texts = Mapping[str, str | None]
"""File contents by path; None: the file does not exist."""


@dataclass(frozen=True)
class ConfigReview:
    """The result of a review. `offers`: what the run takes on each machine for rent; None: not known. `cost`:
    the same by type of machine; None: no machine fits. `memory`: None if the config does not say what is
    trained. `variant`: the variant that the best machine gets and `memory` is about, in words; empty if the
    config has none. `changes`: those in files that existed before; `is_new`: the config itself did not exist
    before.
    """

    spec: RunSpec
    variant: str
    offers: PricedOffers | None
    cost: CostReport | None
    memory: MemoryReport | None
    changes: tuple[ConfigChange, ...]
    is_new: bool
    saving: str = ""
    """How often the trainer should save on the best machine, in words."""

    @property
    def why_none(self) -> str:
        """Why no machine for rent fits now; empty if one does, or the machines are not known."""
        return self.offers.costs.ranking.why_none if self.offers is not None else ""


def review(loaded: LoadedConfig, offers: PricedOffers | None, *, before: Texts, after: Texts) -> ConfigReview:
    """Review a config that can be parsed. `offers`: None if they are not known. `before` and `after`:
    contents of the config and the files it refers to. Of several variants, that of the best offer is
    reviewed, or the first one.
    """
    assert loaded.subject is not None
    assert loaded.subject.spec is not None
    hardware, machines = loaded.subject.spec.hardware, offers.costs.machines if offers is not None else ()
    number = (variant_of(machines[0].offer, hardware) if machines else None) or 0
    variant, subject = loaded.judged[number]
    spec, plan = subject.spec, plan_of(subject)
    assert spec is not None
    return ConfigReview(
        spec,
        variant,
        offers,
        cost_report("", loaded.subject.spec, offers.costs, offers.prices)
        if offers is not None and machines
        else None,
        memory_report("", plan, spec.hardware.gpus) if plan is not None else None,
        tuple(_changed(before, after)),
        before.get(loaded.file) is None,
        save_advice(machines[0].quote, spec, forecast_of([subject])) if machines else "",
    )


def reviewable(read: Sequence[LoadedConfig], found: Sequence[Finding]) -> list[LoadedConfig]:
    """Return the configs that define a run and have no errors."""
    faulty = {finding.file for finding in found if finding.severity is Severity.ERROR}
    return [
        loaded
        for loaded in read
        if loaded.subject is not None and loaded.subject.spec is not None and loaded.file not in faulty
    ]


def offers_for(
    ask: Callable[[HardwareSpec], Offered],
    loaded: LoadedConfig,
    seen: Observations | None,
    *,
    why_unread: str = NO_STORE,
) -> PricedOffers | None:
    """Return what the run of a config that can be parsed takes on each machine for rent, as `ask` finds them.
    None if its providers rent out no machines, or have no list of prices. `seen`: what the account has seen
    of machines; None: it could not be read, `why_unread` in words. Raises what `ask` raises.
    """
    spec = loaded.spec
    assert spec is not None
    if is_own_machine(allowed_providers(spec.hardware)):
        return None
    found = ask(spec.hardware)
    market = market_for(
        spec, forecast_of([subject for _, subject in loaded.judged]), seen, why_unread=why_unread
    )
    priced = priced_offers(found, loaded, market)
    return priced if found.offers or priced.costs.machines or not found.prices else None


def _changed(before: Texts, after: Texts) -> Iterator[ConfigChange]:
    """Yield the changes in files that exist in both `before` and `after`."""
    for file, text in after.items():
        old = before.get(file)
        if old is not None and text is not None and old != text:
            yield from (of_trainer(old, text) if file.endswith(".toml") else of_config(old, text)) or ()
