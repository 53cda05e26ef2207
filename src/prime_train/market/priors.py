"""What is assumed of machines before this account has seen any: how often they are lost, and how long they
take to start.

Where a figure has a source, it is named; the others are assumptions, of the right order at best. They matter
until machines were seen: an observation weighs as much as the prior after as many machine hours as the prior
has between two losses.
"""

import math
from dataclasses import dataclass

ON_DEMAND_LOSS_EVERY_H = 720.0
"""Hours between two losses of a machine that is not spot: thirty days, an assumption. In the training of
Llama 3 (A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3.4) 419 unexpected
interruptions in 54 days on 16,384 GPUs were one per 264 days and node of eight; rented machines are looked
after less well.
"""
LEAST_CONTROLLED_EVERY_H = 240.0
"""The same for machines of private hosts: ten days, an assumption."""
SPOT_LOSS_EVERY_H = (6.0, 24.0)
"""Hours between two losses of a spot machine whose price is at most `CHEAP_SHARE` of the on-demand price, and
of one that costs as much as on-demand. Assumptions: no provider of GPUs publishes such figures.
"""
LOSSES_FACTOR_AFTER_LOSS = 2.0
"""How many times as many losses are expected on an offer in the hour after one of its machines was preempted:
demand lasts for hours.
"""
CHEAP_SHARE = 0.3
USUAL_SHARE = 0.65
"""The price level that is assumed if no such machine is for rent on demand: 12 hours between losses."""

BOOT_S = 180.0
"""Seconds from the order to the agent's first heartbeat."""
SETUP_S = 420.0
"""Seconds from the first heartbeat to the first step: set-up commands, the model's download, compilation. A
smoke run is not in it.
"""
SMOKE_START_S = 120.0
"""Seconds that a smoke run takes beside its steps."""
SMOKE_SHORT_S = 30.0
"""Seconds that a smoke run takes at least, if it is not known how many steps it makes."""
SAVE_S = (2.0, 30.0)
"""Seconds for which training pauses for a save, if that is not known: the shortest and the longest."""
RESTORE_S = 60.0
"""Seconds that the restore of a checkpoint adds to the set-up, if its size is not known."""
RESTORE_BYTES_PER_S = 3e8
DETECTION_S = 150.0
"""Seconds from the loss of a machine until the next one is ordered: most providers report a preemption within
two minutes.
"""
INTERVAL_S = 1800.0
"""Seconds between two saves if it is not known."""
UPLOAD_S = 120.0
"""Seconds from a save until it is durable, if it is not known."""
WORK_H = 10.0
"""Hours of training for which machines are compared if it is not known how long the run takes."""

PROBE_H = 0.25
"""Hours of training that a run is assumed to take that measures only a few steps."""


@dataclass(frozen=True)
class ProviderPrior:
    """What is assumed of a provider's machines."""

    boot_s: float = BOOT_S
    on_demand_loss_every_h: float = ON_DEMAND_LOSS_EVERY_H


_OTHERS = ProviderPrior()
_BY_PROVIDER = {
    "local": ProviderPrior(boot_s=10.0),
    "ssh": ProviderPrior(boot_s=60.0),
    "kubernetes": ProviderPrior(boot_s=120.0),
    "lambda": ProviderPrior(boot_s=300.0),
    "vast": ProviderPrior(on_demand_loss_every_h=LEAST_CONTROLLED_EVERY_H),
}


def provider_prior(provider: str) -> ProviderPrior:
    """Return what is assumed of the provider; of one without a row what is assumed of most."""
    return _BY_PROVIDER.get(provider, _OTHERS)


def loss_every_h(provider: str, *, spot: bool, share: float | None) -> float:
    """Return the assumed hours between two losses of a machine. `share`: the price of a spot machine as a
    share of the on-demand price; None: not known.

    A spot price close to on-demand is safer, because few others bid more: between the two ends the logarithm
    of the hours grows evenly with the price level.
    """
    steady_h = provider_prior(provider).on_demand_loss_every_h
    if not spot:
        return steady_h
    low_h, high_h = SPOT_LOSS_EVERY_H
    level = (min(1.0, max(CHEAP_SHARE, USUAL_SHARE if share is None else share)) - CHEAP_SHARE) / (
        1 - CHEAP_SHARE
    )
    return min(steady_h, low_h * math.exp(level * math.log(high_h / low_h)))


SPOT_USUAL_LOSS_EVERY_H = loss_every_h("", spot=True, share=None)
"""Hours between two losses of a spot machine of which nothing is known: twelve."""
