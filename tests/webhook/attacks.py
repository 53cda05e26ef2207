"""What an attacker, or a compromised machine, may send: one table for every entry of the control plane.

An attacker without a key, a machine with that of its own attempt, and attackers who repeat intercepted
requests that were signed with the right key. None of it may change anything, and every response has the
common form.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Flag, auto

from prime_train.runs.run import Change
from prime_train.runs.signing import MARKET_PATH, market_key
from prime_train.runs.wire import (
    BODY_BYTES_MAX,
    CLOCK_SKEW_S_MAX,
    SIGNATURE_HEADER,
    STORE_BODY_BYTES_MAX,
    STORE_PATH,
    TIMESTAMP_HEADER,
    Nonce,
    attempt_key,
    operator_key,
    sign,
)
from prime_train.stores.remote_calls import ABOUT, OPENING, STORE_METHODS
from tests import builders as b
from tests.webhook.calls import ATTEMPT, commit, heartbeat, held, last_heartbeat

OTHER = "other-1"
"""A run like the first, of another user."""
MINE = f"/v1/runs/{b.RUN_ID}/{ATTEMPT}"
THEIRS = f"/v1/runs/{OTHER}/{ATTEMPT}"
SAID = heartbeat(7).model_dump_json().encode()
"""The newest heartbeat: repeating it changes nothing."""
NEW = heartbeat(8).model_dump_json().encode()
JSON = ("content-type", "application/json")


class Door(Flag):
    """The entries. A connection passes on what no event can hold, and a function's address what its gateway
    lets through.
    """

    CONNECTION = auto()
    EVENT = auto()
    ADDRESS = auto()
    STILL_CLOCK = CONNECTION | EVENT
    ANY = CONNECTION | EVENT | ADDRESS


@dataclass(frozen=True)
class Sent:
    """A request as sent: `target` with its query, each header as often as it is given."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


@dataclass(frozen=True)
class Attack:
    """An attack. `statuses`: the expected ones, with `said` in the response; 200 is for requests that change
    nothing. `told`: the response is the job of the signer's attempt, with all its secrets.
    """

    name: str
    sent: Sent
    statuses: tuple[int, ...]
    message: str = ""
    door: Door = Door.ANY
    reported: bool = False


@dataclass(frozen=True)
class Signer:
    """A signer: `key` at `at_s`."""

    key: str
    at_s: int

    def headers(self, method: str, path: str, body: bytes) -> tuple[tuple[str, str], ...]:
        signature = sign(self.key, self.at_s, method, path, body)
        return JSON, (TIMESTAMP_HEADER, str(self.at_s)), (SIGNATURE_HEADER, signature)

    def sent(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        target: str = "",
        extra: tuple[tuple[str, str], ...] = (),
    ) -> Sent:
        """Return the request signed for `path`, and sent to `target` if that differs."""
        return Sent(method, target or path, (*self.headers(method, path, body), *extra), body)


@dataclass(frozen=True)
class Keys:
    """All keys and signers, at the time of the attacked server. `mine` is a machine's, the first run's
    newest.
    """

    master: bytes
    now_s: int

    def of(self, run: str, attempt: int) -> Signer:
        return Signer(attempt_key(self.master, run, attempt), self.now_s)

    @property
    def mine(self) -> Signer:
        return self.of(b.RUN_ID, ATTEMPT)

    @property
    def operator(self) -> Signer:
        return Signer(operator_key(self.master), self.now_s)

    @property
    def market(self) -> Signer:
        return Signer(market_key(self.master), self.now_s)


def _forged(keys: Keys) -> Iterator[Attack]:
    mine = keys.mine
    path, needed = f"{MINE}/heartbeat", "are required"
    good = dict(mine.headers("POST", path, NEW))
    signature = good[SIGNATURE_HEADER]
    yield Attack("no signature at all", Sent("POST", path, (JSON,), NEW), (401,), needed)
    for name, unusual in {
        "an empty signature": "",
        "a signature without its version": signature[3:],
        "a signature of another version": "v0=" + signature[3:],
        "a signature in upper case": "v1=" + signature[3:].upper(),
        "a signature cut short": signature[:-1],
        "a signature with a letter too many": signature + "0",
        "a signature of zeros": "v1=" + "0" * 64,
        "a signature of letters beyond ASCII": "v1=" + "\xe9" * 64,
        "a signature of a megabyte": "v1=" + "0" * 2**20,
    }.items():
        door = Door.EVENT if len(unusual) > 1000 else Door.ANY
        yield Attack(
            name,
            Sent("POST", path, (JSON, (TIMESTAMP_HEADER, str(mine.at_s)), (SIGNATURE_HEADER, unusual)), NEW),
            (401,),
            door=door,
        )
    for name, unusual in {
        "an empty timestamp": "",
        "a timestamp of a thousand digits": "9" * 1000,
        "a timestamp with a sign": f"+{mine.at_s}",
        "a timestamp with a leading zero": f"0{mine.at_s}",
        "a timestamp with a fraction": f"{mine.at_s}.0",
        "a timestamp that is no number": "nan",
        "a timestamp of odd digits": "\xb2\xb3",
    }.items():
        yield Attack(
            name,
            Sent("POST", path, (JSON, (TIMESTAMP_HEADER, unusual), (SIGNATURE_HEADER, signature)), NEW),
            (401,),
            needed,
        )
    for name, key in {"nothing": "", "the master key itself": keys.master.hex(), "a guess": "0" * 64}.items():
        yield Attack(f"signed by {name}", Signer(key, mine.at_s).sent("POST", path, NEW), (401,), "signature")
    yield Attack(
        "another body than was signed",
        Sent("POST", path, tuple(good.items()), NEW + b" "),
        (401,),
        "signature",
    )


def _replayed(keys: Keys) -> Iterator[Attack]:
    """Yield repetitions within the clock's tolerance; each names why it does no harm."""
    mine, operator = keys.mine, keys.operator
    now = held()
    change = Change(now.run, now.lease, lease_version=0)
    again = {
        "create": (now.run,),  # there is one of that name
        "save": (change,),  # the run has had that version for long
        "mark_sent": ("there-is-no-such-alert", None, []),
    }
    yield Attack(
        "a heartbeat again, whose number has been",
        mine.sent("POST", f"{MINE}/heartbeat", SAID),
        (200,),
        '"repeated"',
    )
    older = commit(5).model_dump_json().encode()
    yield Attack(
        "a commit again, whose step is the newest",
        mine.sent("POST", f"{MINE}/commit", older),
        (200,),
        '"repeated"',
    )
    yield Attack(
        "the market again, which is only read", keys.market.sent("GET", MARKET_PATH), (200,), '"losses"'
    )
    yield Attack(
        "a bootstrap again, which only reads",
        mine.sent("GET", f"{MINE}/bootstrap"),
        (200,),
        '"resume"',
        reported=True,
    )
    for name, arguments in again.items():
        body = STORE_METHODS[name].takes.dump_json(arguments)
        yield Attack(
            f"the operator's {name} again, which finds it done",
            operator.sent("POST", STORE_PATH + name, body),
            (200,),
            "",
        )
    late = Signer(mine.key, mine.at_s - 3600)
    yield Attack(
        "a heartbeat again, an hour later", late.sent("POST", f"{MINE}/heartbeat", NEW), (401,), "clock"
    )


def _of_an_old_attempt(keys: Keys) -> Iterator[Attack]:
    mine, old = keys.mine, keys.of(b.RUN_ID, 1)
    before = f"/v1/runs/{b.RUN_ID}/1"
    for verb, body in {
        "heartbeat": heartbeat(8, attempt=1),
        "commit": commit(10, attempt=1),
        "exit": last_heartbeat(8, attempt=1),
    }.items():
        raw = body.model_dump_json().encode()
        yield Attack(
            f"a {verb} of the attempt before", old.sent("POST", f"{before}/{verb}", raw), (409,), '"fenced"'
        )
    yield Attack(
        "a bootstrap of the attempt before", old.sent("GET", f"{before}/bootstrap"), (409,), '"fenced"'
    )
    yield Attack(
        "keys to the bucket for the attempt before", old.sent("POST", f"{before}/keys"), (409,), '"fenced"'
    )
    yield Attack(
        "the newest attempt's heartbeat, signed by the one before",
        old.sent("POST", f"{MINE}/heartbeat", NEW),
        (401,),
        "signature",
    )
    new = f"/v1/runs/{b.RUN_ID}/{ATTEMPT + 1}/heartbeat"
    ahead = heartbeat(1, attempt=ATTEMPT + 1).model_dump_json().encode()
    yield Attack(
        "a heartbeat of the next attempt, signed by this one",
        mine.sent("POST", new, ahead),
        (401,),
        "signature",
    )


def _off_by_a_clock(keys: Keys) -> Iterator[Attack]:
    mine = keys.mine
    for name, off_s, statuses in (
        ("just too slow", -CLOCK_SKEW_S_MAX - 1, (401,)),
        ("as slow as may be, saying nothing new", -CLOCK_SKEW_S_MAX, (200,)),
        ("as fast as may be, saying nothing new", CLOCK_SKEW_S_MAX, (200,)),
        ("just too fast", CLOCK_SKEW_S_MAX + 1, (401,)),
    ):
        shifted = Signer(mine.key, mine.at_s + off_s)
        yield Attack(
            f"a clock {name}",
            shifted.sent("POST", f"{MINE}/heartbeat", SAID),
            statuses,
            door=Door.STILL_CLOCK,
        )
    for name, at_s in {"at the beginning of time": 0, "at the end of time": 10**12 - 1}.items():
        yield Attack(
            f"a clock {name}", Signer(mine.key, at_s).sent("POST", f"{MINE}/heartbeat", NEW), (401,), "clock"
        )


def _of_another_route(keys: Keys) -> Iterator[Attack]:
    mine, operator, watcher, market = keys.mine, keys.operator, keys.of("canary", 1), keys.market
    bootstrap = mine.headers("GET", f"{MINE}/bootstrap", b"")
    yield Attack(
        "a bootstrap's signature on a heartbeat",
        Sent("POST", f"{MINE}/heartbeat", bootstrap, NEW),
        (401,),
        "signature",
    )
    signed = mine.headers("POST", f"{MINE}/heartbeat", NEW)
    for verb in ("commit", "exit", "keys"):
        yield Attack(
            f"a heartbeat's signature on {verb}",
            Sent("POST", f"{MINE}/{verb}", signed, NEW),
            (401,),
            "signature",
        )
    for name in (*STORE_METHODS, ABOUT, OPENING, "nothing_of_that_name"):
        yield Attack(
            f"a machine's key on the operator's {name}",
            mine.sent("POST", STORE_PATH + name, b"[]"),
            (401,),
            "signature",
        )
        yield Attack(
            f"the market's key on the operator's {name}",
            market.sent("POST", STORE_PATH + name, b"[]"),
            (401,),
            "signature",
        )
    for verb in ("heartbeat", "commit", "exit", "keys"):
        yield Attack(
            f"the market's key on {verb}", market.sent("POST", f"{MINE}/{verb}", NEW), (401,), "signature"
        )
    yield Attack(
        "the market's key on a bootstrap", market.sent("GET", f"{MINE}/bootstrap"), (401,), "signature"
    )
    for name, signer in {"a machine's": mine, "the operator's": operator, "the watcher's": watcher}.items():
        yield Attack(f"{name} key on the market", signer.sent("GET", MARKET_PATH), (401,), "signature")
    yield Attack(
        "the watcher's key on the operator's list",
        watcher.sent("POST", f"{STORE_PATH}list_runs", b"[]"),
        (401,),
        "signature",
    )
    yield Attack(
        "the operator's key on a heartbeat",
        operator.sent("POST", f"{MINE}/heartbeat", NEW),
        (401,),
        "signature",
    )
    yield Attack(
        "the operator's key on keys to the bucket", operator.sent("POST", f"{MINE}/keys"), (401,), "signature"
    )
    yield Attack(
        "the operator's key on a bootstrap", operator.sent("GET", f"{MINE}/bootstrap"), (401,), "signature"
    )
    nonce = Nonce(nonce="n").model_dump_json().encode()
    yield Attack("a machine's key on the canary", mine.sent("POST", "/v1/canary", nonce), (401,), "signature")


def _of_another_run(keys: Keys) -> Iterator[Attack]:
    mine = keys.mine
    theirs = heartbeat(8, run=OTHER).model_dump_json().encode()
    for verb, body in {
        "heartbeat": theirs,
        "exit": theirs,
        "commit": commit(10, run=OTHER).model_dump_json().encode(),
    }.items():
        yield Attack(
            f"another run's {verb} with my key",
            mine.sent("POST", f"{THEIRS}/{verb}", body),
            (401,),
            "signature",
        )
        yield Attack(
            f"another run's {verb} on my path", mine.sent("POST", f"{MINE}/{verb}", body), (422,), "run:"
        )
    yield Attack(
        "another run's bootstrap with my key", mine.sent("GET", f"{THEIRS}/bootstrap"), (401,), "signature"
    )
    yield Attack(
        "keys to another run's files with my key", mine.sent("POST", f"{THEIRS}/keys"), (401,), "signature"
    )
    for key in (
        commit(10, run=OTHER).key,
        f"runs/{b.RUN_ID}/manifests/../../{OTHER}/manifests/000000000010-e{ATTEMPT}.json",
        f"runs/{b.RUN_ID}/manifests/000000000010-e{ATTEMPT + 1}.json",
        f"runs/{b.RUN_ID}/manifests/000000000010-e{ATTEMPT}.json\x00",
        "s3://elsewhere/manifest.json",
    ):
        body = commit(10, key=key).model_dump_json().encode()
        yield Attack(f"a commit of {key!r}", mine.sent("POST", f"{MINE}/commit", body), (422,), "key:")
    unknown = keys.of("nobody-1", 1)
    raw = heartbeat(8, run="nobody-1", attempt=1).model_dump_json().encode()
    yield Attack(
        "a heartbeat of a run that nobody has",
        unknown.sent("POST", "/v1/runs/nobody-1/1/heartbeat", raw),
        (409,),
        '"fenced"',
    )


def _by_another_path(keys: Keys) -> Iterator[Attack]:
    mine, operator = keys.mine, keys.operator
    nothing = "nothing at this path"
    for name, path, target in (
        ("a slash at the end", f"{MINE}/heartbeat/", ""),
        ("two slashes at the front", f"/{MINE}/heartbeat", ""),
        ("two slashes within", f"/v1/runs//{b.RUN_ID}/{ATTEMPT}/heartbeat", ""),
        ("upper case", MINE.upper() + "/HEARTBEAT", ""),
        ("an upper case run", f"/v1/runs/{b.RUN_ID.upper()}/{ATTEMPT}/heartbeat", ""),
        ("odd digits", f"/v1/runs/{b.RUN_ID}/\uff12/heartbeat", f"/v1/runs/{b.RUN_ID}/%EF%BC%92/heartbeat"),
        ("a sign before the attempt", f"/v1/runs/{b.RUN_ID}/+2/heartbeat", ""),
        ("a leading zero", f"/v1/runs/{b.RUN_ID}/02/heartbeat", ""),
        ("an attempt that no number holds", f"/v1/runs/{b.RUN_ID}/{'9' * 60}/heartbeat", ""),
        (
            "two dots",
            f"/v1/runs/{b.RUN_ID}/{ATTEMPT}/heartbeat/../bootstrap",
            f"{MINE}/heartbeat/%2e%2e/bootstrap",
        ),
        (
            "dots to another run",
            f"/v1/runs/{b.RUN_ID}/../{OTHER}/{ATTEMPT}/heartbeat",
            f"/v1/runs/{b.RUN_ID}/%2e%2e/{OTHER}/{ATTEMPT}/heartbeat",
        ),
        ("a zero byte", f"{MINE}/heartbeat\x00", f"{MINE}/heartbeat%00"),
        ("a line's end", f"{MINE}/heartbeat\r\nx: y", f"{MINE}/heartbeat%0d%0ax:%20y"),
        (
            "a backslash",
            f"/v1/runs\\{b.RUN_ID}\\{ATTEMPT}\\heartbeat",
            f"/v1/runs%5C{b.RUN_ID}%5C{ATTEMPT}%5Cheartbeat",
        ),
        ("a semicolon", f"{MINE}/heartbeat;a=b", ""),
        ("half a character", f"{MINE}/heartbeat\ufffd", f"{MINE}/heartbeat%ff"),
        ("a script", f"{MINE}/<script>alert(1)</script>", f"{MINE}/%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
        ("a thousand characters", f"/v1/runs/{'x' * 1000}/2/heartbeat", ""),
        ("a version of later", f"/v2{MINE[3:]}/heartbeat", ""),
        ("nothing known", "/nothing", ""),
    ):
        yield Attack(f"a path with {name}", mine.sent("POST", path, NEW, target=target), (404,), nothing)
    encoded = MINE.replace("runs", "%72uns")
    yield Attack(
        "a path in other letters, which is the same path",
        mine.sent("POST", f"{MINE}/heartbeat", SAID, target=f"{encoded}/heartbeat"),
        (200, 404),
    )
    slashed = f"{MINE}%2Fbeat"
    yield Attack(
        "a slash in other letters, which is the same path",
        mine.sent("POST", f"{MINE}/heartbeat", SAID, target=slashed),
        (200, 404),
    )
    query = f"{MINE}/heartbeat?run={OTHER}&attempt=9&path=/v1/store/save"
    yield Attack(
        "a query, which nobody reads",
        mine.sent("POST", f"{MINE}/heartbeat", SAID, target=query),
        (200,),
        '"repeated"',
    )
    for name in ("", "__class__", "commit/", "../runs", "x" * 33, "save\uff3f", "save?"):
        target = STORE_PATH + name.replace("\uff3f", "%EF%BC%BF").replace("?", "%3F").replace("..", "%2e%2e")
        sent = operator.sent("POST", STORE_PATH + name, b"[]", target=target)
        yield Attack(f"the operator's {name!r}", sent, (404,))


def _by_another_method(keys: Keys) -> Iterator[Attack]:
    mine = keys.mine
    for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "GET"):
        yield Attack(f"a heartbeat by {method}", mine.sent(method, f"{MINE}/heartbeat", NEW), (405,))
    yield Attack(
        "a heartbeat by TRACE", mine.sent("TRACE", f"{MINE}/heartbeat", NEW), (405,), door=Door.STILL_CLOCK
    )
    override = (("x-http-method-override", "GET"), ("x-http-method", "GET"))
    yield Attack(
        "a bootstrap by a POST that calls itself a GET",
        mine.sent("POST", f"{MINE}/bootstrap", extra=override),
        (405,),
    )
    crossing = (("origin", "https://evil.example"), ("access-control-request-method", "POST"))
    yield Attack("a browser that asks whether it may", Sent("OPTIONS", f"{MINE}/heartbeat", crossing), (405,))
    signed = mine.headers("GET", f"{MINE}/heartbeat", NEW)
    yield Attack(
        "a heartbeat by POST that was signed for GET",
        Sent("POST", f"{MINE}/heartbeat", signed, NEW),
        (401,),
        "signature",
    )


def _with_an_odd_body(keys: Keys) -> Iterator[Attack]:
    mine, operator = keys.mine, keys.operator
    good = json.loads(NEW)
    deep = b"[" * 30_000 + b"]" * 30_000
    text = json.dumps(good | {"note": "?"}).encode()
    bodies = {
        "nothing": b"",
        "a number": b"8",
        "a text": b'"heartbeat"',
        "invalid UTF-8": text.replace(b"?", b"\xff\xfe"),
        "half a pair of surrogates": text.replace(b"?", rb"\ud800"),
        "half a pair of surrogates in a name": text.replace(b'"note"', rb'"\udfff"'),
        "UTF-16": NEW.decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + NEW,
        "a zero byte at its end": NEW + b"\x00",
        "a second object": NEW + NEW,
        "a comment": NEW[:-1] + b"/* */}",
        "NaN for a number of times": json.dumps(good | {"step": float("nan")}).encode(),
        "an infinite number of steps": re.sub(rb'"step": ?10\b', b'"step":1e999', NEW),
        "minus infinity for a number of times": json.dumps(good | {"seq": float("-inf")}).encode(),
        "a number of five thousand digits": re.sub(rb'"seq": ?8\b', b'"seq":' + b"9" * 5000, NEW),
        "thirty thousand lists in each other": deep,
        "thirty thousand lists in a field": re.sub(rb'"saves": ?null', b'"saves":' + deep, NEW),
        "ten thousand objects in each other": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        "ten thousand unknown fields": json.dumps({f"f{number}": 1 for number in range(5_000)}).encode(),
        "another run's name after its own": NEW[:-1] + b',"run":"' + OTHER.encode() + b'"}',
        "a script for a phase": json.dumps(good | {"phase": "<script>alert(1)</script>"}).encode(),
        "a prototype": json.dumps(good | {"__proto__": {"outcome": "ok"}, "__class__": "x"}).encode(),
        "a true number": json.dumps(good | {"attempt": True}).encode(),
        "an exit by an unknown cause": json.dumps(good | {"exit": {"cause": "../../etc/passwd"}}).encode(),
    }
    for name, body in bodies.items():
        yield Attack(
            f"a body with {name}", mine.sent("POST", f"{MINE}/heartbeat", body), (422,), door=_as_it_is(body)
        )
    gzipped, packed_so = gzip.compress(NEW), (("content-encoding", "gzip"),)
    yield Attack(
        "a gzipped body",
        mine.sent("POST", f"{MINE}/heartbeat", gzipped, extra=packed_so),
        (422,),
        door=_as_it_is(gzipped),
    )
    bomb = gzip.compress(b"0" * 2**22)
    large = mine.sent("POST", f"{MINE}/heartbeat", bomb, extra=packed_so)
    yield Attack("a gzipped body that would be large", large, (422,), door=_as_it_is(bomb))
    yield Attack(
        "a body of a byte too many",
        mine.sent("POST", f"{MINE}/heartbeat", NEW.ljust(BODY_BYTES_MAX + 1)),
        (413,),
        "65536",
    )
    yield Attack(
        "a hundred thousand lists in each other",
        mine.sent("POST", f"{MINE}/heartbeat", b"[" * 100_000),
        (413,),
    )
    for name, body in {
        "a hundred thousand lists in each other": b"[" * 100_000 + b"]" * 100_000,
        "a run that is none": b'[{"run": 1}]',
        "half a pair of surrogates": rb'["\ud800"]',
        "too few words": b"[]",
        "an object": b"{}",
    }.items():
        yield Attack(
            f"the operator's create of {name}", operator.sent("POST", f"{STORE_PATH}create", body), (422,)
        )
    huge = b" " * (STORE_BODY_BYTES_MAX + 1)
    yield Attack(
        "the operator's create of a byte too many", operator.sent("POST", f"{STORE_PATH}create", huge), (413,)
    )


def _as_it_is(body: bytes) -> Door:
    """Return the entries that pass the body on byte by byte: for a gateway, JSON has to be text."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return Door.STILL_CLOCK
    return Door.ANY


def _with_odd_headers(keys: Keys) -> Iterator[Attack]:
    mine = keys.mine
    good = mine.headers("POST", f"{MINE}/heartbeat", NEW)
    forged = (SIGNATURE_HEADER, "v1=" + "0" * 64)
    many = tuple((f"x-{number}", "y") for number in range(5000))
    yield Attack(
        "a forged signature after a good one",
        Sent("POST", f"{MINE}/heartbeat", (*good, forged), NEW),
        (401,),
        door=Door.STILL_CLOCK,
    )
    late = (TIMESTAMP_HEADER, str(mine.at_s + 1))
    yield Attack(
        "a second timestamp",
        Sent("POST", f"{MINE}/heartbeat", (*good, late), NEW),
        (401,),
        door=Door.STILL_CLOCK,
    )
    for name, headers in {
        "five thousand headers": many,
        "a header of a megabyte": (("x", "y" * 2**20),),
    }.items():
        for door, statuses in {Door.CONNECTION: (431,), Door.EVENT: (401,)}.items():
            yield Attack(name, Sent("POST", f"{MINE}/heartbeat", headers, NEW), statuses, door=door)
    unusual = (
        ("x-forwarded-for", "127.0.0.1"),
        ("x-original-url", f"{STORE_PATH}list_runs"),
        ("x-rewrite-url", "/healthz"),
    )
    sent = mine.sent("POST", f"{MINE}/heartbeat", SAID, extra=unusual)
    yield Attack("headers that would be another address, which nobody reads", sent, (200,), '"repeated"')


KINDS: dict[str, Callable[[Keys], Iterator[Attack]]] = {
    "forged": _forged,
    "replayed": _replayed,
    "of an old attempt": _of_an_old_attempt,
    "off by a clock": _off_by_a_clock,
    "of another route": _of_another_route,
    "of another run": _of_another_run,
    "by another path": _by_another_path,
    "by another method": _by_another_method,
    "with an odd body": _with_an_odd_body,
    "with odd headers": _with_odd_headers,
}


def attacks(kind: str, door: Door, master: bytes, now_s: int) -> list[Attack]:
    """Yield the attacks of a kind that get through that entry; `now_s` is the clock of the attacked
    server.
    """
    return [attack for attack in KINDS[kind](Keys(master, now_s)) if door in attack.door]
