"""A complete run with a bucket that is not on the machine: the pods get what they need for it, and nothing
else of their environment changes.
"""

import secrets
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from tests.buckets import keys_for, url_of
from tests.e2e.plane import plane, write_config
from tests.e2e.points import LOSE_FIRST
from tests.e2e.test_kill_matrix import final_hash, reference
from tests.fakes.s3_servers import S3Server

__all__ = ["reference"]

SECRET = "nobody-may-read-this-0123456789"
"""A key; this server accepts any."""


@pytest.mark.slow
def test_a_run_that_loses_its_machine_goes_on_from_a_bucket_in_s3(
    tmp_path: Path, ministack: S3Server, reference: str
) -> None:
    url = url_of(ministack, f"runs of {secrets.token_hex(4)}")
    settings = {**keys_for(ministack), "PRIME_TRAIN_BUCKET": url, "AWS_SECRET_ACCESS_KEY": SECRET}
    with plane(tmp_path, [LOSE_FIRST], settings=settings) as here:
        run_id = here.launch(write_config(tmp_path))
        run = here.await_end(run_id)
        assert run.state is RunState.SUCCEEDED, f"{run.why}\n{here.evidence()}"
        assert [attempt.resumed_step for attempt in run.attempts][1:] == [25], here.evidence()
        assert final_hash(here, run_id) == reference
        assert not (here.home / "bucket" / "runs").exists()
        listed = here.cli("checkpoints", run_id)
        assert listed.returncode == 0, listed.stderr
        assert "80" in listed.stdout
        output = "\n".join(path.read_text(errors="replace") for path in tmp_path.rglob("*.log"))
        assert SECRET not in output
