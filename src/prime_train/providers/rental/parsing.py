"""Reading of what a rental API answers: base of the models, and numbers that are believable.

Statuses, GPU types, images and providers are open sets. They are plain text here, so that a new value does
not make a response unreadable; the code that uses a value decides what an unknown one means. Other fields are
ignored, and optional fields may be null.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from prime_train.errors import TemporaryError
from prime_train.http import HttpResponse

COMPLAINT_CHARS_MAX = 200
ITEMS_MAX = 10_000

log = logging.getLogger(__name__)


def or_none(value: object, read: ValidatorFunctionWrapHandler) -> object:
    """Return the validated value, or None if it is not valid."""
    try:
        return read(value)
    except ValueError:
        return None


TextOrNone = Annotated[str | None, WrapValidator(or_none)]
Figure = Annotated[float | None, WrapValidator(or_none)]
"""A number that may be missing. A value of any other type is read as None, so that one invalid field of one
pod does not make the entire list unreadable.
"""


USD_MAX = 10_000.0
"""Upper bound of a believable price of a box in USD per hour."""
Usd = Annotated[float, Field(ge=0, le=USD_MAX, strict=True)]
"""A believable price: a number, not text. A row with any other value is left out."""
Count = Annotated[float, Field(ge=0, le=10**9)]
BILL_USD_MAX = 10_000_000.0
"""Upper bound of a believable total bill in USD."""
BilledUsd = Annotated[Annotated[float, Field(ge=0, le=BILL_USD_MAX)] | None, WrapValidator(or_none)]
"""A total bill in USD; None if the sum is not believable, because a wrong sum in the ledger would reduce the
recorded spending or end the run as over budget.
"""


class ResponsePart(BaseModel):
    """Base of all models of a rental API's responses."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


P = TypeVar("P", bound=ResponsePart)


def parsed(kind: type[P], content: object, what: str) -> P:
    """Return the response's content as `kind`. Raises TemporaryError that names the invalid field; it is then
    unknown whether a changing call took effect.
    """
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise TemporaryError(f"{what}: the answer cannot be parsed: {complaint(error)}") from None


def read_answer(kind: type[P], answer: HttpResponse) -> P:
    """Return the response as `kind`. Raises TemporaryError as `parsed` does."""
    return parsed(kind, answer.content(), answer.what)


def read_list(kind: type[P], answer: HttpResponse, name: str) -> list[P]:
    """Return the response's list of this name, each entry as `kind`. Raises TemporaryError if any of them
    cannot be read.
    """
    return [parsed(kind, item, answer.what) for item in items_in(answer, name)]


def items_in(answer: HttpResponse, name: str) -> list[object]:
    """Return the response's list of this name. Raises TemporaryError if it has none, or one that is too long
    to be believed.
    """
    content = answer.content()
    items = content.get(name) if isinstance(content, dict) else None
    if not isinstance(items, list) or len(items) > ITEMS_MAX:
        raise TemporaryError(f"{answer.what}: the answer cannot be parsed: it has no list of {name}")
    return items


def readable(kind: type[P], items: Sequence[object], title: str) -> list[P]:
    """Return the machines for rent that can be parsed, so that one invalid entry does not hide the others.
    Raises TemporaryError if none can. `title`: the provider.
    """
    good: list[P] = []
    invalid: list[str] = []
    for item in items:
        try:
            good.append(kind.model_validate(item))
        except ValidationError as error:
            invalid.append(complaint(error))
    if invalid and not good:
        raise TemporaryError(f"none of the {len(invalid)} machines for rent can be parsed: {invalid[0]}")
    if invalid:
        log.warning(
            "%d of %d machines for rent at %s cannot be parsed and are left out: %s",
            len(invalid),
            len(items),
            title,
            invalid[0],
        )
    return good


def complaint(error: ValidationError) -> str:
    """Return the field and reason of the first mistake, without the value, which may be anything."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"[:COMPLAINT_CHARS_MAX]


def believable_usd(figure: float | None) -> float:
    """Return a price in USD per hour, or 0 if it is missing or not believable."""
    usd = figure or 0.0
    return round(usd, 6) if 0 <= usd <= USD_MAX else 0.0


def second(text: str | None) -> int:
    """Return the second of an ISO 8601 time, as UTC if it names no zone. Return 0 if the time is missing,
    invalid, or in the year 1, which some providers use for a time that has not come.
    """
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return 0
    return max(0, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()))
