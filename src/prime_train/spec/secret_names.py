"""Tells by its name whether a variable of a machine holds a secret, which a run gets only if its config names
it.
"""

import re

_SECRET = re.compile(
    r"(^|_)(TOKENS?|SECRETS?|PASS(WORD|WD|PHRASE)?|CREDENTIALS?|JWT|(API)?KEYS?)(_|$)", re.IGNORECASE
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable of this name is likely to hold a secret."""
    return _SECRET.search(name) is not None
