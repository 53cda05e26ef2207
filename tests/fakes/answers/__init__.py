"""The answers of each fake: what the adapters rely on, and in a table beside it, what only tests and other
clients ask for.

Each answer names its source, or is a belief. A fake that answers anything that its table lacks records a
violation.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from prime_train.providers.answers.known import KnownAnswer, answer_in
from prime_train.providers.rental.answers import known_answers, read_answers
from tests.fakes.http import Request, Response

HERE = Path(__file__).parent


@cache
def table_of(provider: str) -> tuple[KnownAnswer, ...]:
    """Return all answers of the provider's fake."""
    more = HERE / f"{provider}.toml"
    return (*(read_answers(more.read_text()) if more.exists() else ()), *known_answers(provider))


def has_answer(
    table: Sequence[KnownAnswer], request: Request, response: Response, *, prefix: str = ""
) -> bool:
    """Return whether the table has this answer. `prefix`: the beginning of all paths, which the request
    leaves out.
    """
    asked = request.body.decode(errors="replace")
    return answer_in(table, request.method, prefix + request.path, asked, response.status) is not None
