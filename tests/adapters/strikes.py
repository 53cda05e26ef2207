"""What may befall the machines of a provider, and where it cannot happen. Every test of a kill matrix is
marked with what it does to which providers; `test_strikes.py` compares the marks with this table.
"""

from enum import StrEnum

import pytest


class Strike(StrEnum):
    SILENCE = "a create call is answered by silence"
    TWICE = "a machine is created twice"
    TAKEN = "a machine is taken away without notice"
    NOTICE = "a machine is taken away with notice"
    STUCK = "a machine boots for ever"
    UNLISTED = "a machine is gone from the list but alive"
    CUT_LIST = "the list is cut short"
    TOO_MANY = "requests are answered 429"
    BROKE = "the balance is 0"
    REBORN = "a machine that was gone comes back"


IMPOSSIBLE = {
    ("local", Strike.UNLISTED): "list and get read the same folder of the pod",
    (
        "local",
        Strike.CUT_LIST,
    ): "the list is the folders of this machine, which are read at once or not at all",
    ("local", Strike.TOO_MANY): "nothing is requested of anybody",
    ("local", Strike.BROKE): "this machine is not paid for",
    ("local", Strike.REBORN): "what is gone was killed and deleted, and nothing starts it again",
    ("lambda", Strike.BROKE): "machines are billed afterwards, and the API knows no balance",
    ("kubernetes", Strike.BROKE): "a cluster has no balance",
    ("ssh", Strike.STUCK): "a machine of one's own is not started for a run",
    ("ssh", Strike.UNLISTED): "each machine is asked by itself, for the list as for one pod",
    ("ssh", Strike.TOO_MANY): "there is no API that counts requests",
    ("ssh", Strike.BROKE): "a machine of one's own is not rented",
}
"""Why a strike cannot occur at a provider."""


def strikes(strike: Strike, *providers: str) -> pytest.MarkDecorator:
    """Return the mark of a test that strikes these providers."""
    return pytest.mark.strike(strike, *providers)
