"""The answers of each fake: what the adapters rely on, and in a table beside it, what only tests and other clients ask for.

Each answer names its source, or is a belief. A fake that answers anything that its table lacks records a violation.
"""

from functools import cache
from pathlib import Path

from prime_train.adapters.rental_api.answers import known_answers, read_answers
from prime_train.core.answers.known import KnownAnswer

HERE = Path(__file__).parent


@cache
def table_of(provider: str) -> tuple[KnownAnswer, ...]:
    """Return all answers of the provider's fake."""
    more = HERE / f"{provider}.toml"
    return (*(read_answers(more.read_text()) if more.exists() else ()), *known_answers(provider))
