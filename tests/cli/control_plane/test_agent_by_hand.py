"""`prime-train agent`: the agent of one attempt, started by a person."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from prime_train.runs.wire import Bootstrap
from tests.agent.attempts import RUN_ID, demo_spec
from tests.cli.inside import Inside
from tests.cli.shell import PROGRAM
from tests.fakes.control_plane import FakeControlPlane


@pytest.mark.parametrize("by_input", [True, False])
def test_the_agent_runs_with_a_ticket_from_a_file_or_standard_input_and_keeps_it_to_itself(
    tmp_path: Path, by_input: bool
) -> None:
    job = Bootstrap(
        run=RUN_ID,
        attempt=1,
        spec=demo_spec("--steps 1"),
        bucket_url=(tmp_path / "bucket").as_uri(),
        code_key="missing",
    )
    with FakeControlPlane(job, clock=lambda: int(time.time())) as plane:
        ticket = plane.ticket.model_dump_json()
        (tmp_path / "ticket").write_text(ticket)
        command = [PROGRAM, "agent", "--ticket", "-" if by_input else str(tmp_path / "ticket")]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, env={**os.environ, "HOME": str(tmp_path)}
        ) as agent:
            assert agent.stdin is not None
            agent.stdin.write(ticket.encode())
            agent.stdin.close()
            assert plane.await_heartbeat(lambda heartbeat: True).attempt == 1
            agent.kill()
    kept = tmp_path / "prime-train" / f"{RUN_ID}-e1" / "ticket.json"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (ticket, 0o600)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "No such file or directory"), ('{"key": "secret"}', "is not a ticket"), ("", "is not a ticket")],
)
def test_what_is_no_ticket_is_refused_without_being_shown(
    tmp_path: Path, content: str | None, says: str
) -> None:
    path = tmp_path / "ticket.json"
    if content is not None:
        path.write_text(content)
    done = Inside(tmp_path).run("agent", "--ticket", str(path))
    assert done.returncode == 2
    assert says in done.stderr
    assert "secret" not in done.stderr
