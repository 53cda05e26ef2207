"""Meaning of Vast.ai's error responses: `error` is a code, `msg` is for people; some responses have only one
of them.

The same code stands for different things (a machine that is taken is `invalid_args` as well as
`no_such_ask`), so that both are read.
"""

import re

from prime_train.errors import (
    ExternalError,
    LimitReached,
    NoCapacity,
    NoFunds,
    PermanentError,
    TemporaryError,
)
from prime_train.http import HttpResponse
from prime_train.providers.rental.pods import MaybeOurFault
from prime_train.providers.rental.rate_limit import PAUSES, TOO_MANY
from prime_train.providers.rental.reasons import CreateRefusal, Refusals, answered, short
from prime_train.providers.vast.models import NUMBER_MAX
from prime_train.providers.vast.settings import ADDRESS, KEY, TITLE

QUOTA = "search_quota_exceeded"
UNKNOWN_CODES = frozenset({"no_such_instance", "not_found"})
INVALID_KEY = "auth_error"
CODE_CHARS_MAX = 100
PAUSE_S = 5.0
"""Pause in seconds after a 429 that does not say how long; the longest interval between two requests that
Vast.ai demands is 5.5 s.
"""

_TAKEN = re.compile(
    r"no_such_ask|(?:not|no longer) available|invalid_price|bid price|already rented", re.IGNORECASE
)
_NOT_OURS = re.compile(r"not your own|\b3586\b", re.IGNORECASE)
"""Vast.ai's words, or its number, for an offer that is reserved for others; its documentation has them with
status 403.
"""
_FUNDS = re.compile(r"credit|billing|balance|funds|payment", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?:limit|quota|maximum number) (?:of|on|for|reached|exceeded)|too many instances|(?:account|spend\w*) "
    r"limit",
    re.IGNORECASE,
)
_THRESHOLD = re.compile(r"threshold=(\d{1,4}(?:\.\d{1,6})?)")

ADVICE = {
    401: f"the API key is unknown or may not do this; check {KEY} and the key's permissions",
    403: f"the API key may not do this; check {KEY} and the key's permissions",
}
"""Advice for the user, by HTTP status."""
FUNDS_ADVICE = "add credit under Billing"
LIMIT_ADVICE = f"end a machine that is not needed, or ask {TITLE} for a higher limit"


class LeftStopped(NoCapacity):
    """The create call was refused, but has left an instance, whose disk is paid for until it is destroyed."""

    def __init__(self, message: str, instance_id: str) -> None:
        super().__init__(message)
        self.instance_id = instance_id


class QuotaUsedUp(TemporaryError):
    """No more can be searched for until midnight UTC."""


def refusal(answer: HttpResponse) -> TemporaryError | PermanentError:
    """Return the error for a response that is not a success. A redirect or a proxy's error page proves
    nothing about instances.
    """
    code, reason = code_in(answer), reason_in(answer)
    if answer.status == TOO_MANY and code == QUOTA:
        return QuotaUsedUp(
            f"{answered(answer, reason)}: the account's searches of today are used up; there are new ones at "
            "midnight UTC"
        )
    if answer.status == 404 and code == INVALID_KEY:
        # Some routes answer 404 to an unknown key.
        return PermanentError(f"{answered(answer, reason)}: {ADVICE[401]}")
    return REFUSALS.error(answer)


def create_refusal(answer: HttpResponse) -> ExternalError:
    """Return the error for a failed create call: as `refusal`, but NoCapacity, NoFunds and PermanentError
    guarantee that nothing was rented, apart from what `LeftStopped` names. Also for an answer with status 200
    that reports no success.
    """
    reason, left = reason_in(answer), _instance_in(answer)
    if left:
        return LeftStopped(answered(answer, reason), left)
    if answer.status in _UNCERTAIN and not reason:
        return TemporaryError(
            f"{answered(answer)}, and the answer cannot be parsed: it has neither an instance nor a reason"
        )
    return REFUSALS.create_error(answer) or refusal(answer)


def is_refused(answer: HttpResponse) -> bool:
    """Return whether a response reports a failure, be it with status 200."""
    match answer.content():
        case {"success": False}:
            return True
        case _:
            return not answer.is_ok


def pause_s(answer: HttpResponse) -> float:
    """Return the seconds for which no such request may be sent; 0 if the response asks for no pause. The text
    of a 429, which is often not JSON, tells the interval between two requests.
    """
    if answer.status != TOO_MANY:
        return answer.delay_s if answer.status in PAUSES else 0.0
    if code_in(answer) == QUOTA:
        return 0.0
    found = _THRESHOLD.search(answer.body[:1000].decode("utf-8", "replace"))
    return answer.delay_s or (float(found[1]) if found else PAUSE_S)


def code_in(answer: HttpResponse) -> str:
    """Return the error's code; empty if there is none."""
    match answer.content():
        case {"error": str(code)}:
            return code[:CODE_CHARS_MAX]
        case _:
            return ""


def reason_in(answer: HttpResponse) -> str:
    """Return code and message on one line and cut short; empty for anything that Vast.ai itself does not
    write.
    """
    code = code_in(answer)
    match answer.content():
        case {"msg": str(text)} | {"message": str(text)} | {"detail": str(text)} if text:
            return short(f"{code}: {text}" if code else text)
        case _:
            return short(code)


def _instance_in(answer: HttpResponse) -> str:
    """Return the id of the instance that a refusal has left; empty if it names none."""
    match answer.content():
        case {"new_contract": int(number)} if not isinstance(number, bool) and 0 < number <= NUMBER_MAX:
            return str(number)
        case _:
            return ""


_UNCERTAIN = frozenset((*range(200, 300), *range(400, 500))) - ADVICE.keys() - {TOO_MANY}
"""Statuses with which only the wording tells what a refused create call means."""
REFUSALS = Refusals(
    TITLE,
    ADDRESS,
    ADVICE,
    reason_in,
    # An unknown key is answered with 404 as well.
    says_unknown=lambda answer: code_in(answer) in UNKNOWN_CODES,
    creation=(
        CreateRefusal(NoCapacity, (403,), _NOT_OURS),
        CreateRefusal(NoCapacity, _UNCERTAIN, _TAKEN),
        CreateRefusal(NoFunds, _UNCERTAIN, _FUNDS, FUNDS_ADVICE),
        CreateRefusal(LimitReached, _UNCERTAIN, _LIMIT, LIMIT_ADVICE),
        CreateRefusal(MaybeOurFault, (200, 400, 404, 410, 422)),
    ),
)
