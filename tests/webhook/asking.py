"""Signed requests for tests, and a table of them: what each must be answered with, by whichever door it comes in.

stored(store)                      the builders' run trains, its lease is open at epoch 2, last beat number 7
ask("beat", beat(8))               signed by attempt 2
ask("beat", beat(8), epoch=1)      by the attempt before, which has been fenced
"""

import json
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel

from prime_train.control_plane.webhook import Desk, Nonce, Request
from prime_train.core.causes import Cause
from prime_train.core.run import Change, RunState
from prime_train.core.wire import BODY_BYTES_MAX, SIGNATURE_HEADER, TIMESTAMP_HEADER, Beat, Commit, JobExit, Phase, attempt_key, sign
from prime_train.ports import Held, Store
from tests import builders as b

MASTER = b"the master key of these tests"
NEXT_MASTER = b"the one it is replaced by"
NOW_S = b.T0_S + b.ATTEMPT_S + 500
SECRETS = {"HF_TOKEN": "hf-secret-value", "OTHER_TOKEN": "other-secret-value"}
EPOCH = 2
M = TypeVar("M", bound=BaseModel)


def held(**lease: object) -> Held:
    """The run in its second attempt, which has beaten seven times and committed step 5."""
    of = b.run(RunState.TRAINING, epoch=EPOCH, spec=b.spec(secrets=("HF_TOKEN",), health={"beat_s": 11}))
    return b.held(of, **({"seq": 7, "committed_step": 5} | lease))


def stored(store: Store, of: Held | None = None) -> Held:
    """Puts a run with its lease into the store, the way saves would."""
    of = of if of is not None else held()
    assert store.create(replace(of.run, version=of.run.version - 1))
    assert store.save(Change(of.run, replace(of.lease, version=1), lease_version=0))
    there = store.load(of.run.run_id)
    assert there is not None
    return there


def desk(store: Store, *masters: bytes) -> Desk:
    return Desk(store, masters or (MASTER,), secrets=SECRETS, bucket_url="file:///bucket")


def beat(seq: int, **changes: object) -> Beat:
    return b.beat(seq, **({"epoch": EPOCH} | changes))


def commit(step: int, **changes: object) -> Commit:
    return b.commit(step, **({"epoch": EPOCH} | changes))


def last_beat(seq: int, **changes: object) -> Beat:
    return beat(seq, phase=Phase.EXITED, exit=JobExit(cause=Cause.FINISHED, code=0), **changes)


def ask(
    verb: str,
    body: BaseModel | bytes = b"",
    *,
    run: str = b.RUN_ID,
    epoch: int = EPOCH,
    method: str = "",
    path: str = "",
    signer: tuple[str, int] | None = None,
    master: bytes = MASTER,
    at_s: int = NOW_S,
) -> Request:
    """A request as an agent makes it; what is given differently is what a test is about."""
    raw = body if isinstance(body, bytes) else body.model_dump_json().encode()
    path = path or f"/v1/runs/{run}/{epoch}/{verb}"
    method = method or ("GET" if verb == "bootstrap" else "POST")
    signature = sign(attempt_key(master, *(signer or (run, epoch))), at_s, method, path, raw)
    return Request(method, path, {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature}, raw, NOW_S)


def canary(nonce: str = "n0nce", *, master: bytes = MASTER) -> Request:
    return ask("canary", Nonce(nonce=nonce), path="/v1/canary", signer=("canary", 1), master=master)


def tampered(request: Request, **headers: str) -> Request:
    return request._replace(headers=request.headers | {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class Case:
    """`said`: a piece of the answer. A case that `changes` the store is no refusal."""

    name: str
    request: Request
    status: int
    said: str
    changes: bool = False


def _spoiled(model: BaseModel, **fields: object) -> bytes:
    """The model's JSON with some fields as no model would have them."""
    return json.dumps(model.model_dump(mode="json") | fields).encode()


CASES = [
    Case("a beat", ask("beat", beat(8)), 200, '"verdict":"ok"', changes=True),
    Case("a beat said before", ask("beat", beat(7)), 200, '"verdict":"repeated"'),
    Case("an older beat that comes late", ask("beat", beat(3)), 200, '"verdict":"repeated"'),
    Case("a beat of the attempt before", ask("beat", beat(8, epoch=1), epoch=1), 409, '"verdict":"fenced"'),
    Case("a beat of an attempt that is yet to come", ask("beat", beat(8, epoch=3), epoch=3), 409, '"verdict":"fenced"'),
    Case("a beat of a run nobody knows", ask("beat", beat(8, run="other"), run="other"), 409, '"verdict":"fenced"'),
    Case("the last beat", ask("exit", last_beat(8)), 200, '"verdict":"ok"', changes=True),
    Case("an exit without an end", ask("exit", beat(8)), 422, "exit: missing"),
    Case("an exit of the attempt before", ask("exit", last_beat(8, epoch=1), epoch=1), 409, '"verdict":"fenced"'),
    Case("a commit", ask("commit", commit(10)), 200, '"committed_step":10', changes=True),
    Case("a commit of a step that was", ask("commit", commit(5)), 200, '"verdict":"repeated"'),
    Case("a commit of the attempt before", ask("commit", commit(10, epoch=1), epoch=1), 409, '"verdict":"fenced"'),
    Case("a commit of another run's manifest", ask("commit", commit(10, key="runs/x/manifests/1-e1.json")), 422, "key:"),
    Case("a bootstrap", ask("bootstrap"), 200, "hf-secret-value"),
    Case("a bootstrap of the attempt before", ask("bootstrap", epoch=1), 409, '"verdict":"fenced"'),
    Case("a bootstrap of a run nobody knows", ask("bootstrap", run="other"), 409, '"verdict":"fenced"'),
    Case("keys of the attempt before", ask("keys", epoch=1), 409, '"verdict":"fenced"'),
    Case("keys of an attempt that is yet to come", ask("keys", epoch=3), 409, '"verdict":"fenced"'),
    Case("keys of a run nobody knows", ask("keys", run="other"), 409, '"verdict":"fenced"'),
    Case("keys by another run's key", ask("keys", signer=("other", EPOCH)), 401, "signature"),
    Case("keys by the key of the attempt before", ask("keys", signer=(b.RUN_ID, 1)), 401, "signature"),
    Case("keys by GET", ask("keys", method="GET"), 405, "asked with POST"),
    Case("the canary", canary(), 200, "n0nce"),
    Case("a canary of an attempt's", ask("canary", Nonce(nonce="x"), path="/v1/canary"), 401, "signature"),
    Case("health", Request("GET", "/healthz", {}, b"", NOW_S), 200, f'"now_s": {NOW_S}'),
    Case("a key of the attempt before", ask("beat", beat(8), signer=(b.RUN_ID, 1)), 401, "signature"),
    Case("a key of another run", ask("beat", beat(8), signer=("other", EPOCH)), 401, "signature"),
    Case("another master key", ask("beat", beat(8), master=b"guessed"), 401, "signature"),
    Case("no signature", ask("beat", beat(8))._replace(headers={}), 401, SIGNATURE_HEADER),
    Case("a signature without its version", tampered(ask("beat", beat(8)), x_pt_signature="0" * 67), 401, SIGNATURE_HEADER),
    Case("a signature of odd letters", tampered(ask("beat", beat(8)), x_pt_signature="v1=" + "\xe9" * 64), 401, SIGNATURE_HEADER),
    Case("a time in words", tampered(ask("beat", beat(8)), x_pt_timestamp="now"), 401, TIMESTAMP_HEADER),
    Case("a time before all times", tampered(ask("beat", beat(8)), x_pt_timestamp="-1"), 401, TIMESTAMP_HEADER),
    Case("another time than was signed", tampered(ask("beat", beat(8)), x_pt_timestamp=str(NOW_S - 1)), 401, "signature"),
    Case("a clock an hour slow", ask("beat", beat(8), at_s=NOW_S - 3600), 401, "off by -3600 s"),
    Case("a clock an hour fast", ask("beat", beat(8), at_s=NOW_S + 3600), 401, "off by 3600 s"),
    Case("another body than was signed", ask("beat", beat(8))._replace(body=beat(9).model_dump_json().encode()), 401, "signature"),
    Case("a beat sent to commit", ask("beat", beat(8))._replace(path=f"/v1/runs/{b.RUN_ID}/{EPOCH}/commit"), 401, "signature"),
    Case("a body over the limit", ask("beat", b" " * (BODY_BYTES_MAX + 1)), 413, "65536 bytes"),
    Case("a large body at the limit", ask("beat", beat(8).model_dump_json().encode().ljust(BODY_BYTES_MAX)), 200, '"ok"', changes=True),
    Case("no JSON", ask("beat", b'{"run": '), 422, "body: Invalid JSON"),
    Case("no body", ask("beat", b""), 422, "body: Invalid JSON"),
    Case("a list", ask("beat", b"[1, 2]"), 422, "body:"),
    Case("odd bytes", ask("beat", b"\xff\xfe\x00"), 422, "body: Invalid JSON"),
    Case("an unknown field", ask("beat", _spoiled(beat(8), mood="sk-live-12345")), 422, "mood: Extra inputs are not permitted"),
    Case("a step in words", ask("beat", _spoiled(beat(8), step="ten")), 422, "step: "),
    Case("a phase of another world", ask("beat", _spoiled(beat(8), phase="dreaming")), 422, "not 'dreaming'"),
    Case("a number that cannot be", ask("beat", _spoiled(beat(8), seq=0)), 422, "seq: "),
    Case("a beat of another run", ask("beat", beat(8, run="other")), 422, f"run: 'other' is not the {b.RUN_ID}"),
    Case("a beat of another epoch", ask("beat", beat(8, epoch=1)), 422, "epoch: 1 is not the 2"),
    Case("a path nobody has", ask("mood", beat(8)), 404, "nothing at this path"),
    Case("an epoch with a leading zero", ask("beat", beat(8), path=f"/v1/runs/{b.RUN_ID}/02/beat"), 404, "nothing at this path"),
    Case("an epoch that is none", ask("beat", beat(8), path=f"/v1/runs/{b.RUN_ID}/0/beat"), 404, "nothing at this path"),
    Case("a run that cannot be named", ask("beat", beat(8), path="/v1/runs/-x-/2/beat"), 404, "nothing at this path"),
    Case("the canary as a run's", ask("canary", beat(8)), 404, "nothing at this path"),
    Case("a very long path", ask("beat", beat(8), path=f"/v1/runs/{'x' * 2000}/2/beat"), 404, "nothing at this path"),
    Case("a beat by GET", ask("beat", method="GET"), 405, "asked with POST"),
    Case("a bootstrap by POST", ask("bootstrap", b"{}", method="POST"), 405, "asked with GET"),
    Case("health by POST", Request("POST", "/healthz", {}, b"", NOW_S), 405, "asked with GET"),
]
