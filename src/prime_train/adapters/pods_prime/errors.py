"""Meaning of Prime's error responses. Their bodies have three shapes, and only their wording distinguishes the reasons."""

import re
from collections.abc import Iterator

from prime_train.adapters.http import Answer
from prime_train.adapters.rental_api.reasons import REASON_CHARS_MAX, Refusals, answered, short
from prime_train.ports import ExternalError, LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError

ITEMS_MAX = 5

_LIMIT = re.compile(
    r"(?:maximum|max\.?|limit) (?:number )?of (?:active )?(?:instances|pods|machines)|(?:instance|pod) (?:limit|quota)", re.IGNORECASE
)
_CAPACITY = re.compile(r"stock|capacity|unavailable|(?:not|no longer) available|sold out|insufficient resources", re.IGNORECASE)
_CERTAIN_CAPACITY = re.compile(r"stock|capacity|sold out", re.IGNORECASE)
_FUNDS = re.compile(r"balance|funds|credit|billing|payment|wallet", re.IGNORECASE)
_INSUFFICIENT = re.compile(r"insufficient", re.IGNORECASE)

ADVICE = {
    401: "the API key is unknown or lacks permission; check PRIME_API_KEY",
    402: "the wallet has not enough credit; add credit under Billing, or set PRIME_TEAM_ID to pay from a team's wallet",
    403: "the API key lacks permission; it needs Availability (read), Instances (read and write), SSH keys (read and write) and "
    "Billing (read)",
}
"""Advice for the user, by HTTP status."""
REFUSALS = Refusals("Prime", "PRIME_API_BASE_URL", ADVICE)
LIMIT_ADVICE = "end a machine that is not needed, or ask Prime for a higher limit"


def refusal(answer: Answer) -> TemporaryError | PermanentError:
    """Return the error for a response that is not a success. A redirect or a proxy's error page proves nothing about pods."""
    return REFUSALS.error(answer, reason_in(answer), is_own=is_unknown(answer))


def create_refusal(answer: Answer) -> ExternalError:
    """Return the error for a failed create call: as `refusal`, but NoCapacity, NoFunds and PermanentError guarantee that nothing was
    rented.

    So a 5xx is NoCapacity only if Prime itself mentions stock or capacity: "unavailable" is in the name of 503, and machines have been
    rented by calls that ended in one. Money is checked before capacity (a balance can be "insufficient for this capacity"), the account's
    limit before both, and a 409 without a reason is a lost race for the last machine.
    """
    reason = reason_in(answer)
    if answer.status == 402:
        return NoFunds(f"{answered(answer, reason)}; {ADVICE[402]}")
    if answer.status in ADVICE or 300 <= answer.status < 400:
        return refusal(answer)
    if answer.status >= 500:
        certain = answer.status == 503 and _is_from_prime(answer) and _CERTAIN_CAPACITY.search(reason)
        return NoCapacity(answered(answer, reason)) if certain else refusal(answer)
    if answer.status in (400, 404, 409):
        if _LIMIT.search(reason):
            return LimitReached(f"{answered(answer, reason)}; {LIMIT_ADVICE}")
        if _FUNDS.search(reason):
            return NoFunds(f"{answered(answer, reason)}; {ADVICE[402]}")
        if _CAPACITY.search(reason):
            return NoCapacity(answered(answer, reason))
        if _INSUFFICIENT.search(reason):
            return PermanentError(f"{answered(answer, reason)}; {ADVICE[402]}")
        if answer.status == 409:
            return NoCapacity(answered(answer, reason))
    return refusal(answer)


def is_unknown(answer: Answer) -> bool:
    """Return whether Prime itself reports that the object does not exist. A proxy's 404 page does not count: if it were taken as proof that
    a pod has ended, one wrong address would launch every run a second time."""
    return answer.status == 404 and _is_from_prime(answer)


def names_nothing(answer: Answer) -> bool:
    """Return whether the body does not say what was not found. That is what Prime's server answers on a route that it does not have, so it
    may as well be about the route as about the object."""
    return answer.content() == {"detail": "Not Found"}


def reason_in(answer: Answer) -> str:
    """Return the reason in the body, on one line and cut short; empty for a web page."""
    content = answer.content()
    text = "; ".join(_reasons(content)) if content is not None else answer.body[: 4 * REASON_CHARS_MAX].decode(errors="replace")
    return "" if content is None and "<" in text else short(text)


def _reasons(content: object) -> Iterator[str]:
    match content:
        case {"detail": str(text)} | {"message": str(text)} | {"error": str(text)}:
            yield text
        case {"detail": [*items]} | {"errors": [*items]}:
            yield from (_item(item) for item in items[:ITEMS_MAX])
        case str(text):
            yield text
        case _:
            return


def _item(item: object) -> str:
    match item:
        case {"loc": [*steps], "msg": str(text)}:
            return f"{'.'.join(str(step) for step in steps)}: {text}"
        case {"param": param, "details": details}:
            return f"{param}: {details}"
        case {"msg": text}:
            return str(text)
        case _:
            return str(item)


def _is_from_prime(answer: Answer) -> bool:
    """Return whether the body has one of Prime's own shapes, which gateways do not use."""
    match answer.content():
        case {"detail": _} | {"errors": _}:
            return True
        case _:
            return False
