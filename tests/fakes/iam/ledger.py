"""What roles did on a running server, and what they were refused."""

from collections.abc import Sequence
from typing import Protocol

import requests

from tests.fakes.iam.policies import Right

PATH_RIGHTS = "/_rights"
ANSWER_S_MAX = 30.0
LENT = "PodRole"
"""Part of the names of roles whose keys are lent, with which tests try what those must not do."""


class Server(Protocol):
    @property
    def url(self) -> str: ...


def used(server: Server) -> set[tuple[str, Right]]:
    """Return the rights that were used so far, each with the name of its role."""
    return {(role, Right(action, resource)) for role, action, resource in _told(server, "used")}


def refused_to_functions(server: Server) -> Sequence[str]:
    """Return what roles of functions wanted and were not allowed."""
    return [
        f"{role}: {action} {resource} {context}"
        for role, action, resource, context in _told(server, "refused")
        if LENT not in role
    ]


def _told(server: Server, what: str) -> Sequence[Sequence[str]]:
    told: Sequence[Sequence[str]] = requests.get(f"{server.url}{PATH_RIGHTS}", timeout=ANSWER_S_MAX).json()[
        what
    ]
    return told
