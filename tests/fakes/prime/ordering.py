"""Whether an order can be had: what a test may set of it, and the checks that an order has to pass."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.prime.accounts import Wallet
from tests.fakes.prime.orders import CreatePod, PodOrder
from tests.fakes.prime.refusals import InvalidForm, Refused
from tests.fakes.prime.rows import GpuRow


@dataclass
class Terms:
    """How Prime answers where nobody knows for certain how it does; to be changed at any time.

    `no_capacity`, `no_funds`: status and detail of the refusal. `max_price_required`: as the API was in 2025. `max_price_kept`: a box that
    costs more is refused; 0 is no ceiling. `deposit_h`: so many hours must be in the wallet, and never nothing. `list_lag_s`: pods come
    into the list, and leave it, so much later. `pods_a_page`: no page of that list has more rows, whatever is asked for. `cut_listings`: so
    many listings of pods yet have half of the rows that they say there are. `forgets_deleted`: a deleted pod's id is unknown (404) instead
    of TERMINATED. `instances_max`: so many pods may live at once. `empty_listings`: so many listings of GPUs yet are told as empty.
    `bad_key_status`, `no_scope_status`: of a key that is unknown, and of one that may not.
    """

    no_capacity: tuple[int, str] = (409, "No capacity available for the requested configuration")
    no_funds: tuple[int, str] = (402, "Insufficient balance, please top up your wallet")
    max_price_required: bool = False
    max_price_kept: bool = True
    deposit_h: float = 0.0
    list_lag_s: float = 0.0
    pods_a_page: int = 100
    cut_listings: int = 0
    forgets_deleted: bool = False
    instances_max: int | None = None
    empty_listings: int = 0
    invalid_form: InvalidForm = InvalidForm.ERRORS
    bad_key_status: int = 401
    no_scope_status: int = 403


@dataclass(frozen=True)
class Chosen:
    """The row that an order is for, and what it costs an hour."""

    row: GpuRow
    usd_per_hour: float


def choose(order: CreatePod, rows: Sequence[GpuRow], wallet: Wallet, terms: Terms, *, living: int = 0) -> Chosen:
    """The first row that is meant; Refused where it cannot be had. `living`: the pods that there are."""
    pod = order.pod
    if terms.instances_max is not None and living >= terms.instances_max:
        raise Refused(400, f"Maximum number of instances reached. Limit: {terms.instances_max}")
    if pod.prepaidForHr is not None:
        raise Refused(400, "Reserved instances are not available")
    if terms.max_price_required and pod.maxPrice is None:
        raise Refused(400, "Missing field: max_price not specified")
    row = next((row for row in rows if _is_meant(row, order)), None)
    if row is None or row.stockStatus == "Unavailable":
        raise Refused(*terms.no_capacity)
    _check_parts(row, pod)
    usd_per_hour = row.usd_per_hour(disk=pod.diskSize, vcpus=pod.vcpus, memory=pod.memory)
    if terms.max_price_kept and pod.maxPrice and usd_per_hour > pod.maxPrice:
        raise Refused(400, f"Price {usd_per_hour:.4f} is above maxPrice {pod.maxPrice:.4f}")
    if wallet.balance_usd <= 0 or wallet.balance_usd < terms.deposit_h * usd_per_hour:
        raise Refused(*terms.no_funds)
    return Chosen(row, usd_per_hour)


def _is_meant(row: GpuRow, order: CreatePod) -> bool:
    pod = order.pod
    named = (pod.cloudId, pod.gpuType, pod.socket, pod.gpuCount, order.provider.type)
    if named != (row.cloudId, row.gpuType, row.socket, row.gpuCount, row.provider):
        return False
    optional = ((pod.dataCenterId, row.dataCenter), (pod.country, row.country), (pod.security, row.security))
    return all(asked in (None, offered) for asked, offered in optional)


def _check_parts(row: GpuRow, pod: PodOrder) -> None:
    for what, spec, count in (("diskSize", row.disk, pod.diskSize), ("vcpus", row.vcpu, pod.vcpus), ("memory", row.memory, pod.memory)):
        if not spec.allows(count):
            raise Refused(400, f"{what} must be between {spec.minCount} and {spec.maxCount}")
    if pod.image is not None and pod.image not in row.images:
        raise Refused(400, f"Image {pod.image} is not supported by this provider")
    if pod.image == "custom_template" and pod.customTemplateId is None:
        raise Refused(400, "customTemplateId is required for custom_template")
