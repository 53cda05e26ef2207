"""How the fake says no: a status and a body in one of Prime's two forms."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import ValidationError


class Refused(Exception):
    """The request is answered with this; `detail` is for people, and all that tells why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class InvalidForm(StrEnum):
    """The two bodies of a 422."""

    ERRORS = "errors"
    DETAIL = "detail"


def invalid(error: ValidationError, form: InvalidForm) -> dict[str, object]:
    """The body of a 422 for a request's body that was not understood."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    match form:
        case InvalidForm.ERRORS:
            return {"errors": [{"param": _dotted(each["loc"]), "details": each["msg"]} for each in found]}
        case InvalidForm.DETAIL:
            return {"detail": [{"type": each["type"], "loc": ["body", *each["loc"]], "msg": each["msg"]} for each in found]}


def _dotted(place: Sequence[int | str]) -> str:
    return ".".join(str(step) for step in place)
