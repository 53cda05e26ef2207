"""Meaning of RunPod's error responses, which have the form of RFC 9457: a title, the status, and a detail for people.

RunPod says which failures of a create call are whose fault. 422: the request is wrong. 400: a rule is broken or there is no capacity, and
only the detail's wording tells which. 402: the balance. 403: the account may not use these machines. 5xx: unknown.
"""

import re

from prime_train.adapters.http import Answer
from prime_train.adapters.pods_runpod.settings import ADDRESS, KEY, TITLE
from prime_train.adapters.rental_api.reasons import Refusals, answered, short
from prime_train.adapters.rental_api.whose_fault import MaybeOurFault
from prime_train.ports import ExternalError, LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError

ITEMS_MAX = 5

_LIMIT = re.compile(
    r"(?:spend(?:ing)?|account|pod|machine|gpu) (?:limit|quota)|(?:limit|maximum number) of (?:pods|machines|gpus)", re.IGNORECASE
)
_FUNDS = re.compile(r"balance|funds|credit|billing|payment", re.IGNORECASE)
_CAPACITY = re.compile(
    r"stock|capacity|unavailable|sold out"
    r"|(?:not|no longer) (?:any )?(?:\w+ )?available|no (?:longer any )?(?:instances|machines|resources|hosts?|gpus?)\b"
    r"|not (?:have )?(?:the |any |enough )+(?:free |requested )?(?:resources|gpus?|machines)|insufficient resources|outbid|bid is too low",
    re.IGNORECASE,
)
"""RunPod's words where there is no such machine. Seen: "There are no instances available with the request specifications" (runpodctl, pull
request 267), "This machine does not have the resources to deploy your pod" (runpod web issue 2484), "There are not enough free GPUs on the
host machine to start this pod" (runpod-python, issue 168)."""

ADVICE = {
    401: f"the API key is unknown or has expired; check {KEY}",
    402: "the balance is too low; add credit under Billing",
    403: "the account may not use these machines, or the API key, which needs read and write access to the API, may not do this",
}
"""Advice for the user, by HTTP status."""
REFUSALS = Refusals(TITLE, ADDRESS, ADVICE)
LIMIT_ADVICE = f"end a machine that is not needed, or ask {TITLE} for a higher limit"


def refusal(answer: Answer) -> TemporaryError | PermanentError:
    """Return the error for a response that is not a success. A redirect or a proxy's error page proves nothing about pods."""
    return REFUSALS.error(answer, reason_in(answer), is_own=is_unknown(answer))


def create_refusal(answer: Answer) -> ExternalError:
    """Return the error for a failed create call: as `refusal`, but NoCapacity, NoFunds and PermanentError guarantee that nothing was
    rented. Money is checked before capacity, because a balance can be "insufficient for this capacity"; the account's limit before both."""
    reason = reason_in(answer)
    if answer.status == 402:
        return NoFunds(f"{answered(answer, reason)}; {ADVICE[402]}")
    if answer.status == 403 and _is_problem(answer):
        return MaybeOurFault(f"{answered(answer, reason)}: {ADVICE[403]}")
    if answer.status == 400 and _is_problem(answer):
        return reason_of_create(answer, reason) or MaybeOurFault(answered(answer, reason))
    return refusal(answer)


def reason_of_create(answer: Answer, reason: str) -> ExternalError | None:
    """Return the error for a create call that was refused with this reason; None if its wording is not known."""
    if _LIMIT.search(reason):
        return LimitReached(f"{answered(answer, reason)}; {LIMIT_ADVICE}")
    if _FUNDS.search(reason):
        return NoFunds(f"{answered(answer, reason)}; {ADVICE[402]}")
    return NoCapacity(answered(answer, reason)) if _CAPACITY.search(reason) else None


def is_unknown(answer: Answer) -> bool:
    """Return whether RunPod itself reports that the object does not exist. A proxy's 404 page does not count: if it were taken as proof
    that a pod has ended, one wrong address would launch every run a second time."""
    return answer.status == 404 and _is_problem(answer)


def reason_in(answer: Answer) -> str:
    """Return the reason in the body, on one line and cut short; empty for anything that RunPod itself does not write."""
    match answer.content():
        case {"detail": str(detail), "errors": [*items]} if items:
            return short("; ".join([detail, *(str(item) for item in items[:ITEMS_MAX])]))
        case {"detail": str(text)} | {"title": str(text)}:
            return short(text)
        case _:
            return ""


def _is_problem(answer: Answer) -> bool:
    """Return whether the body is an error of RunPod's own, with the status that it was sent with."""
    match answer.content():
        case {"title": str(), "status": int(status)}:
            return status == answer.status
        case _:
            return False
