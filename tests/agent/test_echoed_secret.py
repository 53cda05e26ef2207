"""A set-up command that prints a secret it was given: the value appears in none of the outputs that leave the
machine.
"""

from pathlib import Path

from prime_agent.evidence import LOG_BYTES_MAX, tail
from prime_train.github.pull_request import run_comment
from prime_train.runs.change import happened
from prime_train.runs.headline import headline
from prime_train.runs.run import Lease, RunState
from prime_train.runs.wire import LOG_TAIL_CHARS_MAX
from prime_train.spec.causes import Cause
from prime_train.trainers.exit_classifier import LINE_SHOWN_MAX
from tests import builders as b
from tests.agent.attempts import attempt, demo_spec

SECRET = "s3cret-of-no-known-shape"


def test_a_secret_that_a_set_up_command_prints_is_redacted_wherever_it_is_reported(tmp_path: Path) -> None:
    echoing = [f'echo "$TOKEN"; echo {SECRET} >&2; test "$TOKEN" != {SECRET}']
    with attempt(
        tmp_path, demo_spec("--steps 5", setup=echoing, secrets=["TOKEN"]), secrets={"TOKEN": SECRET}
    ) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.SETUP_FAILED
        assert "<TOKEN>" in last.exit.detail
        assert "<TOKEN>" in last.exit.log_tail
        assert "<TOKEN>" in here.evidence("setup.log")
        sent = "".join(heartbeat.model_dump_json() for heartbeat in here.plane.heartbeats)
        ended = b.new_attempt(1, RunState.FAILED, cause=last.exit.cause, detail=last.exit.detail)
        run = b.run(RunState.FAILED, attempts=(ended,), why=f"a setup command failed: {last.exit.detail}")
        page = run_comment(run, Lease(run.run_id), b.T0_S + 3600)
        assert "echo" in page
        for reported in (
            sent,
            here.evidence("setup.log"),
            page,
            headline(run, Lease(run.run_id), b.T0_S),
            repr(happened(run, 0, "lost", run.why)),
        ):
            assert SECRET not in reported


UNKNOWN = "hf_" + "Zq7" * 12
"""A secret of a known format that is not registered anywhere."""


def test_a_secret_that_stands_where_a_line_is_cut_is_not_reported_in_part(tmp_path: Path) -> None:
    filled = "RuntimeError: " + "x" * (LINE_SHOWN_MAX - 24)
    command = f'echo "{filled} $TOKEN"; exit 1'
    with attempt(
        tmp_path, demo_spec("", trainer={"command": command}, secrets=["TOKEN"]), secrets={"TOKEN": SECRET}
    ) as here:
        here.wait()
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.detail.startswith("RuntimeError: xxx")
        assert SECRET[:6] not in "".join(heartbeat.model_dump_json() for heartbeat in here.plane.heartbeats)


def test_neither_is_the_rest_of_one_that_stands_where_a_log_is_cut_and_one_of_a_known_look_is_not_reported(
    tmp_path: Path,
) -> None:
    # What is told of the log begins within the secret.
    echoing = [
        f'echo {UNKNOWN} >&2; echo "${{TOKEN}}{"y" * (LOG_TAIL_CHARS_MAX - 12 - len(UNKNOWN))}"; echo '
        f"{UNKNOWN}; exit 1"
    ]
    with attempt(
        tmp_path, demo_spec("--steps 5", setup=echoing, secrets=["TOKEN"]), secrets={"TOKEN": SECRET}
    ) as here:
        here.wait()
        (last,) = here.plane.exits
        assert last.exit is not None
        assert "yyy" in last.exit.log_tail
        sent = "".join(heartbeat.model_dump_json() for heartbeat in here.plane.heartbeats)
        assert SECRET[-6:] not in sent
        assert UNKNOWN not in sent


def test_evidence_of_a_long_log_begins_with_a_complete_line(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text(f"{SECRET}\n{'z' * (LOG_BYTES_MAX - 6)}\n")
    assert tail(log).startswith("zzz")
    assert len(tail(log)) == LOG_BYTES_MAX - 5
