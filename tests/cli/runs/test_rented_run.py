"""A run on a rented machine, observed with ssh, logs and profile from its first step until after its end;
everything is real except Prime and prime-rl.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.shell import PROGRAM, run
from tests.e2e.prime_plane import STEPS, PrimePlane, prime_plane
from tests.fakes.prime import needs_sshd
from tests.waiting import HANG_S

pytestmark = [
    pytest.mark.slow,
    needs_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]


def env(on: PrimePlane) -> dict[str, str]:
    reached = {"PRIME_API_KEY": on.fake.api_key, "PRIME_API_BASE_URL": on.fake.url}
    return {**os.environ, **reached, "PRIME_TRAIN_HOME": str(on.plane.home), "COLUMNS": "80"}


def output(on: PrimePlane, *words: str) -> str:
    """Return the output of a call that must succeed."""
    done = run([PROGRAM, *words], Path.cwd(), env(on))
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{on.evidence()}"
    return done.stdout


@pytest.mark.exhaustive
def test_a_rented_run_can_be_looked_at_from_its_first_step_to_after_its_end(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    with prime_plane(tmp_path, {"FAKE_RL_WAITS": f"10@{enough}"}) as on:
        run_id = on.launch()
        on.await_step(run_id, 1)
        with subprocess.Popen(
            [PROGRAM, "logs", run_id, "-f"], env=env(on), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as following:
            on.await_step(run_id, 9)
            names = [
                "agent.log",
                "metrics.csv",
                "metrics.csv.times",
                "setup.log",
                "trainer.log",
                "trainer.log.times",
            ]
            # A set-up that makes an environment of its own writes the times of its lines, too.
            assert [
                name
                for name in output(on, "ssh", run_id, "--", "ls", "logs").split()
                if name != "setup.log.times"
            ] == names
            assert "SUCCESS Step " in output(on, "logs", run_id, "--lines", "1").splitlines()[-1]
            live = json.loads(output(on, "profile", run_id, "--json"))
            enough.touch()
            on.await_success(run_id)
            followed = received(following)
        kept = json.loads(output(on, "profile", run_id, "--json"))
        assert f"--- runs/{run_id}/outputs/e1-" in output(on, "logs", run_id)
    assert live["source"] == "the machine of attempt 1"
    assert live["diagnosis"]["bottleneck"] == "tools"
    assert kept["source"] == f"evidence/{run_id}/e1/metrics.jsonl"
    assert (kept["diagnosis"]["bottleneck"], kept["times"]["last_step"]) == ("tools", STEPS)
    assert [f"Step {step} |" in followed for step in range(1, STEPS + 1)] == [True] * STEPS
    assert "finished at step 20" in followed


def received(process: "subprocess.Popen[bytes]") -> str:
    """Return the complete output of a process that ends by itself."""
    timer = threading.Timer(HANG_S, process.kill)
    timer.start()
    assert process.stdout is not None
    text = process.stdout.read().decode()
    timer.cancel()
    assert process.wait(HANG_S) == 0, text
    return text
