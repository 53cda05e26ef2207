"""Meaning of RunPod's error responses, which have the form of RFC 9457: a title, the status, and a detail for
people.

RunPod says which failures of a create call are whose fault. 422: the request is wrong. 400: a rule is broken
or there is no capacity, and only the detail's wording tells which. 402: the balance. 403: the account may not
use these machines. 5xx: unknown.
"""

import re
from dataclasses import replace

from prime_train.errors import LimitReached, NoCapacity, NoFunds
from prime_train.http import HttpResponse
from prime_train.providers.rental.pods import MaybeOurFault
from prime_train.providers.rental.reasons import CreateRefusal, Refusals, short
from prime_train.providers.runpod.settings import ADDRESS, KEY, TITLE

ITEMS_MAX = 5

_LIMIT = re.compile(
    r"(?:spend(?:ing)?|account|pod|machine|gpu) (?:limit|quota)|(?:limit|maximum number) of (?:pods|machines|"
    r"gpus)",
    re.IGNORECASE,
)
_FUNDS = re.compile(r"balance|funds|credit|billing|payment", re.IGNORECASE)
_CAPACITY = re.compile(
    r"stock|capacity|unavailable|sold out"
    r"|(?:not|no longer) (?:any )?(?:\w+ )?available|no (?:longer any )?(?:instances|machines|resources|"
    r"hosts?|gpus?)\b"
    r"|not (?:have )?(?:the |any |enough )+(?:free |requested )?(?:resources|gpus?|machines)|insufficient "
    r"resources|outbid|bid is too low",
    re.IGNORECASE,
)
"""RunPod's words where there is no such machine. Seen: "There are no instances available with the request
specifications" (runpodctl, pull request 267), "This machine does not have the resources to deploy your pod"
(runpod web issue 2484), "There are not enough free GPUs on the host machine to start this pod"
(runpod-python, issue 168).
"""

ADVICE = {
    401: f"the API key is unknown or has expired; check {KEY}",
    402: "the balance is too low; add credit under Billing",
    403: "the account may not use these machines, or the API key, which needs read and write access to the "
    "API, may not do this",
}
"""Advice for the user, by HTTP status."""
LIMIT_ADVICE = f"end a machine that is not needed, or ask {TITLE} for a higher limit"


def reason_in(answer: HttpResponse) -> str:
    """Return the reason in the body, on one line and cut short; empty for anything that RunPod itself does
    not write.
    """
    match answer.content():
        case {"detail": str(detail), "errors": [*items]} if items:
            return short("; ".join([detail, *(str(item) for item in items[:ITEMS_MAX])]))
        case {"detail": str(text)} | {"title": str(text)}:
            return short(text)
        case _:
            return ""


def graphql_reason_in(answer: HttpResponse) -> str:
    """Return the first reason for which GraphQL refused; empty if it did not."""
    match answer.content():
        case {"errors": [{"message": str(text)}, *_]}:
            return short(text)
        case _:
            return ""


def _is_problem(answer: HttpResponse) -> bool:
    """Return whether the body is an error of RunPod's own, with the status that it was sent with."""
    match answer.content():
        case {"title": str(), "status": int(status)}:
            return status == answer.status
        case _:
            return False


def _by_words(*statuses: int) -> tuple[CreateRefusal, ...]:
    """Return what the wording of a reason means with these statuses. Money is looked for before capacity,
    because a balance can be "insufficient for this capacity"; the account's limit before both."""
    return (
        CreateRefusal(LimitReached, statuses, _LIMIT, LIMIT_ADVICE, is_own=True),
        CreateRefusal(NoFunds, statuses, _FUNDS, ADVICE[402], is_own=True),
        CreateRefusal(NoCapacity, statuses, _CAPACITY, is_own=True),
    )


REFUSALS = Refusals(
    TITLE,
    ADDRESS,
    ADVICE,
    reason_in,
    _is_problem,
    creation=(
        CreateRefusal(NoFunds, (402,), advice=ADVICE[402]),
        CreateRefusal(MaybeOurFault, (403,), advice=ADVICE[403], is_own=True),
        *_by_words(400),
        CreateRefusal(MaybeOurFault, (400,), is_own=True),
    ),
)
GRAPHQL_REFUSALS = replace(
    REFUSALS, reason_in=graphql_reason_in, is_own=lambda answer: True, creation=_by_words(*range(200, 300))
)
"""The same for GraphQL, which refuses with status 200."""
