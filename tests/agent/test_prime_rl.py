"""The real agent with a fake prime-rl that shows prime-rl's pitfalls: what it is given, how its exits are
classified, and what is kept of its logs.
"""

import http.client
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_agent.trainer.component_heartbeats import Heartbeats, report
from prime_agent.trainer.stale_outputs import listing, move_aside, remove_unneeded
from prime_train.buckets.keys import manifest_key
from prime_train.launch.code.archive import pack
from prime_train.launch.launch import plan
from prime_train.pages.demo import demo_page_html
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import RunState
from prime_train.runs.wire import Bootstrap, Heartbeat, Order, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.stores.memory import MemoryStore
from prime_train.trainers.component_heartbeats import ReceivedHeartbeats
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.prime_rl.trainer import COMPONENTS
from prime_train.trainers.stale_outputs import Disposable, StaleOutputs
from tests import builders as b
from tests.agent.attempts import RUN_ID, Attempt, attempt
from tests.fakes.prime_rl import uv_in
from tests.fakes.prime_rl.upstream import upstream_in
from tests.trainers.prime_rl.prime_rl_spec import FOLDER, prime_rl_spec
from tests.waiting import HANG_S
from tests.webhook.calls import ask, handle, stored, webhook

FILES = {"rl.toml": b'[model]\nname = "Qwen/Qwen3-0.6B"\n'}


class Shop:
    """What a machine downloads: prime-rl's repository, and a `uv` that runs the fake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git, commits = upstream_in(folder / "upstream")
        self.uv = uv_in(folder / "bin")
        self.ref = commits[-1]

    def spec(self, **changes: Any) -> RunSpec:
        """Return a spec that saves every fifth of twenty steps."""
        return prime_rl_spec(
            part={"ref": self.ref},
            checkpoints={"every_steps": 5},
            hardware={"open_files_min": 256, "disk_gib": 1},
            health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
            **changes,
        )

    def attempt(
        self, *, dies: str = "", files: Mapping[str, bytes] | None = None, **more: Any
    ) -> AbstractContextManager[Attempt]:
        env = {**self.git, **self.uv, "FAKE_RL_DIES": dies}
        return attempt(self.folder, self.spec(), files={**FILES, **(files or {})}, env=env, **more)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def the_exit(here: Attempt) -> Heartbeat:
    assert here.wait() == 0
    (last,) = here.plane.exits
    return last


def cause_of(last: Heartbeat) -> Cause:
    assert last.exit is not None
    return last.exit.cause


def moved_aside(here: Attempt, *, attempt: int) -> set[str]:
    folder = (here.disk / "work" / FOLDER).parent / f".aside-e{attempt}"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


# ------------------------------------------------------------------------------------------------------------
# its whole life


def test_it_is_installed_at_its_commit_and_trains_to_the_end(shop: Shop) -> None:
    with shop.attempt() as here:
        last = the_exit(here)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, 20, 20)
        head = subprocess.run(
            ["git", "-C", here.disk / "prime-rl", "rev-parse", "HEAD"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert head.stdout.strip() == shop.ref
        assert "sync --project ../prime-rl" in (shop.folder / "bin" / "uv.log").read_text()
        assert moved_aside(here, attempt=1) == set()


def test_a_commit_that_cannot_be_had_is_a_failed_set_up_and_nothing_is_trained(
    tmp_path: Path, shop: Shop
) -> None:
    wanted = prime_rl_spec(hardware={"open_files_min": 256, "disk_gib": 1})
    with attempt(tmp_path, wanted, files=FILES, env={**shop.git, **shop.uv}) as here:
        last = the_exit(here)
        assert cause_of(last) is Cause.SETUP_FAILED
        assert last.step == 0


def test_a_second_machine_resumes_the_newest_complete_checkpoint_past_halves_and_stray_names(
    shop: Shop,
) -> None:
    with shop.attempt(dies="oom@14") as first:
        last = the_exit(first)
        assert (cause_of(last), last.step) == (Cause.GPU_OOM, 13)
        # The orchestrator saved step 15 when it crashed; it is no checkpoint.
        assert (first.disk / "work" / FOLDER / "checkpoints" / "step_15").exists()
        assert first.plane.commits[-1].step == 10
        assert "CUDA out of memory" in first.evidence("prime_rl-trainer.log")
    orphan = {f"{FOLDER}/rollouts/step_10.tmp/row": b"1", f"{FOLDER}/checkpoints/step_10.tmp/row": b"1"}
    half = {f"{FOLDER}/checkpoints/step_15/orchestrator/progress.pt": b"half"}
    point = ResumePoint(step=10, attempt=1, key=manifest_key(RUN_ID, 10, 1))
    with shop.attempt(resume=point, attempt=2, files=orphan | half) as second:
        last = the_exit(second)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, 20, 20)
        gone = {"old-rollouts-step_10.tmp", "old-checkpoints-step_10.tmp", "old-checkpoints-step_15"}
        assert moved_aside(second, attempt=2) == gone


def test_results_of_an_older_run_in_the_working_tree_are_no_reason_to_refuse_or_to_upload(shop: Shop) -> None:
    with shop.attempt(
        files={f"{FOLDER}/checkpoints/step_90/trainer/.metadata": b"old", f"{FOLDER}/metrics.jsonl": b""}
    ) as here:
        last = the_exit(here)
        assert (cause_of(last), last.step) == (Cause.FINISHED, 20)
        assert here.plane.commits[-1].step == 20
        assert moved_aside(here, attempt=1) == {"old-checkpoints", "old-metrics.jsonl"}


# ------------------------------------------------------------------------------------------------------------
# how it dies


def test_a_crash_that_ends_with_code_0_is_no_success(shop: Shop) -> None:
    with shop.attempt(dies="masked@7") as here:
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.code, last.step) == (Cause.TRAINER_ERROR, 1, 6)
        assert "Session is closed" in last.exit.detail


def test_weights_that_cannot_be_broadcast_over_nccl_go_over_the_file_system_next_time(shop: Shop) -> None:
    with shop.attempt(dies="nccl@0") as first:
        last = the_exit(first)
        assert cause_of(last) is Cause.WEIGHT_BROADCAST
        assert "init_broadcaster" in first.evidence("prime_rl-orchestrator.log")
    with shop.attempt(dies="nccl@0", attempt=2, last_cause=Cause.WEIGHT_BROADCAST) as second:
        assert cause_of(the_exit(second)) is Cause.FINISHED


def test_a_disk_that_broadcasts_have_filled_is_named(shop: Shop) -> None:
    with shop.attempt(dies="disk@8") as here:
        last = the_exit(here)
        assert (cause_of(last), last.uploaded_step) == (Cause.DISK_FULL, 5)


def test_while_the_trainer_waits_for_a_dead_inference_server_the_evidence_names_it(shop: Shop) -> None:
    with shop.attempt(dies="vllm@7") as here:
        here.plane.await_heartbeat(
            lambda heartbeat: (
                heartbeat.step == 6 and heartbeat.step_age_s >= 2 and heartbeat.phase is Phase.TRAIN
            )
        )
        here.plane.order = Order.EVIDENCE
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.evidence)
        reported = here.evidence("stall.txt")
        assert "trainer: 6 heartbeats, the last one " in reported
        assert "orchestrator: 8 heartbeats, the last one " in reported
        assert "the trainer fell silent first" in reported
        assert 'inference_failed: GET /liveness 503 {"status": "engine_unresponsive"}' in reported
        assert "engine_unresponsive" in here.evidence("prime_rl-inference.log")
        assert here.plane.await_heartbeat(lambda heartbeat: "inference_failed" in heartbeat.note).exit is None


# ----------------------------------------------------------------------------------------------------- what
# the next one is told


@pytest.mark.parametrize("launches_lost", [0, 2])
def test_the_next_attempt_learns_why_the_last_one_that_ran_anything_ended(launches_lost: int) -> None:
    attempt = 3 + launches_lost
    run = b.run(RunState.STARTING, attempt=attempt)
    ran = replace(run.attempts[1], cause=Cause.WEIGHT_BROADCAST)
    lost = tuple(
        replace(attempt, first_heartbeat_s=None, cause=Cause.LAUNCH_REFUSED) for attempt in run.attempts[2:-1]
    )
    store = MemoryStore()
    stored(store, b.record(replace(run, attempts=(run.attempts[0], ran, *lost, run.attempts[-1]))))

    job = Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap", attempt=attempt)).body)

    assert job.last_cause is Cause.WEIGHT_BROADCAST


def test_the_first_attempt_learns_of_none() -> None:
    store = MemoryStore()
    stored(store, b.record(b.run(RunState.STARTING)))
    assert (
        Bootstrap.model_validate_json(handle(webhook(store), ask("bootstrap", attempt=1)).body).last_cause
        is None
    )


# ---------------------------------------------------------------------------------------------------------
# leftovers on a disk


def stale(folder: str = FOLDER) -> StaleOutputs:
    found = trainer_for(prime_rl_spec()).stale_outputs(prime_rl_spec())
    assert found is not None
    return replace(found, folder=folder)


def lay(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def test_an_older_leftover_of_the_same_name_makes_way(tmp_path: Path) -> None:
    run = tmp_path / FOLDER
    for content in ("first", "second"):
        lay(run, "broadcasts/step_9/STABLE", f"broadcasts/{content}", "logs/attempt_1/trainer.log")
        (run / "logs" / "latest").symlink_to("attempt_1")
        assert move_aside(tmp_path, stale(), 10, attempt=3) == ("broadcasts", "logs/latest")
    aside = run.parent / ".aside-e3"
    assert sorted(path.name for path in (aside / "old-broadcasts").iterdir()) == ["second", "step_9"]
    assert (aside / "old-logs-latest").is_symlink()
    assert (run / "logs" / "attempt_1" / "trainer.log").exists()
    assert not (run / "broadcasts").exists()


def test_where_nothing_was_launched_yet_nothing_is_moved(tmp_path: Path) -> None:
    assert move_aside(tmp_path, stale(), 10, attempt=1) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_very_many_files_is_listed_from_the_top(tmp_path: Path) -> None:
    lay(
        tmp_path,
        "checkpoints/step_5/trainer/.metadata",
        "checkpoints/step_5/trainer/.metadata.d/x",
        "rollouts/step_1/train/rank_0.bin",
    )
    assert listing(tmp_path, stale("."), entries_max=4) == [
        "checkpoints",
        "rollouts",
        "checkpoints/step_5",
        "rollouts/step_1",
    ]
    deepest = "checkpoints/step_5/trainer/.metadata"
    assert listing(tmp_path, stale("."))[4:] == ["checkpoints/step_5/trainer", deepest, f"{deepest}.d"]


# -------------------------------------------------------------------------------------------------------
# weights that pile up


BROADCASTS = f"{FOLDER}/broadcasts"


@pytest.fixture
def disposable(tmp_path: Path) -> Disposable:
    lay(tmp_path, *(f"{BROADCASTS}/step_{step}/STABLE" for step in (5, 10, 15, 16, 17)))
    found = trainer_for(prime_rl_spec()).disposable(prime_rl_spec())
    assert found is not None
    return found


def test_on_a_disk_that_fills_up_only_the_weights_in_use_stay(tmp_path: Path, disposable: Disposable) -> None:
    told: list[int] = []
    assert remove_unneeded(tmp_path, disposable, 16, disk_path=tmp_path, share_max=0.0, told=told.append) == (
        "step_5",
        "step_10",
    )
    assert len(told) == 2
    assert sorted(path.name for path in (tmp_path / BROADCASTS).iterdir()) == [
        "step_15",
        "step_16",
        "step_17",
    ]


def test_with_room_on_the_disk_or_without_broadcasts_nothing_is_removed(
    tmp_path: Path, disposable: Disposable
) -> None:
    assert remove_unneeded(tmp_path, disposable, 16, disk_path=tmp_path, share_max=1.0) == ()
    assert remove_unneeded(tmp_path / "none", disposable, 16, disk_path=tmp_path, share_max=0.0) == ()
    assert trainer_for(b.spec()).disposable(b.spec()) is None


def test_a_name_that_does_not_lie_in_the_folder_is_never_removed(tmp_path: Path) -> None:
    lay(tmp_path, "outputs/precious/x")
    lay(tmp_path, "outputs/weights/step_1/x")
    careless = Disposable("outputs/weights", lambda names, step: ("../precious", "step_1"))
    assert remove_unneeded(tmp_path, careless, 16, disk_path=tmp_path, share_max=0.0) == ("step_1",)
    assert (tmp_path / "outputs" / "precious" / "x").exists()


# ------------------------------------------------------------------------------------------------------------
# heartbeats


def status_of(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture
def clock() -> Iterator[float]:
    return iter(float(n) for n in range(100))


def test_pings_of_each_component_are_counted_and_those_of_strangers_are_not(clock: Iterator[float]) -> None:
    heartbeats = Heartbeats(COMPONENTS, lambda: next(clock))
    paths = ("/hb/trainer", "/hb/orchestrator", "/hb/orchestrator?rank=0", "/hb/else", "/")
    assert [status_of(heartbeats.port, path) for path in paths] == [204, 204, 204, 404, 404]
    assert report(heartbeats.received, 62.0, quiet_s=30) == [
        "trainer: 1 heartbeats, the last one 62 s ago",
        "orchestrator: 2 heartbeats, the last one 60 s ago",
        "the trainer fell silent first",
    ]


def test_nobody_is_blamed_while_one_still_pings_or_before_both_did(clock: Iterator[float]) -> None:
    heartbeats = Heartbeats(COMPONENTS, lambda: next(clock))
    assert report(dict.fromkeys(COMPONENTS, ReceivedHeartbeats()), 60.0, quiet_s=30) == [
        "trainer: 0 heartbeats",
        "orchestrator: 0 heartbeats",
    ]
    for side in ("trainer", "orchestrator"):
        status_of(heartbeats.port, f"/hb/{side}")
    assert len(report(heartbeats.received, 20.0, quiet_s=30)) == 2


# ----------------------------------------------------------------------------------------------------------
# what people launch


def test_what_earlier_runs_left_in_the_folder_of_this_one_is_not_packed(tmp_path: Path) -> None:
    lay(
        tmp_path / "tree",
        "rl.toml",
        f"{FOLDER}/metrics.jsonl",
        f"{FOLDER}/checkpoints/step_5/trainer/x",
        "outputs/notes",
    )
    made = plan(prime_rl_spec(trainer={"code": {"folder": str(tmp_path / "tree")}}), allowed=None)
    assert made.snapshot is not None
    assert pack(made.snapshot, tmp_path / "code.tar.gz") is None
    with tarfile.open(tmp_path / "code.tar.gz") as packed:
        assert sorted(packed.getnames()) == ["outputs/notes", "rl.toml"]


def test_the_page_of_a_run_shows_the_launchers_line_and_the_commit() -> None:
    wanted = prime_rl_spec(part={"overrides": ["--trainer.optim.lr", "1e-5"]})
    assert wanted.trainer.prime_rl is not None
    page = demo_page_html(b.run(RunState.TRAINING, spec=wanted), [], [])
    line = shlex.join(["rl", "@", "rl.toml", "--trainer.optim.lr", "1e-5"])
    assert f"{line}, prime-rl at {wanted.trainer.prime_rl.ref}" in page
