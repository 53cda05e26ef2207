"""Whether an order can be filled: what a test may set, and the checks of an order."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.prime.accounts import Wallet
from tests.fakes.prime.bodies import CreatePod, PodOrder
from tests.fakes.prime.refusals import InvalidForm, Refused
from tests.fakes.prime.rows import GpuRow


@dataclass
class Terms:
    """Prime's behaviour where it is not known for certain; may be changed at any time.

    `no_capacity`, `no_funds`: status and detail of the refusal. `max_price_required`: as in the API of 2025.
    `max_price_kept`: a box that costs more is refused; 0 is no limit. `deposit_h`: the hours that the wallet
    must cover, and never nothing. `list_lag_s`: delay with which pods appear in the list and leave it.
    `pods_a_page`: maximum rows of a page of that list, whatever is requested. `cut_listings`: number of
    further listings of pods with half of the rows that they report. `forgets_deleted`: a deleted pod's id is
    unknown (404) instead of TERMINATED. `instances_max`: limit of living pods. `empty_listings`: number of
    further empty listings of GPUs. `bad_key_status`, `no_scope_status`: for an unknown key, and for one
    without permission.
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
    """The row that was ordered, and its price per hour."""

    row: GpuRow
    usd_per_hour: float


def choose(
    order: CreatePod, rows: Sequence[GpuRow], wallet: Wallet, terms: Terms, *, living: int = 0
) -> Chosen:
    """Return the first row that the order names; raises Refused if it is not available. `living`: the
    existing pods.
    """
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
    return all(requested in (None, offered) for requested, offered in optional)


def _check_parts(row: GpuRow, pod: PodOrder) -> None:
    for what, spec, count in (
        ("diskSize", row.disk, pod.diskSize),
        ("vcpus", row.vcpu, pod.vcpus),
        ("memory", row.memory, pod.memory),
    ):
        if not spec.allows(count):
            raise Refused(400, f"{what} must be between {spec.minCount} and {spec.maxCount}")
    if pod.image is not None and pod.image not in row.images:
        raise Refused(400, f"Image {pod.image} is not supported by this provider")
    if pod.image == "custom_template" and pod.customTemplateId is None:
        raise Refused(400, "customTemplateId is required for custom_template")
