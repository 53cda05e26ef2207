"""Meaning of the error responses of Kubernetes' API: a `Status` object with a reason, which is reliable; its
message is for people.
"""

from typing import Any

from prime_train.errors import ExternalError, LimitReached, PermanentError, TemporaryError
from prime_train.http import HttpResponse, failure
from prime_train.providers.kubernetes.settings import SETTINGS, TITLE
from prime_train.providers.rental.reasons import answered, quoted, short

ADVICE = {
    401: "the cluster does not accept the login; check the kubeconfig's user",
    403: "the user lacks a right; docs/kubernetes.md has the Role that it needs",
}
QUOTA_WORDS = "exceeded quota"
QUOTA_ADVICE = "end a machine that is not needed, or raise the namespace's ResourceQuota"


class Forbidden(PermanentError):
    """The user lacks a right."""


def refusal(answer: HttpResponse) -> TemporaryError | PermanentError:
    """Return the error for a response that is not a success. A redirect or a proxy's error page proves
    nothing about machines.
    """
    if answer.status in ADVICE:
        kind = Forbidden if answer.status == 403 else PermanentError
        return kind(f"{answered(answer, reason_in(answer))}: {ADVICE[answer.status]}")
    if 300 <= answer.status < 400:
        return PermanentError(
            f"{answer.what} was answered with a redirect ({answer.status}); check the cluster's server in "
            "the kubeconfig"
        )
    if answer.status == 404 and not code_in(answer):
        return TemporaryError(
            f"{answer.what} was answered with 404, but not by {TITLE}; check the cluster's server in the "
            "kubeconfig"
        )
    if answer.status == 410 or code_in(answer) in ("Timeout", "ServerTimeout", "Conflict"):
        return TemporaryError(answered(answer, reason_in(answer)), delay_s=answer.delay_s)
    return failure(answer, reason_in(answer))


def create_refusal(answer: HttpResponse) -> ExternalError:
    """Return the error for a Job that was not accepted: as `refusal`, but LimitReached and PermanentError
    guarantee that none was made.
    """
    if answer.status == 403 and QUOTA_WORDS in reason_in(answer):
        return LimitReached(f"{answered(answer, reason_in(answer))}; {QUOTA_ADVICE}")
    if answer.status == 404 and code_in(answer) == "NotFound":
        return PermanentError(
            f"the namespace does not exist{quoted(reason_in(answer))}; create it, or name another one in "
            f"{SETTINGS}"
        )
    return refusal(answer)


def is_unknown(answer: HttpResponse, name: str) -> bool:
    """Return whether Kubernetes itself reports that the object does not exist. A proxy's 404 page does not
    count: if it were taken as proof that a machine has ended, one wrong address would launch every run a
    second time.
    """
    return answer.status == 404 and code_in(answer) == "NotFound" and _details(answer).get("name") == name


def code_in(answer: HttpResponse) -> str:
    """Return the error's reason, such as NotFound; empty if the body is not an error of Kubernetes."""
    match answer.content():
        case {"kind": "Status", "status": "Failure", "reason": str(reason)}:
            return reason
        case _:
            return ""


def reason_in(answer: HttpResponse) -> str:
    """Return the message on one line and cut short; empty for anything that Kubernetes itself does not
    write.
    """
    match answer.content():
        case {"kind": "Status", "message": str(text)}:
            return short(text)
        case _:
            return ""


def _details(answer: HttpResponse) -> dict[str, Any]:
    match answer.content():
        case {"details": dict(details)}:
            return details
        case _:
            return {}
