"""Rate limits of a token: requests per hour, and the secondary limits per minute."""

from collections import deque
from dataclasses import dataclass, field

from tests.fakes.github.refusals import Refused
from tests.fakes.github.tokens import Kind, Token

HOUR_S = 3600.0
MINUTE_S = 60.0
PER_HOUR = {Kind.JOB: 1000, Kind.INSTALLATION: 5000, Kind.PERSON: 5000}
PER_HOUR_UNKNOWN = 60
PER_HOUR_APP = 5000
POINTS = {"GET": 1}
WRITE_POINTS = 5
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."


@dataclass
class Purse:
    """The use of one token in its hour; `times` are times and points of its last minute."""

    owner: str
    limit: int
    reset_s: float
    used: int = 0
    times: deque[tuple[float, int, bool]] = field(default_factory=deque)

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    def headers(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-reset": str(int(self.reset_s)),
            "x-ratelimit-resource": "core",
        }

    def json(self) -> dict[str, object]:
        return {
            "limit": self.limit,
            "remaining": self.remaining,
            "reset": int(self.reset_s),
            "used": self.used,
        }


@dataclass
class Limits:
    """The limits, which a test may change. Not thread-safe. `status` is 403 or 429; GitHub uses both."""

    status: int = 403
    points_per_minute: int = 900
    content_per_minute: int = 80
    purses: dict[str, Purse] = field(default_factory=dict)

    def purse(self, token: Token | None, now_s: float, *, by_app: bool = False) -> Purse:
        """Return the token's use. `by_app`: that of an app itself, which sends a JSON web token."""
        name = token.value if token else "app" if by_app else ""
        limit = PER_HOUR[token.kind] if token else PER_HOUR_APP if by_app else PER_HOUR_UNKNOWN
        owner = (
            ("user" if token.kind is Kind.PERSON else "installation") + f" ID {token.number}"
            if token
            else "127.0.0.1"
        )
        found = self.purses.get(name)
        if found is None or now_s >= found.reset_s:
            found = self.purses[name] = Purse(owner, limit, now_s + HOUR_S)
        return found

    def take(self, purse: Purse, method: str, now_s: float, *, content: bool) -> None:
        """Count a request; refuse it if it exceeds a limit. `content`: the request creates something that
        people are notified of.
        """
        if purse.remaining == 0:
            raise Refused(self.status, f"API rate limit exceeded for {purse.owner}.")
        while purse.times and purse.times[0][0] <= now_s - MINUTE_S:
            purse.times.popleft()
        purse.used += 1
        purse.times.append((now_s, POINTS.get(method, WRITE_POINTS), content))
        points = sum(each for _, each, _ in purse.times)
        contents = sum(each for _, _, each in purse.times)
        if points > self.points_per_minute or contents > self.content_per_minute:
            raise Refused(self.status, SECONDARY, headers={"retry-after": "60"})
