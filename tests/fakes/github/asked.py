"""A request whose route is known, and what may be answered to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import Pull, Repo
from tests.fakes.github.tokens import Token

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """`found`: what stands in the path, by name. `repo`: the one that the path names."""

    found: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    token: Token | None
    repo_found: Repo | None

    @property
    def repo(self) -> Repo:
        if self.repo_found is None:
            raise not_found()
        return self.repo_found

    @property
    def by(self) -> Token:
        if self.token is None:
            raise Refused(401, "Requires authentication")
        return self.token

    @property
    def json(self) -> Json:
        return dict(json.loads(self.body)) if self.body else {}

    def number(self, name: str) -> int:
        return int(self.found[name])

    def pull(self, name: str) -> Pull:
        if self.number(name) not in self.repo.pulls:
            raise not_found()
        return self.repo.pulls[self.number(name)]

    def flag(self, name: str, *, default: bool) -> bool:
        return bool(self.json.get(name, default))


@dataclass(frozen=True)
class Told:
    """An answer of another status than 200. `content`: None is no body at all, bytes are sent as they are."""

    status: int
    content: object = None


@dataclass(frozen=True)
class Page:
    """A list that is told page by page. `under`: the name of the list, where it is not the whole answer."""

    items: Sequence[Json]
    under: str = ""


Answered = Json | Page | Told
