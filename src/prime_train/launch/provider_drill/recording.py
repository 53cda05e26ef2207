"""Records what a provider's API answers, without secrets, and judges each answer by the table of known
ones.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prime_train.api_exchange import Exchange
from prime_train.providers.answers.hidden import ITEMS_KEPT, Hider
from prime_train.providers.answers.known import Judged, KnownAnswer, Verdict, answer_in, template_of
from prime_train.providers.answers.shape import walked, without_figures

ROWS_MAX = 1_000
"""Different answers that are kept; further ones are only judged."""
WHYS_MAX = 20
HEADERS = frozenset({"retry-after", "content-type", "location", "deprecation", "sunset"})
HEADER_PREFIXES = ("ratelimit", "x-ratelimit", "x-rate-limit")
NO_ANSWER = 0
NOT_JSON = ("the body is not JSON",)


@dataclass
class _Row:
    """An answer that came `times` times, first and last after so many seconds."""

    content: dict[str, object]
    first_s: float
    last_s: float
    times: int = 1


@dataclass
class _Seen:
    times: int = 0
    why: dict[str, None] = field(default_factory=dict)


class Recorder:
    """A witness. `secrets`: values that appear in no record. `clock` returns monotonic seconds.
    Thread-safe.
    """

    def __init__(
        self,
        table: Sequence[KnownAnswer],
        secrets: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table, self._clock, self._lock = table, clock, threading.Lock()
        self._hider = Hider(tuple(sorted((value for value in secrets if value), key=len, reverse=True)))
        self._began_s = clock()
        self._rows: dict[str, _Row] = {}
        self._seen: dict[int, _Seen] = {}
        self._unknown: dict[str, _Seen] = {}
        self._left_out = 0

    def __call__(self, exchange: Exchange) -> None:
        with self._lock:
            content = _content(exchange.body)
            asked = json.dumps(exchange.asked)
            call = f"{exchange.method} {template_of(self._table, exchange.method, exchange.path, asked)}"
            for status in exchange.earlier:
                self._judge(call, exchange, asked, status)
            if exchange.status != NO_ANSWER:
                self._judge(call, exchange, asked, exchange.status, content, is_read=True)
            self._keep(call, exchange, content)

    def judged(self) -> list[Judged]:
        """Return how the real answers were: a row for each answer of the table, in its order, and then those
        that it lacks.
        """
        with self._lock:
            known = [
                _judged(answer, self._seen.get(number, _Seen())) for number, answer in enumerate(self._table)
            ]
            if not self._table:
                return known
            why = ("this answer is not in the table",)
            more = [
                Judged(what, "not known before", "none", Verdict.DIFFERS, seen.times, why)
                for what, seen in self._unknown.items()
            ]
            return known + more

    def rows(self) -> list[dict[str, object]]:
        """Return the different answers in the order in which they first came."""
        with self._lock:
            return [
                {
                    **row.content,
                    "times": row.times,
                    "first_s": round(row.first_s, 1),
                    "last_s": round(row.last_s, 1),
                }
                for row in self._rows.values()
            ]

    @property
    def left_out(self) -> int:
        """Return how many answers were not kept, because there were too many different ones."""
        return self._left_out

    def text(self, text: str) -> str:
        """Return a text as it may be written into a record."""
        with self._lock:
            return self._hider.text(text)

    def _judge(
        self,
        call: str,
        exchange: Exchange,
        asked: str,
        status: int,
        content: object = None,
        *,
        is_read: bool = False,
    ) -> None:
        answer = answer_in(self._table, exchange.method, exchange.path, asked, status)
        if answer is None:
            self._unknown.setdefault(f"{call}: {status}", _Seen()).times += 1
            return
        seen = self._seen.setdefault(self._table.index(answer), _Seen())
        seen.times += 1
        if is_read and len(seen.why) < WHYS_MAX:
            faults = answer.faults(content) if content is not None else NOT_JSON if answer.fields else ()
            seen.why |= dict.fromkeys(self._hider.text(why) for why in faults)

    def _keep(self, call: str, exchange: Exchange, content: object) -> None:
        at_s = self._clock() - self._began_s
        row: dict[str, object] = {
            "method": exchange.method,
            "path": call.partition(" ")[2],
            "query": self._hider.hidden({name: _query(value) for name, value in exchange.parameters.items()}),
            "request": self._hider.hidden(exchange.asked),
            "status": exchange.status,
            "earlier": list(exchange.earlier),
            "headers": self._hider.headers(_worth_keeping(exchange.headers)),
            "body": self._hider.hidden(content)
            if content is not None
            else self._hider.text(exchange.body.decode(errors="replace")),
            "failure": self._hider.text(exchange.failure),
            "items_left_out": _left_out(content),
        }
        digest = hashlib.sha256(
            json.dumps([exchange.status, without_figures({**row, "headers": {}})]).encode()
        ).hexdigest()
        before = self._rows.get(digest)
        if before is not None:
            before.times, before.last_s = before.times + 1, at_s
        elif len(self._rows) < ROWS_MAX:
            self._rows[digest] = _Row(row, at_s, at_s)
        else:
            self._left_out += 1


def _judged(answer: KnownAnswer, seen: _Seen) -> Judged:
    verdict = Verdict.DIFFERS if seen.why else Verdict.SEEN if seen.times else Verdict.NOT_SEEN
    return Judged(
        f"{answer.call}: {answer.status_text}",
        answer.says,
        answer.source,
        verdict,
        seen.times,
        tuple(seen.why),
    )


def _content(body: bytes) -> object:
    """Return the parsed JSON; None for an empty body, null and anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _query(value: str | int | Sequence[str]) -> object:
    return list(value) if not isinstance(value, str | int) else value


def _worth_keeping(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in headers.items() if name in HEADERS or name.startswith(HEADER_PREFIXES)
    }


def _left_out(content: object) -> int:
    return sum(max(0, len(value) - ITEMS_KEPT) for _, value in walked(content) if isinstance(value, list))
