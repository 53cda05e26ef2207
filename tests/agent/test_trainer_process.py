"""What the agent hears of a running trainer, and in which order."""

import os
from pathlib import Path

from prime_agent.event_queue import Inbox
from prime_agent.events import RuleFired, StepsReported, TrainerExited
from prime_agent.processes import LocalProcesses
from prime_agent.trainer.process import StartCommand, TrainerRun
from prime_agent.trainer.step_metrics import StepMetrics
from prime_train.spec.causes import Cause
from tests.builders import spec
from tests.waiting import HANG_S

SAID = """\
[titan] 2026-08-21 10:00:00,000 - root - INFO - Training starts at step 1
[titan] 2026-08-21 10:00:01,000 - root - INFO - step:  1  loss:  8.14231  grad_norm:  1.4217
"""


def test_a_line_that_stops_the_training_is_heard_before_the_steps_of_the_lines_after_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "said").write_text(SAID)
    (tmp_path / "train.sh").write_text("cat said")  # both lines at once
    made = spec(trainer={"kind": "torchtitan", "command": "sh train.sh"}, checkpoints={})
    processes = LocalProcesses(f"test-{tmp_path.name}-{os.getpid()}")
    inbox = Inbox()
    plan = StartCommand(
        made, tmp_path, tmp_path / "log", os.environ, {}, resume_step=4, resume_folder=tmp_path / "step-4"
    )
    TrainerRun(plan, processes, inbox, StepMetrics(tmp_path / "metrics")).start()
    heard = [inbox.get(HANG_S)]
    while not isinstance(heard[-1], TrainerExited):
        heard.append(inbox.get(HANG_S))
    processes.kill_all()
    assert [type(event) for event in heard] == [RuleFired, StepsReported, TrainerExited]
    first = heard[0]
    assert isinstance(first, RuleFired)
    assert (first.cause, first.line) == (Cause.RESUME_IGNORED, SAID.splitlines()[0])
