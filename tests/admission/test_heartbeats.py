"""A heartbeat parsed by the fast admission equals the one that the webhook parses, and input that the admission does not understand is left
to the webhook."""

import json

import pytest

from prime_train.control_plane.admission.authenticate import METHODS, admit
from prime_train.control_plane.admission.calls import Request, RequestTarget, Response
from prime_train.control_plane.admission.heartbeats import plain_heartbeat
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.webhook import HeartbeatCall, parse
from prime_train.control_plane.webhook.bodies import PARSERS
from prime_train.core.causes import Cause
from prime_train.core.wire import Gpus, Heartbeat, JobExit, Phase, Saves
from tests import builders as b
from tests.webhook.calls import ATTEMPT, CASES, MASTER, Case, ask, heartbeat, last_heartbeat

KEYRING = Keyring((MASTER,))
FULL = {
    "step_age_s": 7,
    "step_slow_s": 4.5,
    "saving": True,
    "uploaded_step": 9,
    "gpu_util_pct": 97.5,
    "gpus": Gpus(count=8, util_low_pct=91.0, hottest_c=71, note="größe\x1b[0m"),
    "disk_full_s": 99,
    "saves": Saves(interval_s=612.5, size_bytes=10**10),
    "loss": 1e-9,
    "note": "𝔘 uploads",
}
HEARTBEATS = {
    "small": ("heartbeat", heartbeat(8)),
    "full": ("heartbeat", heartbeat(8, **FULL)),
    "news": ("heartbeat", heartbeat(8, news=True)),
    "about to be taken away": ("heartbeat", heartbeat(8, preempting=True)),
    "sick": ("heartbeat", heartbeat(8, sick=Cause.GPU_HARDWARE, sick_detail="ecc")),
    "the end": ("exit", last_heartbeat(8, news=True)),
    "an end without news": ("exit", last_heartbeat(8)),
    "an end as a heartbeat": ("heartbeat", last_heartbeat(8)),
    "a long end": ("exit", heartbeat(8, phase=Phase.EXITED, exit=JobExit(cause=Cause.KILLED, code=-9, log_tail="x\n" * 4000))),
    "no number": ("heartbeat", heartbeat(8, loss=float("nan"))),
}


@pytest.mark.parametrize("name", HEARTBEATS)
def test_what_agents_say_is_read_as_the_webhook_reads_it(name: str) -> None:
    verb, message = HEARTBEATS[name]
    request = ask(verb, message)
    call = parse(KEYRING, request)
    assert isinstance(call, HeartbeatCall)
    plain = plain_heartbeat(RequestTarget(verb, b.RUN_ID, ATTEMPT), request.body)
    assert plain is not None
    assert plain[:4] == (b.RUN_ID, ATTEMPT, 8, call.heartbeat.news)
    assert Heartbeat.model_validate_json(plain.text) == Heartbeat.model_validate_json(call.heartbeat.model_dump_json())
    assert json.loads(plain.text) == json.loads(call.heartbeat.model_dump_json(exclude_defaults=True, exclude_none=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_what_the_webhook_takes_for_a_heartbeat_is_one(case: Case) -> None:
    admitted = admit(KEYRING, case.request)
    if isinstance(admitted, Response):
        assert admitted == parse(KEYRING, case.request)
    elif isinstance(admitted, RequestTarget) and plain_heartbeat(admitted, case.request.body) is not None:
        assert isinstance(parse(KEYRING, case.request), HeartbeatCall)
        assert case.status in (200, 409)


RIGHT = heartbeat(8).model_dump_json()


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", RIGHT.encode("utf-16"), b"{}", RIGHT.encode() + b"x"])
def test_junk_is_left_to_the_webhook(body: bytes) -> None:
    assert plain_heartbeat(RequestTarget("heartbeat", b.RUN_ID, ATTEMPT), body) is None


def test_another_runs_or_attempts_heartbeat_and_an_exit_without_an_end_are_left_to_the_webhook() -> None:
    here = RequestTarget("heartbeat", b.RUN_ID, ATTEMPT)
    assert plain_heartbeat(here, RIGHT.encode()) is not None
    for place in (here._replace(run="other"), here._replace(attempt=1), here._replace(verb="exit"), here._replace(verb="commit")):
        assert plain_heartbeat(place, RIGHT.encode()) is None


def test_every_verb_has_a_method_and_a_parser() -> None:
    assert METHODS.keys() == PARSERS.keys()


def test_size_is_looked_at_before_anything() -> None:
    refused = admit(KEYRING, Request("?", "/v1/nothing", {}, b" " * 70_000, 1))
    assert isinstance(refused, Response)
    assert refused.status == 413
