"""Meaning of Lambda Cloud's error responses. Their code is reliable; message and suggestion are for people
and may change.
"""

import re

from prime_train.errors import LimitReached, NoCapacity, NoFunds, PermanentError, TemporaryError
from prime_train.http import HttpResponse
from prime_train.providers.lambda_cloud.settings import ADDRESS, KEY, TITLE
from prime_train.providers.rental.reasons import CreateRefusal, Refusals, answered, short

NO_CAPACITY = "instance-operations/launch/insufficient-capacity"
QUOTA = "global/quota-exceeded"
UNKNOWN = "global/object-does-not-exist"
UNPAID = frozenset({"global/account-inactive", "global/invalid-address"})
"""Codes of an account that cannot pay: without a valid payment method, or billing address."""
UPSTREAM = "provider/"
"""Beginning of the codes of failures behind the API, which pass; whether a launch took effect is unknown."""
INTERNAL = "global/internal-error"
CODE_CHARS_MAX = 100

ADVICE = {
    401: f"the API key is unknown or has expired; check {KEY}",
    403: "the API key may not do this, or the account is not active; check its email address, payment method "
    "and billing address",
}
"""Advice for the user, by HTTP status."""
LIMIT_ADVICE = f"end a machine that is not needed, or ask {TITLE} for a higher quota"
FUNDS_ADVICE = "check the account's payment method and billing address"


class NotThere(NoCapacity):
    """Something that a launch names does not exist, such as our SSH key or the type of machine: nothing was
    created.
    """


def refusal(answer: HttpResponse) -> TemporaryError | PermanentError:
    """Return the error for a response that is not a success. A redirect or a proxy's error page proves
    nothing about machines.
    """
    code, reason = code_in(answer), reason_in(answer)
    if code.startswith(UPSTREAM) or code == INTERNAL:
        return TemporaryError(answered(answer, reason), delay_s=answer.delay_s)
    return REFUSALS.error(answer)


def code_in(answer: HttpResponse) -> str:
    """Return the error's code; empty if the body is not an error of Lambda Cloud."""
    match answer.content():
        case {"error": {"code": str(code), "message": str()}}:
            return code[:CODE_CHARS_MAX]
        case _:
            return ""


def reason_in(answer: HttpResponse) -> str:
    """Return code and message on one line and cut short; empty for anything that Lambda Cloud itself does not
    write.
    """
    match answer.content():
        case {"error": {"code": str(code), "message": str(text)}}:
            return short(f"{code[:CODE_CHARS_MAX]}: {text}")
        case _:
            return ""


def _coded(*codes: str) -> re.Pattern[str]:
    return re.compile(f"^(?:{'|'.join(map(re.escape, codes))}):")


_REFUSED = range(500)
REFUSALS = Refusals(
    TITLE,
    ADDRESS,
    ADVICE,
    reason_in,
    says_unknown=lambda answer: code_in(answer) == UNKNOWN,
    creation=(
        # What does not exist was there when the launch was prepared; the next try looks again.
        CreateRefusal(NotThere, _REFUSED, _coded(UNKNOWN)),
        CreateRefusal(NoCapacity, _REFUSED, _coded(NO_CAPACITY)),
        CreateRefusal(LimitReached, _REFUSED, _coded(QUOTA), LIMIT_ADVICE),
        CreateRefusal(NoFunds, _REFUSED, _coded(*UNPAID), FUNDS_ADVICE),
    ),
)
