"""A beat that is read at the door is the one that the webhook reads, and what the door does not understand it leaves to the webhook."""

import json

import pytest

from prime_train.control_plane.admission.admission import METHODS, admit
from prime_train.control_plane.admission.beats import plain_beat
from prime_train.control_plane.admission.calls import Place, Request, Response
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.webhook import BeatCall, parse
from prime_train.control_plane.webhook.bodies import PARSERS
from prime_train.core.causes import Cause
from prime_train.core.wire import Beat, Gpus, JobExit, Phase, Saves
from tests import builders as b
from tests.webhook.asking import CASES, EPOCH, MASTER, Case, ask, beat, last_beat

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
BEATS = {
    "small": ("beat", beat(8)),
    "full": ("beat", beat(8, **FULL)),
    "news": ("beat", beat(8, news=True)),
    "about to be taken away": ("beat", beat(8, preempting=True)),
    "sick": ("beat", beat(8, sick=Cause.GPU_HARDWARE, sick_detail="ecc")),
    "the end": ("exit", last_beat(8, news=True)),
    "an end without news": ("exit", last_beat(8)),
    "an end as a beat": ("beat", last_beat(8)),
    "a long end": ("exit", beat(8, phase=Phase.EXITED, exit=JobExit(cause=Cause.KILLED, code=-9, log_tail="x\n" * 4000))),
    "no number": ("beat", beat(8, loss=float("nan"))),
}


@pytest.mark.parametrize("name", BEATS)
def test_what_agents_say_is_read_as_the_webhook_reads_it(name: str) -> None:
    verb, said = BEATS[name]
    request = ask(verb, said)
    call = parse(KEYRING, request)
    assert isinstance(call, BeatCall)
    plain = plain_beat(Place(verb, b.RUN_ID, EPOCH), request.body)
    assert plain is not None
    assert plain[:4] == (b.RUN_ID, EPOCH, 8, call.beat.news)
    assert Beat.model_validate_json(plain.text) == Beat.model_validate_json(call.beat.model_dump_json())
    assert json.loads(plain.text) == json.loads(call.beat.model_dump_json(exclude_defaults=True, exclude_none=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_what_the_webhook_takes_for_a_beat_is_one(case: Case) -> None:
    admitted = admit(KEYRING, case.request)
    if isinstance(admitted, Response):
        assert admitted == parse(KEYRING, case.request)
    elif isinstance(admitted, Place) and plain_beat(admitted, case.request.body) is not None:
        assert isinstance(parse(KEYRING, case.request), BeatCall)
        assert case.status in (200, 409)


RIGHT = beat(8).model_dump_json()


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", RIGHT.encode("utf-16"), b"{}", RIGHT.encode() + b"x"])
def test_junk_is_left_to_the_webhook(body: bytes) -> None:
    assert plain_beat(Place("beat", b.RUN_ID, EPOCH), body) is None


def test_another_runs_or_epochs_beat_and_an_exit_without_an_end_are_left_to_the_webhook() -> None:
    here = Place("beat", b.RUN_ID, EPOCH)
    assert plain_beat(here, RIGHT.encode()) is not None
    for place in (here._replace(run="other"), here._replace(epoch=1), here._replace(verb="exit"), here._replace(verb="commit")):
        assert plain_beat(place, RIGHT.encode()) is None


def test_every_verb_has_a_method_and_a_parser() -> None:
    assert METHODS.keys() == PARSERS.keys()


def test_size_is_looked_at_before_anything() -> None:
    refused = admit(KEYRING, Request("?", "/v1/nothing", {}, b" " * 70_000, 1))
    assert isinstance(refused, Response)
    assert refused.status == 413
