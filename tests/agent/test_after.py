"""The steps under `after`: the real agent as a process, the demo's trainer, and steps that run, fail, hang
and are taken over.
"""

import re
import signal
import sys
from pathlib import Path
from typing import Any

from prime_train.buckets.keys import AFTER_STREAM, EVALUATIONS_STREAM, attempt_results_key, manifest_key
from prime_train.outputs.results.numbers import ResultSource, parse_attempt_results
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Heartbeat, JobExit, Order, Phase
from prime_train.spec.causes import Cause
from tests.agent.attempts import RUN_ID, Attempt, attempt, demo_spec
from tests.waiting import await_true

TRAIN = "--steps 30 --save-every 10"
WRITE = f"{sys.executable} evaluate.py"
EVALUATE = b"""
import json, os, pathlib
checkpoint, step = pathlib.Path(os.environ["PRIME_TRAIN_CHECKPOINT"]), int(os.environ["PRIME_TRAIN_STEP"])
assert (checkpoint / "weights.npz").stat().st_size > 0
pathlib.Path("tested").mkdir(exist_ok=True)
pathlib.Path(f"tested/{step}.txt").write_text(os.environ.get("SUBJECT", ""))
pathlib.Path(os.environ["PRIME_TRAIN_RESULTS"]).write_text(json.dumps({"accuracy": step / 100}))
"""
FILES = {"evaluate.py": EVALUATE}


def a_spec(*steps: dict[str, Any], arguments: str = TRAIN, **changes: Any) -> Any:
    return demo_spec(arguments, trainer={"steps": 30}, after=list(steps), outputs_every_s=1, **changes)


def the_exit(here: Attempt) -> tuple[Heartbeat, JobExit]:
    assert here.wait() == 0
    (last,) = here.plane.exits
    assert last.exit is not None
    return last, last.exit


def results_of(here: Attempt) -> dict[tuple[str, ResultSource, int | None], float | None]:
    identity = here.plane.bootstrap.identity
    content = here.bucket.get(attempt_results_key(RUN_ID, here.plane.bootstrap.attempt, identity))
    found = (
        parse_attempt_results(content.data, RUN_ID, here.plane.bootstrap.attempt, identity)
        if content is not None
        else None
    )
    return {(one.name, one.source, one.step): one.value for one in found.numbers} if found is not None else {}


def test_steps_run_in_order_with_the_last_checkpoint_and_their_numbers_and_outputs_are_stored(
    tmp_path: Path,
) -> None:
    steps = (
        {"name": "evaluate", "run": WRITE, "env": {"SUBJECT": "maths"}, "outputs": ["tested/**"]},
        {"name": "export", "run": "cat tested/30.txt > exported.txt", "outputs": ["exported.txt"]},
    )
    with attempt(tmp_path, a_spec(*steps), files=FILES) as here:
        last, ended = the_exit(here)
        assert (ended.cause, last.step, last.trained, last.after_done, last.after_failed) == (
            Cause.FINISHED,
            30,
            True,
            2,
            "",
        )
        assert results_of(here) == {("accuracy", ResultSource.AFTER, 30): 0.3}
        assert (here.disk / "work/exported.txt").read_text() == "maths"
        phases = list(dict.fromkeys(heartbeat.phase for heartbeat in here.plane.heartbeats))
        assert phases[-3:] == [Phase.FLUSH, Phase.AFTER, Phase.EXITED] or phases[-2:] == [
            Phase.AFTER,
            Phase.EXITED,
        ]
        assert "=== evaluate, try 1 of 1, step 30" in here.log(AFTER_STREAM)


def test_a_step_that_fails_is_named_and_the_others_run_all_the_same(tmp_path: Path) -> None:
    steps = (
        {"name": "publish", "run": "echo no token >&2; exit 3", "retries": 1},
        {"name": "hang", "run": "sleep 600", "timeout_s": 1},
        {"name": "flaky", "run": "test -e tried || { touch tried; exit 1; }", "retries": 2},
        {"name": "odd", "run": 'echo \'{"loss": NaN}\' > "$PRIME_TRAIN_RESULTS"'},
    )
    with attempt(tmp_path, a_spec(*steps)) as here:
        last, ended = the_exit(here)
        assert (ended.cause, last.after_done) == (Cause.FINISHED, 4)
        assert last.after_failed == (
            "publish failed: it ended with code 3: no token; hang failed: it did not end within 1 s; odd "
            "failed: its results in PRIME_TRAIN_RESULTS cannot be used: it contains NaN, which is not a "
            "finite number"
        )
        log = here.log(AFTER_STREAM)
        assert [log.count(f"=== {name}, try") for name in ("publish", "hang", "flaky", "odd")] == [2, 1, 2, 1]


def test_a_trainer_that_exits_before_its_last_step_has_not_succeeded_and_no_step_is_run(
    tmp_path: Path,
) -> None:
    with attempt(
        tmp_path,
        a_spec({"name": "publish", "run": "touch published"}, arguments="--steps 20 --save-every 10"),
    ) as here:
        last, ended = the_exit(here)
        assert (ended.cause, last.step, last.trained) == (Cause.FINISHED, 20, False), (
            "the control plane knows that 30 steps were wanted"
        )
        assert not (here.disk / "work/published").exists()


def test_a_step_whose_results_are_no_file_fails_and_holds_up_nothing(tmp_path: Path) -> None:
    folder_first = (
        'test -e tried || { touch tried; mkdir -p "$PRIME_TRAIN_RESULTS/inside"; }; test '
        "-d "
        '"$PRIME_TRAIN_RESULTS" || touch clean'
    )
    steps = (
        {"name": "pipe", "run": 'mkfifo "$PRIME_TRAIN_RESULTS"'},
        {"name": "endless", "run": 'ln -s /dev/zero "$PRIME_TRAIN_RESULTS"'},
        {"name": "folder", "run": folder_first, "retries": 1},
        {"name": "name", "run": 'printf \'{"%s": "text"}\' "$TOKEN" > "$PRIME_TRAIN_RESULTS"'},
    )
    token = "tok-" + "0123456789" * 8
    with attempt(tmp_path, a_spec(*steps, secrets=["TOKEN"]), secrets={"TOKEN": token}) as here:
        last, ended = the_exit(here)
        assert (ended.cause, last.after_done) == (Cause.FINISHED, 4)
        assert last.after_failed == (
            "pipe failed: its results in PRIME_TRAIN_RESULTS cannot be used: it is not a regular file; "
            "endless failed: its results in PRIME_TRAIN_RESULTS cannot be used: it is not a regular file; "
            "name failed: its results in PRIME_TRAIN_RESULTS cannot be used: '<TOKEN>' is text, not a number"
        )
        assert (here.disk / "work/clean").exists()
        assert (
            "=== folder failed: its results in PRIME_TRAIN_RESULTS cannot be used: it is not a regular file"
            in here.log(AFTER_STREAM)
        )


def test_a_required_step_that_fails_ends_the_attempt_and_no_later_step_is_run(tmp_path: Path) -> None:
    steps = (
        {"name": "gate", "run": "echo too bad; exit 1", "required": True},
        {"name": "publish", "run": "touch published"},
    )
    with attempt(tmp_path, a_spec(*steps)) as here:
        last, ended = the_exit(here)
        assert (ended.cause, ended.detail, ended.log_tail) == (
            Cause.AFTER_FAILED,
            "gate: it ended with code 1: too bad",
            "too bad",
        )
        assert (last.trained, last.after_done) == (True, 0)
        assert not (here.disk / "work/published").exists()
        assert "too bad" in here.evidence(AFTER_STREAM)


def test_another_machine_goes_on_with_the_first_step_that_is_not_done_and_does_not_train_again(
    tmp_path: Path,
) -> None:
    first = {"name": "evaluate", "run": WRITE, "env": {"SUBJECT": "maths"}, "outputs": ["tested/**"]}
    waits = {"name": "export", "run": "touch waiting; sleep 600"}
    with attempt(tmp_path, a_spec(first, waits), files=FILES) as here:
        await_true("the second step runs", (here.disk / "work/waiting").exists)
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.after_done == 1)
        here.agent.kill()
    point = ResumePoint(step=30, attempt=1, key=manifest_key(RUN_ID, 30, 1))
    exports = {
        "name": "export",
        "run": 'cat tested/30.txt > exported.txt; test -e "$PRIME_TRAIN_CHECKPOINT/weights.npz"',
    }
    wanted = a_spec(first, exports, smoke={"command": "touch smoked"})
    with attempt(
        tmp_path,
        wanted,
        files=FILES,
        resume=point,
        attempt=2,
        trained=True,
        after_done=1,
        after_failed="a failed",
    ) as second:
        last, ended = the_exit(second)
        assert (ended.cause, last.trained, last.after_done, last.after_failed) == (
            Cause.FINISHED,
            True,
            2,
            "a failed",
        )
        assert (second.disk / "work/exported.txt").read_text() == "maths"
        assert second.log("trainer.log") == "(no trainer.log)"
        assert not (second.disk / "work/smoked").exists()
        assert Phase.TRAIN not in {heartbeat.phase for heartbeat in second.plane.heartbeats}
        assert "evaluate" not in second.log(AFTER_STREAM)


def test_a_machine_that_is_taken_away_kills_the_step_and_reports_that_training_has_succeeded(
    tmp_path: Path,
) -> None:
    with attempt(tmp_path, a_spec({"name": "export", "run": "touch waiting; sleep 600"})) as here:
        await_true("the step runs", (here.disk / "work/waiting").exists)
        here.agent.send_signal(signal.SIGTERM)
        last, ended = the_exit(here)
        assert (ended.cause, last.trained, last.after_done) == (Cause.PREEMPTED, True, 0)


def test_an_order_to_stop_is_obeyed_between_training_and_the_steps_after_it(tmp_path: Path) -> None:
    with attempt(tmp_path, a_spec({"name": "export", "run": "touch waiting; sleep 600"})) as here:
        await_true("the step runs", (here.disk / "work/waiting").exists)
        here.plane.order = Order.DRAIN
        last, ended = the_exit(here)
        assert (ended.cause, last.trained, last.after_done) == (Cause.STOPPED_GRACEFULLY, True, 0)


def test_checkpoints_are_evaluated_while_training_goes_on_and_those_passed_over_are_named(
    tmp_path: Path,
) -> None:
    # The evaluation of the first checkpoint waits until two newer ones are complete, and training waits for
    # the evaluation.
    evaluate = """
import json, os, pathlib, time
checkpoint, step = pathlib.Path(os.environ["PRIME_TRAIN_CHECKPOINT"]), int(os.environ["PRIME_TRAIN_STEP"])
assert (checkpoint / "weights.npz").stat().st_size > 0
pathlib.Path("began").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.05)
pathlib.Path(os.environ["PRIME_TRAIN_RESULTS"]).write_text(json.dumps({"accuracy": step, "niceness": os.nice(0)}))
"""
    step = {"name": "evaluate", "run": WRITE, "evaluate_every": 10}
    wanted = demo_spec("--steps 100000 --save-every 10 --step-seconds 0.02", after=[step], outputs_every_s=1)
    with attempt(tmp_path, wanted, files={"evaluate.py": evaluate.encode()}) as here:
        await_true("the first evaluation runs", (here.disk / "work/began").exists)
        first = int(re.findall(r"=== evaluate, step (\d+)", here.log(EVALUATIONS_STREAM))[0])
        await_true(
            "two newer checkpoints are complete", lambda: "passes over" in here.log(EVALUATIONS_STREAM)
        )
        (here.disk / "work/go").touch()
        await_true(
            "the results of two evaluations are stored",
            lambda: len({step for _, _, step in results_of(here)}) >= 2,
        )
        found = results_of(here)
        log = here.log(EVALUATIONS_STREAM)
        here.plane.order = Order.DRAIN
        the_exit(here)
    assert {source for _, source, _ in found} == {ResultSource.EVALUATION}
    assert (found["niceness", ResultSource.EVALUATION, first] or 0) >= 10
    passed_over = [
        int(step)
        for step in re.findall(
            r"=== evaluate passes over the checkpoint of step (\d+), because that of step", log
        )
    ]
    assert passed_over
    assert not {step for _, _, step in found} & set(passed_over)
