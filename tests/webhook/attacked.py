"""The attacked control plane, how the attacks reach it, and what must be true afterwards."""

import contextlib
import http.client
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from prime_train.runs.run import RunState
from prime_train.runs.store import Store
from prime_train.runs.wire import STORE_PATH, Outcome, Refusal, Reply
from tests import builders as b
from tests.waiting import HANG_S
from tests.webhook.attacks import MINE, OTHER, Attack, Keys, Sent
from tests.webhook.calls import ATTEMPT, heartbeat, stored
from tests.webhook.leaks import leaks

ANSWER_BYTES_MAX = 1000
"""Size limit of a refusal in bytes, because it does not repeat the request."""
BY_THE_HTTP_SERVER = 431
"""Status of a refusal that the application does not see."""
ODD = (
    ("loss", "NaN"),
    ("loss", "-Infinity"),
    ("loss", "1e999"),
    ("reward", "1e-400"),
    ("reward", "-0.0"),
    ("gpu_util_pct", "123456789012345678901234567890"),
    ("disk_free_gib", "1." + "1" * 5000),
    ("note", '"\\u0000\\u0007\\u001b[31m"'),
    ("note", '"\\ud83d\\ude00 \\u202e\\ufffe"'),
    ("note", '"' + b"\\U0010ffff".decode("unicode_escape") * 200 + '"'),
    ("sick_detail", '"<script>alert(1)</script> \\r\\n$(id) {{7*7}} %s"'),
    ("step", "999999999999"),
    ("attempt", "2.0"),
)
"""Fields of a heartbeat, with unusual values as JSON."""
FOR_MACHINES = ("HF_TOKEN", "PRIME_TRAIN_POD_")
"""Prefixes of the names that a machine receives after it has been authenticated."""


@dataclass(frozen=True)
class Answer:
    """The response to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def judge(attack: Attack, answer: Answer, hidden: Mapping[str, str]) -> None:
    """Fail if the response is not the expected one in the common form, if a browser could misuse it, or if it
    contains a secret of `hidden` that the signer may not have.
    """
    assert (answer.status in attack.statuses, attack.message in answer.body.decode()) == (True, True), (
        f"{attack.name}: {answer}"
    )
    unseen = {
        name: value
        for name, value in hidden.items()
        if not (name.startswith(FOR_MACHINES) and attack.reported)
    }
    assert not leaks(f"{answer.headers}\n{answer.body.decode()}", unseen), attack.name
    if answer.status == BY_THE_HTTP_SERVER:
        assert answer.body == b""
        return
    assert answer.headers["content-type"] == "application/json"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    if attack.sent.method == "HEAD":
        assert answer.body == b""
    elif answer.status == 409:
        assert Reply.model_validate_json(answer.body).outcome is Outcome.FENCED
    elif answer.status != 200:
        assert Refusal.model_validate_json(answer.body).now_s > 0
        assert len(answer.body) <= ANSWER_BYTES_MAX


def requested(url: str, sent: Sent) -> Answer:
    """Send the request unchanged; a response that arrives before all of it was sent is read."""
    parts = urlsplit(url)
    lines = [
        f"{sent.method} {parts.path}{sent.target} HTTP/1.1",
        f"host: {parts.netloc}",
        "connection: close",
    ]
    lines += [f"{name}: {value}" for name, value in (*sent.headers, ("content-length", str(len(sent.body))))]
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + sent.body)
        response = http.client.HTTPResponse(connection, method=sent.method)
        response.begin()
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )


def two_runs(store: Store) -> None:
    """Store the targets of the attacks: a run that trains, and a run of another user."""
    stored(store)
    stored(store, b.record(b.run(RunState.TRAINING, attempt=ATTEMPT, run_id=OTHER), seq=7, committed_step=5))


def seen(store: Store) -> object:
    """Return everything that a store can return."""
    runs = [(store.load(run), store.history(run)) for run in (b.RUN_ID, OTHER)]
    return (
        runs,
        store.list_runs(),
        store.lease_statuses(),
        store.outbox(100),
        store.watch(),
        store.due(2**40, 100),
    )


def all_kept(ask: Callable[[Sent], Answer], keys: Keys) -> None:
    """Check that heartbeats with all allowed unusual values are accepted and can be read by the operator, one
    after another.
    """
    good = heartbeat(8, exit=None).model_dump(mode="json")
    for seq, (field, raw) in enumerate(ODD, start=8):
        body = (
            json.dumps(good | {"seq": seq, field: "?"})
            .replace(f'"{field}": "?"', f'"{field}": {raw}')
            .encode()
        )
        message = ask(keys.mine.sent("POST", f"{MINE}/heartbeat", body))
        assert (message.status, json.loads(message.body)["outcome"]) == (200, "ok"), (
            field,
            raw[:50],
            message,
        )
        read = ask(keys.operator.sent("POST", f"{STORE_PATH}load", json.dumps([b.RUN_ID]).encode()))
        assert (read.status, json.loads(read.body)["lease"]["seq"]) == (200, seq), (field, raw[:50], read)
    listed = ask(keys.operator.sent("POST", f"{STORE_PATH}lease_statuses", b"[]"))
    assert (listed.status, len(json.loads(listed.body))) == (200, 2)
