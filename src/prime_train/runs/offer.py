"""Offers: which machines fit a run, and as which of its variants."""

from dataclasses import dataclass

from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec, RunSpec
from prime_train.spec.volumes import why_without
from prime_train.text.gpu_names import memory_gb_in


@dataclass(frozen=True)
class Offer:
    """A machine for rent. `usd_per_hour` is the price of the entire box; `gpu` is "" for a machine without
    one.

    `gpu_gb`: memory of one GPU as advertised (10^9 or 2^30 bytes, makers differ); 0: unknown. `hindrance`:
    the reason why the provider's adapter would not rent this offer; "": none. `socket` (PCIe, SXM5) and
    `stock` (Low, High) as the provider reports them; "": not reported. `usd_per_gib_down`, `usd_per_gib_up`:
    the price of traffic to and from the machine, which is paid on top; the price per hour contains everything
    else, the disk included. `machine`, `host` (its owner) and `data_center`: the provider's names of what
    exactly would be rented, which are the same on a later day; "": not known before.
    """

    provider: str
    offer_id: str
    usd_per_hour: float
    spot: bool
    gpu: str = ""
    gpu_count: int = 0
    disk_gib: int = 0
    region: str = ""
    gpu_gb: int = 0
    hindrance: str = ""
    socket: str = ""
    stock: str = ""
    usd_per_gib_down: float = 0.0
    usd_per_gib_up: float = 0.0
    machine: str = ""
    host: str = ""
    data_center: str = ""


def memory_gb(offer: Offer) -> int:
    """Return the memory of one GPU in GB: as offered, or else as in the kind's name; 0: unknown."""
    return offer.gpu_gb or memory_gb_in(offer.gpu)


def variant_of(offer: Offer, hardware: HardwareSpec) -> int | None:
    """Return the place in the list of the first variant that the offer fits; None if there is none."""
    fitting = (
        number
        for number, variant in enumerate(hardware.variants)
        if offer.gpu_count == variant.count and memory_gb(offer) >= variant.gpu_gb_min
    )
    return next(fitting, None)


def variant_title(offer: Offer, hardware: HardwareSpec) -> str:
    """Return the variant that the offer gets, with its number in the config; empty if the config has none."""
    number = variant_of(offer, hardware)
    return f"variant {number + 1} ({hardware.variants[number].title})" if number is not None else ""


def in_force(spec: RunSpec, offer: Offer) -> RunSpec:
    """Return the config as a machine of this offer carries it out: that of its variant, if the config has
    variants. Raises ValueError if the offer fits none of them.
    """
    if not spec.hardware.variants:
        return spec
    number = variant_of(offer, spec.hardware)
    if number is None:
        raise ValueError(f"offer {offer.offer_id} fits no variant of {spec.name}")
    return spec.variant(number, (offer.gpu,) if offer.gpu else ())


def fits(offer: Offer, hardware: HardwareSpec) -> str | None:
    """Return None if the offer can carry the run, else one reason why it cannot."""
    if hardware.gpus and offer.gpu not in hardware.gpus:
        return f"has {offer.gpu or 'no GPU'}, but hardware.gpus requires {' or '.join(hardware.gpus)}"
    if hardware.variants and variant_of(offer, hardware) is None:
        memory = f" of {memory_gb(offer)} GB" if memory_gb(offer) else ""
        return (
            f"has {offer.gpu_count} GPUs{memory}, but hardware.variants "
            "has "
            f"{', '.join(one.title for one in hardware.variants)}"
        )
    if hardware.gpus and not hardware.variants and offer.gpu_count != hardware.count:
        return f"has {offer.gpu_count} GPUs, but hardware.count is {hardware.count}"
    if offer.hindrance:
        return offer.hindrance
    if hardware.volumes and (why := why_without(offer.provider)):
        return f"cannot mount hardware.volumes: {why}"
    if hardware.usd_per_hour_max is not None and offer.usd_per_hour > hardware.usd_per_hour_max:
        return (
            f"costs ${offer.usd_per_hour:.2f}/h, above "
            "hardware.usd_per_hour_max "
            f"{hardware.usd_per_hour_max:.2f}"
        )
    if offer.disk_gib < hardware.disk_gib:
        return f"has {offer.disk_gib} GiB of disk, but hardware.disk_gib is {hardware.disk_gib}"
    if hardware.spot is Spot.NEVER and offer.spot:
        return "is spot, but hardware.spot is never"
    if hardware.spot is Spot.ONLY and not offer.spot:
        return "is on-demand, but hardware.spot is only"
    return None
