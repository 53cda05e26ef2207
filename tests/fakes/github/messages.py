"""A request whose route is known, and the possible results of its handler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.github.refusals import Refused, not_found
from tests.fakes.github.repos import Pull, Repo
from tests.fakes.github.tokens import Token
from tests.fakes.http import Json, Request


@dataclass(frozen=True)
class Call:
    """A request. `token`: the token it was sent with; `repo_or_none`: the repository that the path names."""

    request: Request
    token: Token | None
    repo_or_none: Repo | None

    @property
    def params(self) -> Mapping[str, Any]:
        return self.request.params

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def body(self) -> Json:
        return dict(self.request.json or {})

    @property
    def repo(self) -> Repo:
        if self.repo_or_none is None:
            raise not_found()
        return self.repo_or_none

    @property
    def by(self) -> Token:
        if self.token is None:
            raise Refused(401, "Requires authentication")
        return self.token

    def number(self, name: str) -> int:
        return int(self.params[name])

    def pull(self, name: str) -> Pull:
        if self.number(name) not in self.repo.pulls:
            raise not_found()
        return self.repo.pulls[self.number(name)]

    def flag(self, name: str, *, default: bool) -> bool:
        return bool(self.body.get(name, default))


@dataclass(frozen=True)
class Reply:
    """A response with a status other than 200. `content`: None is no body, bytes are sent unchanged."""

    status: int
    content: object = None


@dataclass(frozen=True)
class Page:
    """A list that is returned page by page. `under`: the name of the list, if it is not the entire
    response.
    """

    items: Sequence[Json]
    under: str = ""


Result = Json | Page | Reply
