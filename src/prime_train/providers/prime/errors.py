"""Meaning of Prime's error responses. Their bodies have three shapes, and only their wording distinguishes
the reasons.
"""

import re
from collections.abc import Iterator

from prime_train.errors import LimitReached, NoCapacity, NoFunds, PermanentError
from prime_train.http import HttpResponse
from prime_train.providers.rental.reasons import REASON_CHARS_MAX, CreateRefusal, Refusals, short

ITEMS_MAX = 5

_LIMIT = re.compile(
    r"(?:maximum|max\.?|limit) (?:number )?of (?:active )?(?:instances|pods|machines)|(?:instance|pod) "
    r"(?:limit|quota)",
    re.IGNORECASE,
)
_CAPACITY = re.compile(
    r"stock|capacity|unavailable|(?:not|no longer) available|sold out|insufficient resources", re.IGNORECASE
)
_CERTAIN_CAPACITY = re.compile(r"stock|capacity|sold out", re.IGNORECASE)
_FUNDS = re.compile(r"balance|funds|credit|billing|payment|wallet", re.IGNORECASE)
_INSUFFICIENT = re.compile(r"insufficient", re.IGNORECASE)

ADVICE = {
    401: "the API key is unknown or lacks permission; check PRIME_API_KEY",
    402: "the wallet has not enough credit; add credit under Billing, or set PRIME_TEAM_ID to pay from a "
    "team's wallet",
    403: "the API key lacks permission; it needs Availability (read), Instances (read and write), SSH keys "
    "(read and write) and Billing (read)",
}
"""Advice for the user, by HTTP status."""
LIMIT_ADVICE = "end a machine that is not needed, or ask Prime for a higher limit"


def names_nothing(answer: HttpResponse) -> bool:
    """Return whether the body does not say what was not found. That is what Prime's server answers on a route
    that it does not have, so it may as well be about the route as about the object.
    """
    return answer.content() == {"detail": "Not Found"}


def reason_in(answer: HttpResponse) -> str:
    """Return the reason in the body, on one line and cut short; empty for a web page."""
    content = answer.content()
    text = (
        "; ".join(_reasons(content))
        if content is not None
        else answer.body[: 4 * REASON_CHARS_MAX].decode(errors="replace")
    )
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


def _is_from_prime(answer: HttpResponse) -> bool:
    """Return whether the body has one of Prime's own shapes, which gateways do not use."""
    match answer.content():
        case {"detail": _} | {"errors": _}:
            return True
        case _:
            return False


_UNCERTAIN = (400, 404, 409)
REFUSALS = Refusals(
    "Prime",
    "PRIME_API_BASE_URL",
    ADVICE,
    reason_in,
    _is_from_prime,
    creation=(
        CreateRefusal(NoFunds, (402,), advice=ADVICE[402]),
        # Another 5xx says nothing: "unavailable" is in the name of 503, and machines have been rented by
        # calls that ended in one.
        CreateRefusal(NoCapacity, (503,), _CERTAIN_CAPACITY, is_own=True),
        CreateRefusal(LimitReached, _UNCERTAIN, _LIMIT, LIMIT_ADVICE),
        # Before capacity, because a balance can be "insufficient for this capacity".
        CreateRefusal(NoFunds, _UNCERTAIN, _FUNDS, ADVICE[402]),
        CreateRefusal(NoCapacity, _UNCERTAIN, _CAPACITY),
        CreateRefusal(PermanentError, _UNCERTAIN, _INSUFFICIENT, ADVICE[402]),
        # A lost race for the last machine.
        CreateRefusal(NoCapacity, (409,)),
    ),
)
