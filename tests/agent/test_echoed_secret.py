"""A set-up command that prints what it was trusted with: the value reaches nobody, on any of the ways out of the machine."""

from pathlib import Path

from prime_train.core.causes import Cause
from prime_train.core.change import happened
from prime_train.core.run import Lease, RunState
from prime_train.told import headline, run_page
from tests import builders as b
from tests.agent.attempts import attempt, demo_spec

SECRET = "s3cret-of-no-known-shape"


def test_a_secret_that_a_set_up_command_prints_is_masked_wherever_it_is_told(tmp_path: Path) -> None:
    echoing = [f'echo "$TOKEN"; echo {SECRET} >&2; test "$TOKEN" != {SECRET}']
    with attempt(tmp_path, demo_spec("--steps 5", setup=echoing, secrets=["TOKEN"]), secrets={"TOKEN": SECRET}) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.SETUP_FAILED
        assert "<TOKEN>" in last.exit.detail
        assert "<TOKEN>" in last.exit.log_tail
        assert "<TOKEN>" in here.evidence("setup.log")
        sent = "".join(beat.model_dump_json() for beat in here.plane.beats)
        ended = b.attempt(1, RunState.FAILED, cause=last.exit.cause, detail=last.exit.detail)
        run = b.run(RunState.FAILED, attempts=(ended,), why=f"a set-up command failed: {last.exit.detail}")
        page = run_page(run, Lease(run.run_id), b.T0_S + 3600)
        assert "echo" in page
        for told in (
            sent,
            here.evidence("setup.log"),
            page,
            headline(run, Lease(run.run_id), b.T0_S),
            repr(happened(run, 0, "lost", run.why)),
        ):
            assert SECRET not in told
