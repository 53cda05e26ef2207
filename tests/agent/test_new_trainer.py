"""A kind of trainer that prime-train does not have is added as one package and one row, and everything works
with it.
"""

import json
import socket
from pathlib import Path

import pytest

from prime_train.buckets.keys import manifest_key
from prime_train.configs.history.versions import trainer_file
from prime_train.pages.sections import facts
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import RunState
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.spec.reader import read_text
from prime_train.spec.schema import schema_text
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.registry import TRAINERS
from tests import builders as b
from tests.agent import new_trainer
from tests.agent.attempts import RUN_ID, Attempt, attempt
from tests.agent.new_trainer.train import after

AGENT = "tests.agent.new_trainer.agent"
CONFIG = "name: tiny\ntrainer: {kind: counting, steps: 12}\nbudget: {usd: 5}\n"


@pytest.fixture(autouse=True)
def _row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAINERS, new_trainer.KIND, new_trainer.ROW)


def counting(steps: int) -> RunSpec:
    return b.spec(
        trainer={"kind": new_trainer.KIND, "command": "", "steps": steps},
        hardware={"open_files_min": 256, "disk_gib": 1},
        health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
    )


def tree(**settings: int) -> dict[str, bytes]:
    """Create the working tree, with a port that is free now and with leftovers of an earlier launch."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = [f"{name}={value}" for name, value in {"port": port, **settings}.items()]
    return {new_trainer.CONFIG: "\n".join(lines).encode(), "out/session": b"an earlier launch"}


def state_after(steps: int) -> int:
    state = 1
    for _ in range(steps):
        state = after(state)
    return state


def saved(here: Attempt, step: int) -> int:
    return int((here.disk / "work" / "out" / "saved" / f"iteration-{step:06d}" / "state").read_text())


def test_it_is_killed_with_its_machine_and_resumes_from_the_bucket(tmp_path: Path) -> None:
    with attempt(tmp_path, counting(100_000), files=tree(), agent=AGENT) as first:
        first.plane.await_commit(10)
        assert (first.disk / "work" / "old-session-1").exists()
        first.agent.kill()
        first.agent.wait()
        newest = first.plane.commits[-1]
    point = ResumePoint(step=newest.step, attempt=1, key=newest.key)
    with attempt(
        tmp_path, counting(newest.step + 23), files=tree(), resume=point, attempt=2, agent=AGENT
    ) as second:
        assert second.wait() == 0
        (last,) = second.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.step, last.uploaded_step) == (
            Cause.FINISHED,
            newest.step + 23,
            newest.step + 23,
        )
        assert second.plane.commits[-1].key == manifest_key(RUN_ID, newest.step + 23, 2)
        assert min(heartbeat.step for heartbeat in second.plane.heartbeats if heartbeat.step) > newest.step
        assert last.loss == pytest.approx(1 / (newest.step + 23), abs=1e-4)
        assert saved(second, newest.step + 23) == state_after(newest.step + 23)


def test_its_service_that_dies_while_it_waits_is_named(tmp_path: Path) -> None:
    with attempt(tmp_path, counting(100_000), files=tree(stall=12), agent=AGENT) as here:
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.sick)
        assert (answer.sick, answer.phase, answer.evidence) == (Cause.NETWORK_ERROR, Phase.TRAIN, True)
        assert answer.sick_detail.startswith("the abacus refuses connections for ")
        assert "while the trainer has waited at step 12 for " in answer.sick_detail


def test_the_cause_of_its_death_is_read_from_its_own_log(tmp_path: Path) -> None:
    with attempt(tmp_path, counting(12), files=tree(dies=7), agent=AGENT) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert (last.exit.cause, last.exit.detail, last.uploaded_step) == (
            Cause.HOST_OOM,
            "it ran out of fingers",
            5,
        )
        assert here.evidence("counting-counting.log") == "it ran out of fingers\n"


def test_a_config_can_name_it_and_what_it_decides_itself_is_filled_in() -> None:
    read = read_text(CONFIG, "run.yaml")
    assert read.findings == ()
    assert read.spec is not None
    kept = read.spec.checkpoints
    assert (kept.folder, kept.pattern, kept.sentinel, kept.files) == (
        "out/saved",
        "iteration-{step:06d}",
        "done",
        ("state",),
    )
    assert trainer_for(read.spec).step_of(read.spec, "iteration-000005") == 5
    assert trainer_file(CONFIG, Path("run.yaml")) == Path(new_trainer.CONFIG)
    assert "count to 12" in facts(b.run(RunState.TRAINING, spec=read.spec), {})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{kind: countign, steps: 12}", "did you mean counting?"),
        ("{kind: counting}", "kind counting needs the number of steps, because it would count forever"),
        (
            "{kind: counting, steps: 12, command: x}",
            "kind counting has its own command; delete this key, and write counting.txt",
        ),
        (
            "{kind: counting, steps: 12, prime_rl: {config: rl.toml, ref: 0123456789}}",
            "prime_rl: kind prime_rl needs this section, and other kinds do not allow it",
        ),
    ],
)
def test_what_is_wrong_with_a_config_of_it_is_reported(wrong: str, message: str) -> None:
    (finding,) = read_text(CONFIG.replace("{kind: counting, steps: 12}", wrong), "run.yaml").findings
    assert message in f"{finding.message}; {finding.fix}"


def test_editors_know_it() -> None:
    kind = json.loads(schema_text())["$defs"]["TrainerSpec"]["properties"]["kind"]
    assert new_trainer.KIND in kind["enum"]
    assert "counting counts." in kind["description"]
