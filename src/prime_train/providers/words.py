"""What a look at a provider found, in words."""

from collections.abc import Iterator

from prime_train.errors import ExternalError
from prime_train.providers.health import ProviderHealth
from prime_train.providers.look import Look
from prime_train.text.invocations import in_one_line


def lines(found: Look) -> Iterator[str]:
    """Yield what was found, a line for each subject."""
    if found.account:
        yield f"account   {found.account}"
    yield f"machines  {_machines(found)}"
    yield f"balance   {_balance(found).removeprefix('balance ')}"
    yield f"offers    {_offers(found)}"


def in_words(one: ProviderHealth) -> str:
    """Return what was found about a provider in one line, with what to do about it."""
    advice = f"; {one.remedy}" if one.remedy else ""
    return f"{in_a_line(one.found)}; credentials: {one.source}{advice}"


def in_a_line(found: Look | ExternalError) -> str:
    """Return what was found, or why nothing was, in one line."""
    if isinstance(found, ExternalError):
        return in_one_line(found)
    return "; ".join(
        [
            *([f"account {found.account}"] if found.account else []),
            _balance(found),
            _offers(found),
            _machines(found),
        ]
    )


def _machines(found: Look) -> str:
    if not found.pods:
        return "no machine is rented now"
    return (
        f"{found.pods} machine{'s' if found.pods > 1 else ''} rented now, "
        "for "
        f"${found.usd_per_hour:.2f}/h together"
    )


def _balance(found: Look) -> str:
    if found.funds is not None:
        return f"balance ${found.funds.balance_usd:.2f}"
    return f"the balance cannot be read: {found.no_funds}" if found.no_funds else "no prepaid balance"


def _offers(found: Look) -> str:
    best = found.cheapest
    if best is None:
        return f"none of {found.offers} machines for rent fits now"
    what = f"{best.gpu_count}x {best.gpu}" if best.gpu else "a machine without GPU"
    kind = "spot" if best.spot else "on-demand"
    where = f" in {best.region}" if best.region else ""
    count = f"{found.fitting} of {found.offers} machines for rent fit"
    return f"{count}, the cheapest at ${best.usd_per_hour:.2f}/h: {what}, {kind}{where}"
