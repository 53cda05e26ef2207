"""A machine that is taken away in mid-training: what it had written is in the bucket, and the commands find
it there.
"""

import json

from prime_train.app.home import Home
from prime_train.environment import HOME
from prime_train.outputs.lookup import outputs_of, rows_of
from prime_train.runs.lookup import find
from tests.cli.shell import Shell
from tests.waiting import await_true

TRAINER = """\
import json, pathlib, time
pathlib.Path("results").mkdir()
for step in range(1, 10**6):
    with open("progress.jsonl", "a") as file:
        print(json.dumps({"step": step, "loss": 1 / step}), file=file)
    pathlib.Path("state.part").write_text(json.dumps({"step": step}))
    pathlib.Path("state.part").replace("results/state.json")  # what is rewritten in place may be uploaded when it is empty
    print(f"this is step {step}", flush=True)
    time.sleep(0.05)
"""
CONFIG = """\
name: small
trainer: {command: python train.py, code: {folder: TREE}, progress: {file: progress.jsonl}}
outputs: [results/**]
outputs_every_s: 1
hardware: {open_files_min: 256, disk_gib: 1}
health: {heartbeat_s: 1, overdue_s: 10, silence_s: 20, settle_s: 5}
budget: {usd: 5, hours: 2}
"""


def test_outputs_log_and_metrics_of_a_machine_that_was_taken_away_are_there_up_to_its_last_upload(
    shell: Shell,
) -> None:
    config = shell.config(CONFIG)
    shell.write("tree/train.py", TRAINER)
    home = Home.of({HOME: str(shell.home)})
    with shell.started("serve", "--port", "0", "--interval", "0.5", until="serving "):
        run_id = shell.ok("run", config).split(" ", 1)[0]

        def uploaded() -> dict[str, int]:
            return {row["path"]: row["size_bytes"] for row in rows_of(outputs_of(home.stored_runs(), run_id))}

        await_true("its log is in the bucket", lambda: uploaded().get("trainer.log", 0) > 100)
        await_true("its outputs are in the bucket", lambda: "results/state.json" in uploaded())
        attempt = find(home.store(), run_id).run.current_attempt
        assert attempt is not None
        assert attempt.pod_id is not None
        home.local_pods().preempt(attempt.pod_id)
        shell.ok("stop", run_id, "--now")
        log = [
            line
            for line in shell.ok("logs", run_id, "--attempt", "1").splitlines()
            if line.startswith("this is step ")
        ]
        numbers = [int(line.split()[-1]) for line in log]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        shell.ok("outputs", run_id, "get", "got", "--attempt", "1")
        whole = (shell.here / "got" / "_run" / "attempt-1" / "trainer.log").read_text()
        assert whole.splitlines() == [f"this is step {step}" for step in range(1, numbers[-1] + 1)], (
            "the whole log, not only its end"
        )
        assert json.loads((shell.here / "got" / "results" / "state.json").read_text())["step"] >= 1
        assert (
            (shell.here / "got" / "_run" / "attempt-1" / "metrics.csv")
            .read_text()
            .startswith("step,time_s,loss,reward\n1,")
        )
        await_true("the run has ended", lambda: find(home.store(), run_id).run.is_settled)
