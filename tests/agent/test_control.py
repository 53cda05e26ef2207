"""The agent's side of the wire, against real HTTP."""

import time
from collections.abc import Iterator

import pytest

from prime_agent.control_plane import ControlPlane, Fenced
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import Bootstrap, Commit, Heartbeat, Outcome, Phase, Ticket
from tests.builders import RUN_ID, spec
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.http import ALWAYS, CutRequest, Response, ScriptedServer

HEARTBEAT = Heartbeat(run=RUN_ID, attempt=1, seq=1, phase=Phase.TRAIN, step=7)
JOB = Bootstrap(
    run=RUN_ID, attempt=1, spec=spec(), bucket_url="file:///nowhere", secrets={"TOKEN": "tok-123456"}
)


def wall_s() -> float:
    return time.time()


@pytest.fixture
def plane() -> Iterator[FakeControlPlane]:
    with FakeControlPlane(JOB, clock=lambda: int(time.time())) as here:
        yield here


def test_each_request_arrives_signed_and_its_answer_is_understood(plane: FakeControlPlane) -> None:
    control = ControlPlane(plane.ticket, wall_s)
    assert control.bootstrap() == JOB
    assert control.heartbeat(HEARTBEAT).outcome is Outcome.OK
    assert control.commit(Commit(run=RUN_ID, attempt=1, step=5, key="k")).committed_step == 5
    assert control.exit(HEARTBEAT.model_copy(update={"seq": 2})).outcome is Outcome.OK
    assert plane.refused == []


@pytest.mark.parametrize("off_s", [-3600, 3600, 40_000_000])
def test_a_wrong_clock_is_learned_once_and_remembered(plane: FakeControlPlane, off_s: int) -> None:
    control = ControlPlane(plane.ticket, lambda: time.time() + off_s)
    assert control.heartbeat(HEARTBEAT).outcome is Outcome.OK
    assert control.heartbeat(HEARTBEAT.model_copy(update={"seq": 2})).outcome is Outcome.OK
    assert plane.refused == [("heartbeat", 401)]


def test_a_wrong_key_is_refused_without_asking_for_ever(plane: FakeControlPlane) -> None:
    control = ControlPlane(plane.ticket.model_copy(update={"key": "another"}), wall_s)
    with pytest.raises(TemporaryError, match="401: wrong signature"):
        control.heartbeat(HEARTBEAT)
    assert len(plane.refused) <= 2
    assert plane.received == []


def test_fenced_is_an_answer_to_what_is_reported_and_an_end_to_what_is_queried(
    plane: FakeControlPlane,
) -> None:
    plane.fenced = True
    control = ControlPlane(plane.ticket, wall_s)
    assert control.heartbeat(HEARTBEAT).outcome is Outcome.FENCED
    with pytest.raises(Fenced):
        control.bootstrap()


def test_a_control_plane_that_cuts_connections_or_is_not_there_is_a_temporary_error(
    plane: FakeControlPlane,
) -> None:
    plane.fail(CutRequest(), times=ALWAYS)
    with pytest.raises(TemporaryError):
        ControlPlane(plane.ticket, wall_s).heartbeat(HEARTBEAT)
    with pytest.raises(TemporaryError):
        ControlPlane(Ticket(run=RUN_ID, attempt=1, url="http://127.0.0.1:1", key="k"), wall_s).heartbeat(
            HEARTBEAT
        )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>hello</html>", TemporaryError),
        (200, b"{" + b" " * 5_000_000 + b"}", TemporaryError),
        (302, b"", PermanentError),
        (404, b'{"error": "no such run"}', PermanentError),
        (413, b"too large", PermanentError),
        (503, b"busy", TemporaryError),
    ],
)
def test_an_answer_that_is_none_is_an_error_of_the_right_kind(
    status: int, body: bytes, kind: type[Exception]
) -> None:
    elsewhere = {"location": "http://127.0.0.1:1/elsewhere"}
    with ScriptedServer(Response(status, body, headers=elsewhere)) as there, pytest.raises(kind):
        ControlPlane(Ticket(run=RUN_ID, attempt=1, url=there.url, key="k"), wall_s).heartbeat(HEARTBEAT)


def test_secrets_of_a_bootstrap_that_is_not_understood_are_not_in_the_error() -> None:
    broken = JOB.model_dump_json().replace('"attempt":1', '"attempt":"tok-123456"').encode()
    with ScriptedServer(Response(200, broken)) as there, pytest.raises(TemporaryError) as caught:
        ControlPlane(Ticket(run=RUN_ID, attempt=1, url=there.url, key="k"), wall_s).bootstrap()
    assert "attempt" in str(caught.value)
    assert "tok-123456" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
