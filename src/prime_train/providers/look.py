"""Looks at what a provider has for the holder of a key: a few calls that only read, so that looking costs
nothing.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.providers.configured import load, reading_context
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.port import Provider
from prime_train.runs.funds import Funds
from prime_train.runs.offer import Offer, fits
from prime_train.runs.verdict import PodStatus
from prime_train.spec.spec import HardwareSpec

LIMIT_S = 30.0
"""Seconds after which a provider counts as not answering. Its own client gives up later, because a watcher
can wait for longer.
"""


@dataclass(frozen=True)
class Look:
    """What a key shows. `account`: its name; empty if the provider does not tell. `pods`: machines that the
    account pays for now, whoever rented them, at `usd_per_hour` together. `funds`: None if the account has no
    wallet, or if `no_funds` says why it could not be read. `fitting`: those of the `offers` machines for rent
    that fit, and `cheapest` of them.
    """

    provider: str
    account: str
    pods: int
    usd_per_hour: float
    offers: int
    fitting: int
    cheapest: Offer | None
    funds: Funds | None
    no_funds: str = ""


def look(name: str, environment: Mapping[str, str], hardware: HardwareSpec) -> Look:
    """Return what the provider shows to the credentials in `environment`. Nothing is rented, stored or
    changed.

    Raises PermanentError if the provider refuses the credentials, and TemporaryError if it does not answer
    within `LIMIT_S`. No error contains a credential.
    """
    done: list[Look | Exception] = []

    def ask() -> None:
        try:
            done.append(look_with(name, load(name, reading_context(environment)), hardware))
        except Exception as error:  # raised again by the caller, whose thread this is not
            done.append(error)

    # A daemon thread: a provider that never answers must not keep the process from ending.
    thread = threading.Thread(target=ask, name=f"look at {name}", daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    match done[0] if done else None:
        case Look() as found:
            return found
        case None:
            raise TemporaryError(f"{PROVIDERS[name].title} did not answer within {LIMIT_S:.0f} s")
        case ExternalError() as error:
            raise _without(
                error, [environment.get(variable, "") for variable in PROVIDERS[name].credentials]
            ) from None
        case Exception() as error:
            raise error


def look_at_all(
    names: Sequence[str], environment: Mapping[str, str], hardware: HardwareSpec
) -> Iterator[tuple[str, Look | ExternalError]]:
    """Look at several providers side by side, and yield what each shows, or why it shows nothing, in the
    order of `names`.
    """
    found: dict[str, Look | ExternalError | BaseException] = {}

    def ask(name: str) -> None:
        try:
            found[name] = look(name, environment, hardware)
        except Exception as error:  # raised again below, in the order of names
            found[name] = error

    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for name, thread in zip(names, threads, strict=True):
        thread.join()
        match found[name]:
            case Look() | ExternalError() as answer:
                yield name, answer
            case error:
                raise error


def look_with(name: str, provider: Provider, hardware: HardwareSpec) -> Look:
    """Return what the provider shows, however long its own client waits for that. Raises ExternalError."""
    missing = provider.missing_rights()
    if missing:
        raise PermanentError(f"the credentials lack the right to {', '.join(missing)}")
    # The machines come first: some providers list what they rent out to anyone, but machines only to the
    # account's own key.
    pods = [pod for pod in provider.all_pods() if pod.status is not PodStatus.GONE]
    offers = provider.offers(hardware)
    fitting = [offer for offer in offers if fits(offer, hardware) is None]
    funds, no_funds = _funds(provider)
    return Look(
        name,
        provider.account_name(),
        len(pods),
        sum(pod.usd_per_hour for pod in pods),
        len(offers),
        len(fitting),
        min(fitting, key=lambda offer: (offer.usd_per_hour, offer.offer_id), default=None),
        funds,
        no_funds,
    )


def _funds(provider: Provider) -> tuple[Funds | None, str]:
    """Return the wallet, and why it cannot be read if it cannot: a key with few rights may rent machines
    nevertheless.
    """
    account = provider.account()
    if account is None:
        return None, ""
    try:
        return account.funds(), ""
    except ExternalError as error:
        return None, str(error)


def _without(error: ExternalError, values: Sequence[str]) -> ExternalError:
    """Return the error without these values, which a server may have repeated."""
    text = str(error)
    for value in values:
        text = text.replace(value, "***") if value else text
    kind = PermanentError if isinstance(error, PermanentError) else TemporaryError
    return kind(text, fix=error.fix)
