"""Whole attempts: the real agent as a process, the demo's trainer, real HTTP, a bucket in a folder."""

import json
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from prime_train.buckets.keys import blob_prefix, latest_key, manifest_key, manifest_prefix
from prime_train.checkpoints.catalog import read_manifest
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.verify import verify
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Heartbeat, Order, Outcome, Phase, Reply, Ticket
from prime_train.spec.causes import Cause
from tests.agent.attempts import DEMO, RUN_ID, Attempt, attempt, demo_spec
from tests.exhaustive import some_of
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.http import ALWAYS, CutRequest
from tests.fakes.http import Response as FakeResponse
from tests.waiting import HANG_S, await_true

LONG = "--steps 100000 --save-every 10 --step-seconds 0.02"


def the_exit(here: Attempt, *, code: int = 0) -> Heartbeat:
    """Wait for the agent to end with `code`, and return the exit that it reported."""
    assert here.wait() == code
    (last,) = here.plane.exits
    assert last.phase is Phase.EXITED
    assert here.plane.heartbeats[-1] == last
    await_true("a trainer that was killed is gone", lambda: not here.trainers())
    return last


def cause_of(heartbeat: Heartbeat) -> Cause:
    assert heartbeat.exit is not None
    return heartbeat.exit.cause


def steps_in_bucket(here: Attempt) -> list[int]:
    return [int(stat.key.rsplit("/", 1)[-1][:12]) for stat in here.bucket.list(manifest_prefix(RUN_ID))]


# ------------------------------------------------------------------------------------------------------------
# the good days


def test_a_run_trains_to_its_end_and_its_last_checkpoint_is_committed_before_that_is_reported(
    tmp_path: Path,
) -> None:
    wanted = demo_spec(
        "--steps 30 --save-every 10",
        trainer={"steps": 30},
        setup=["echo hello > made"],
        verification=[{"path": "made"}],
    )
    with attempt(tmp_path, wanted) as here:
        last = the_exit(here)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, 30, 30)
        assert here.plane.commits[-1].key == manifest_key(RUN_ID, 30, 1)
        latest = here.bucket.get(latest_key(RUN_ID))
        assert latest is not None
        assert json.loads(latest.data)["step"] == 30
        seen = [heartbeat.phase for heartbeat in here.plane.heartbeats]
        assert seen == sorted(seen, key=list(Phase).index)
        assert seen[0] is Phase.PREFLIGHT
        assert Phase.TRAIN in seen


def test_without_a_sentinel_the_last_checkpoint_needs_no_time_to_settle_once_the_trainer_is_gone(
    tmp_path: Path,
) -> None:
    wanted = demo_spec("--steps 20 --save-every 20", checkpoints={"sentinel": None, "settled_s": 3600})
    with attempt(tmp_path, wanted) as here:
        assert cause_of(the_exit(here)) is Cause.FINISHED
        assert steps_in_bucket(here) == [20] == [commit.step for commit in here.plane.commits]
        # The manifest tells when it was made, not the time with which the files were compared.
        assert read_manifest_of(here, 20).created_s <= time.time()


def test_a_second_attempt_restores_and_goes_on_with_the_next_step(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec("--steps 20 --save-every 10")) as first:
        the_exit(first)
    point = ResumePoint(step=20, attempt=1, key=manifest_key(RUN_ID, 20, 1))
    with attempt(tmp_path, demo_spec("--steps 40 --save-every 10"), resume=point, attempt=2) as second:
        last = the_exit(second)
        assert (cause_of(last), last.step) == (Cause.FINISHED, 40)
        assert "resumed from step 20" in second.log("trainer.log")
        assert min(heartbeat.step for heartbeat in second.plane.heartbeats if heartbeat.step) > 20
        assert second.plane.commits[-1].key == manifest_key(RUN_ID, 40, 2)


def test_the_trainer_gets_environment_and_secrets_and_its_log_tail_does_not_show_them(tmp_path: Path) -> None:
    command = (
        f"{sys.executable} -c \"import os, sys; print(os.environ['TOKEN'], "
        "os.environ['COLOUR']); "
        'sys.exit(3)"'
    )
    wanted = demo_spec(
        "", trainer={"command": command, "progress": {}}, environment={"COLOUR": "green"}, secrets=["TOKEN"]
    )
    with attempt(tmp_path, wanted, secrets={"TOKEN": "tok-123456"}) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.code, last.exit.log_tail) == (3, "<TOKEN> green")
        assert here.evidence("trainer.log").strip() == "<TOKEN> green"


def test_a_key_that_the_trainer_prints_and_nobody_named_is_not_in_the_evidence(tmp_path: Path) -> None:
    token, body = "hf_" + "a1B2" * 8, "MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0b"
    key = f"-----BEGIN RSA PRIVATE KEY-----\\n{body}\\n-----END RSA PRIVATE KEY-----"
    command = f"{sys.executable} -c \"print('{token} {key} the end'); raise SystemExit(3)\""
    with attempt(tmp_path, demo_spec("", trainer={"command": command, "progress": {}})) as here:
        the_exit(here)
        kept = here.evidence("trainer.log")
    assert "the end" in kept
    assert token not in kept
    assert body not in kept


def test_progress_is_read_from_the_output_where_there_is_no_file(tmp_path: Path) -> None:
    progress = {"kind": "regex", "pattern": r"step (?P<step>\d+)/\d+ loss (?P<loss>[\d.]+)", "file": None}
    with attempt(tmp_path, demo_spec("--steps 30 --save-every 30", trainer={"progress": progress})) as here:
        last = the_exit(here)
        assert last.step == 30
        assert last.loss is not None


def test_steps_of_an_older_progress_file_in_the_tree_are_not_taken_for_ours(tmp_path: Path) -> None:
    old = b'{"step": 90000, "loss": 1.0}\n'
    with attempt(tmp_path, demo_spec("--steps 20 --save-every 10"), files={"progress.jsonl": old}) as here:
        assert the_exit(here).step == 20


def test_a_checkpoint_that_came_with_the_tree_is_not_uploaded(tmp_path: Path) -> None:
    old = {f"out/checkpoints/step_500/{name}": b"old" for name in ("weights.npz", "COMPLETE")}
    with attempt(tmp_path, demo_spec("--steps 20 --save-every 10"), files=old) as here:
        the_exit(here)
        assert 500 not in steps_in_bucket(here)


def test_a_clock_that_is_an_hour_off_is_put_right_by_the_first_refusal(tmp_path: Path) -> None:
    def an_hour_ahead(plane: FakeControlPlane) -> None:
        honest = plane.clock
        plane.clock = lambda: honest() + 3600

    with attempt(tmp_path, demo_spec("--steps 5"), prepare=an_hour_ahead) as here:
        assert cause_of(the_exit(here)) is Cause.FINISHED
        assert {status for _, status in here.plane.refused} == {401}


# ---------------------------------------------------------------------------------------------------- before
# training begins


def test_every_row_of_verification_that_does_not_hold_is_named_with_what_was_found(tmp_path: Path) -> None:
    rows = [
        {"path": "data/*/dataset.json", "exactly": 2, "size_min": "1 kB"},
        {"path": "**/*.bin", "at_least": 3},
        {"path": "README"},
    ]
    files = {"data/a/dataset.json": b"x" * 2000, "data/b/dataset.json": b"", "README": b"r", "w/1.bin": b"1"}
    with attempt(tmp_path, demo_spec("--steps 5", verification=rows), files=files) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.cause is Cause.VERIFY_FAILED
        assert (
            "data/*/dataset.json: exactly 2 of at least 1.0 kB required, 2 found: data/b/dataset.json (0 B, "
            "too small)" in last.exit.detail
        )
        assert "**/*.bin: at least 3 required, 1 found: w/1.bin (1 B)" in last.exit.detail
        assert "README" not in last.exit.detail


def test_a_set_up_command_that_fails_is_named_with_its_code_and_output(tmp_path: Path) -> None:
    wanted = demo_spec("--steps 5", setup=["echo one", "echo about to fail; exit 7", "touch never"])
    with attempt(tmp_path, wanted) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.cause is Cause.SETUP_FAILED
        assert last.exit.detail == "`echo about to fail; exit 7` ended with code 7: about to fail"
        assert "about to fail" in last.exit.log_tail
        assert "about to fail" in here.evidence("setup.log")
        assert not (here.disk / "work" / "never").exists()


def test_a_package_that_does_not_exist_is_no_fault_of_the_network_that_was_lost_before(
    tmp_path: Path,
) -> None:
    lost = "WARNING: Retrying after connection broken by NewConnectionError: Name or service not known"
    wanted = demo_spec(
        "--steps 5",
        setup=[f"echo '{lost}'; echo 'ERROR: No matching distribution found for flash-atn==9.9'; exit 1"],
    )
    with attempt(tmp_path, wanted) as here:
        assert cause_of(the_exit(here)) is Cause.SETUP_FAILED


def test_a_set_up_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    wanted = demo_spec("--steps 5", setup=["sleep 300 & sleep 300"], health={"first_step_s": 1})
    with attempt(tmp_path, wanted) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.detail == "`sleep 300 & sleep 300` did not end within 1 s"


@pytest.mark.parametrize(
    ("smoke", "text"),
    [
        ({"command": "echo broken; exit 4"}, "ended with code 4"),
        ({"command": "sleep 300", "timeout_s": 1}, "did not end within 1 s"),
        ({"command": "echo '{\"step\": 1}' >> progress.jsonl", "steps": 2}, "reached step 1 of 2"),
    ],
)
def test_a_smoke_test_that_fails_ends_the_attempt(
    smoke: dict[str, object], text: str, tmp_path: Path
) -> None:
    with attempt(tmp_path, demo_spec("--steps 5", smoke=smoke)) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.cause is Cause.SMOKE_FAILED
        assert text in last.exit.detail


def test_the_steps_and_checkpoints_of_a_smoke_test_are_not_the_runs(tmp_path: Path) -> None:
    python = f"{sys.executable} -m prime_train.demo.train --out out --progress progress.jsonl --batch-size 8"
    wanted = demo_spec(
        "--steps 4 --save-every 4", smoke={"command": f"{python} --steps 9 --save-every 9", "steps": 9}
    )
    with attempt(tmp_path, wanted) as here:
        last = the_exit(here)
        assert (cause_of(last), last.step) == (Cause.FINISHED, 4)
        assert steps_in_bucket(here) == [4]


def test_a_machine_that_is_unfit_is_reported_with_the_values_seen(tmp_path: Path) -> None:
    wanted = demo_spec("--steps 5", hardware={"open_files_min": 256, "disk_gib": 100_000, "gpus": ["H100"]})
    with attempt(tmp_path, wanted) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.cause is Cause.PREFLIGHT_FAILED
        assert "hardware.disk_gib = 100000" in last.exit.detail
        assert "no GPU is visible" in last.exit.detail


def test_a_checkpoint_that_cannot_be_restored_ends_the_attempt(tmp_path: Path) -> None:
    point = ResumePoint(step=20, attempt=1, key=manifest_key(RUN_ID, 20, 1))
    with attempt(tmp_path, demo_spec("--steps 40"), resume=point, attempt=2) as here:
        assert cause_of(the_exit(here)) is Cause.RESTORE_FAILED


def test_an_attempt_that_finds_every_checkpoint_damaged_says_so(tmp_path: Path) -> None:
    with attempt(
        tmp_path, demo_spec("--steps 20 --save-every 10 --step-seconds 0.2", trainer={"steps": 20})
    ) as first:
        the_exit(first)
    for stat in first.bucket.list(blob_prefix(RUN_ID)):
        content = first.bucket.get(stat.key)
        assert content is not None
        first.bucket.put(stat.key, content.data[:-1] + bytes([content.data[-1] ^ 1]))
    point = ResumePoint(step=20, attempt=1, key=manifest_key(RUN_ID, 20, 1))
    with attempt(tmp_path, demo_spec("--steps 40"), resume=point, attempt=2) as second:
        last = the_exit(second)
        assert last.exit is not None
        assert last.exit.cause is Cause.CHECKPOINTS_DAMAGED
        assert "step 20 is damaged in the bucket" in last.exit.detail


@pytest.mark.parametrize("harm", ["a byte is flipped", "its manifest lists fewer files"])
def test_a_damaged_checkpoint_is_passed_over_for_an_older_one_and_what_was_wrong_is_sent_anew(
    tmp_path: Path, harm: str
) -> None:
    with attempt(
        tmp_path, demo_spec("--steps 20 --save-every 10 --step-seconds 0.2", trainer={"steps": 20})
    ) as first:
        the_exit(first)
        newest = read_manifest(first.bucket, manifest_key(RUN_ID, 20, 1))
        assert newest is not None
        damage(first, newest, harm)
    point = ResumePoint(step=20, attempt=1, key=newest.key)
    longer = demo_spec("--steps 30 --save-every 10", trainer={"steps": 30})
    with attempt(tmp_path, longer, resume=point, attempt=2) as second:
        last = the_exit(second)
        assert (cause_of(last), last.step, last.uploaded_step) == (Cause.FINISHED, 30, 30)
        assert "step 20" in second.log("agent.log")
        assert "resumed from step 10" in second.log("trainer.log")
        again = read_manifest(second.bucket, manifest_key(RUN_ID, 30, 2))
        assert again is not None
        assert verify(second.bucket, again) == []


def damage(here: Attempt, manifest: Manifest, harm: str) -> None:
    if harm == "a byte is flipped":
        for key in {key for key in manifest.blobs() if key not in read_manifest_of(here, 10).blobs()}:
            content = here.bucket.get(key)
            assert content is not None
            here.bucket.put(key, content.data[:-1] + bytes([content.data[-1] ^ 1]))
    else:
        files = tuple(file for file in manifest.files if file.path != "COMPLETE")
        here.bucket.put(manifest.key, manifest.model_copy(update={"files": files}).model_dump_json().encode())


def read_manifest_of(here: Attempt, step: int) -> Manifest:
    found = read_manifest(here.bucket, manifest_key(RUN_ID, step, 1))
    assert found is not None
    return found


def test_the_job_is_requested_until_the_control_plane_answers(tmp_path: Path) -> None:
    def away(plane: FakeControlPlane) -> None:
        plane.fail(CutRequest(), times=ALWAYS)

    with attempt(tmp_path, demo_spec("--steps 5"), prepare=away) as here:
        here.plane.await_refusals(2)
        here.plane.heal()
        assert cause_of(the_exit(here)) is Cause.FINISHED


def test_two_agents_do_not_work_on_one_disk(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(LONG)) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 0)
        command = [
            sys.executable,
            "-m",
            "prime_agent.main",
            "--ticket",
            str(here.disk / "ticket.json"),
            "--disk",
            str(here.disk),
        ]
        second = psutil.Popen(command, stderr=-1)
        assert b"another agent already uses" in second.communicate(timeout=HANG_S)[1]
        assert second.returncode == 2


# ------------------------------------------------------------------------------------------------------------
# how trainers die


@pytest.mark.parametrize(
    ("how", "cause"),
    some_of(
        [
            ("oom", Cause.GPU_OOM),
            ("files", Cause.OPEN_FILES),
            ("disk", Cause.DISK_FULL),
            ("import", Cause.IMPORT_ERROR),
            ("cuda", Cause.CUDA_ERROR),
            ("kill", Cause.KILLED),
            ("exit", Cause.TRAINER_ERROR),
        ],
        one_in=6,
    ),
)
def test_the_cause_of_death_is_named_and_what_was_complete_is_saved(
    how: str, cause: Cause, tmp_path: Path
) -> None:
    with attempt(
        tmp_path, demo_spec(f"--steps 40 --save-every 10 --fail-at-step 25 --fail-how {how}")
    ) as here:
        last = the_exit(here)
        assert (cause_of(last), last.step, last.uploaded_step) == (cause, 24, 20)
        assert here.plane.commits[-1].step == 20
        assert here.evidence("trainer.log")


def test_ten_zero_rewards_in_a_row_save_and_stop(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(f"{LONG} --reward-constant 0")) as here:
        last = the_exit(here)
        assert cause_of(last) is Cause.ZERO_REWARD
        assert last.uploaded_step == last.step >= 10


def test_a_trainer_that_ignores_the_resume_is_stopped_before_it_saves_over_anything(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec("--steps 20 --save-every 10")) as first:
        the_exit(first)
    point = ResumePoint(step=20, attempt=1, key=manifest_key(RUN_ID, 20, 1))
    wanted = demo_spec(LONG, trainer={"resume": ""})
    with attempt(tmp_path, wanted, resume=point, attempt=2) as second:
        assert cause_of(the_exit(second)) is Cause.RESUME_IGNORED
        assert second.plane.commits == []


def test_a_log_rule_of_the_users_stops_the_trainer(tmp_path: Path) -> None:
    rules = [{"pattern": r"step 40/", "cause": "log_rule"}]
    with attempt(
        tmp_path, demo_spec(LONG, health={"heartbeat_s": 1, "overdue_s": 3, "log_rules": rules})
    ) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert last.exit.cause is Cause.LOG_RULE
        assert "step 40/" in last.exit.detail
        assert last.uploaded_step >= 40


# ------------------------------------------------------------------------------------------------------------
# orders and signals


def test_a_drain_saves_uploads_and_leaves(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec("--steps 100000 --save-every 100000 --step-seconds 0.02")) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 3)
        here.plane.order = Order.DRAIN
        last = the_exit(here)
        assert cause_of(last) is Cause.STOPPED_GRACEFULLY
        assert steps_in_bucket(here) == [last.step] == [here.plane.commits[-1].step]


def test_a_trainer_deaf_to_sigterm_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    wanted = demo_spec(f"{LONG} --fail-at-step 5 --fail-how sigterm-ignore", trainer={"stop_s": 1})
    with attempt(tmp_path, wanted) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 10)
        here.plane.order = Order.DRAIN
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.code) == (Cause.STOPPED_GRACEFULLY, -9)


def test_sigterm_to_the_agent_is_a_preemption_notice(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec("--steps 100000 --save-every 100000 --step-seconds 0.02")) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 3)
        here.agent.send_signal(signal.SIGTERM)
        notice = here.plane.await_heartbeat(lambda heartbeat: heartbeat.preempting)
        assert notice.news
        last = the_exit(here)
        assert cause_of(last) is Cause.PREEMPTED
        assert steps_in_bucket(here) == [last.step]


def test_a_shell_that_dies_of_sigterm_does_not_take_the_saving_trainer_with_it(tmp_path: Path) -> None:
    python = f"{sys.executable} -m prime_train.demo.train --out out --progress progress.jsonl --batch-size 8"
    wanted = demo_spec(
        "",
        trainer={
            "command": f"true && {python} --steps 100000 --save-every 100000 --step-seconds 0.5; echo over"
        },
    )
    with attempt(tmp_path, wanted) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 1)
        here.plane.order = Order.DRAIN
        last = the_exit(here)
        assert steps_in_bucket(here) == [last.step]


def test_evidence_is_in_the_bucket_before_it_is_reported_to_be(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(f"{LONG} --fail-at-step 30 --fail-how hang")) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step == 29)
        here.plane.order = Order.EVIDENCE
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.evidence)
        assert answer.news
        assert "injected fault: hang" in here.evidence("trainer.log")
        assert "prime_train.demo.train" in here.evidence("processes.txt")
        assert "GiB free of" in here.evidence("disk.txt")
        assert here.evidence("stacks.txt")
        assert here.evidence("gpu.txt")
        assert here.trainers() != []


def test_the_deadline_drains(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(LONG), train_s_max=3) as here:
        last = the_exit(here)
        assert cause_of(last) is Cause.HOURS_SPENT
        assert last.uploaded_step == last.step > 0


def test_fenced_kills_the_trainer_and_nothing_more_is_reported_or_uploaded(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(LONG)) as here:
        here.plane.await_commit(10)
        here.plane.fenced = True
        assert here.wait() == 75
        assert here.trainers() == []
        assert here.plane.exits == []
        assert len([status for _, status in here.plane.refused if status == 409]) <= 2


# ------------------------------------------------------------------------------------------- when the control
# plane is away


FENCE = Reply(outcome=Outcome.FENCED, reason="another attempt has taken over").model_dump_json().encode()


@pytest.mark.parametrize("status", [200, 302, 400, 403, 404, 409, 410, 413, 422, 451])
def test_whatever_a_proxy_answers_in_place_of_the_control_plane_a_healthy_trainer_goes_on(
    tmp_path: Path, status: int
) -> None:
    with attempt(tmp_path, demo_spec(LONG)) as here:
        here.plane.await_commit(10)
        here.plane.fail(FakeResponse(status, FENCE if status == 409 else b"<html>error</html>"), times=ALWAYS)
        answered = len(here.plane.requests)
        await_true("three answers of the proxy", lambda: len(here.plane.requests) >= answered + 3)
        assert here.trainers() != []
        here.plane.heal()
        here.plane.await_commit(here.plane.commits[-1].step + 10)
        assert here.trainers() != []


def test_while_the_control_plane_is_away_training_and_manifests_go_on_and_are_caught_up(
    tmp_path: Path,
) -> None:
    with attempt(tmp_path, demo_spec(LONG)) as here:
        here.plane.await_commit(10)
        here.plane.fail(CutRequest(), times=ALWAYS)
        committed = here.plane.commits[-1].step
        await_true("two more manifests", lambda: max(steps_in_bucket(here)) >= committed + 40)
        here.plane.await_refusals(2)
        assert here.trainers() != []
        here.plane.heal()
        here.plane.await_commit(committed + 40)
        seqs = [heartbeat.seq for heartbeat in here.plane.heartbeats]
        assert seqs == sorted(set(seqs))
        assert here.trainers() != []


def test_a_run_that_ends_while_the_control_plane_is_away_is_reported_later(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec("--steps 60 --save-every 20 --step-seconds 0.02")) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 0)
        here.plane.fail(CutRequest(), times=ALWAYS)
        await_true(
            "the trainer is gone",
            lambda: here.log("trainer.log").count("done step 60") and not here.trainers(),
        )
        here.plane.await_refusals(2)
        here.plane.heal()
        last = the_exit(here)
        assert (cause_of(last), last.step) == (Cause.FINISHED, 60)
        assert here.plane.commits[-1].step == 60


def test_a_second_agent_of_the_same_attempt_is_heard_although_the_first_has_used_its_numbers(
    tmp_path: Path,
) -> None:
    def used(plane: FakeControlPlane) -> None:
        first = Heartbeat(
            run=RUN_ID, attempt=1, identity=plane.bootstrap.identity, seq=500, phase=Phase.SETUP
        )
        assert plane._heartbeat(first).outcome is Outcome.OK

    with attempt(tmp_path, demo_spec("--steps 5"), prepare=used) as here:
        assert cause_of(the_exit(here)) is Cause.FINISHED


# -------------------------------------------------------------------------------------------------- when the
# agent is taken away


def test_a_killed_agent_does_not_leave_the_trainer_running(tmp_path: Path) -> None:
    with attempt(tmp_path, demo_spec(LONG)) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 0)
        assert here.trainers() != []
        here.agent.kill()
        await_true("the trainer is gone", lambda: here.trainers() == [])


def test_what_the_trainer_left_running_is_gone_with_it_even_outside_of_its_session(tmp_path: Path) -> None:
    python = f"{sys.executable} -m prime_train.demo.train --out out --progress progress.jsonl --batch-size 8"
    wanted = demo_spec("", trainer={"command": f"setsid sleep 300 & {python} --steps 5"})
    with attempt(tmp_path, wanted) as here:
        assert cause_of(the_exit(here)) is Cause.FINISHED


def test_a_ticket_that_is_none_is_refused_without_being_shown(tmp_path: Path) -> None:
    ticket = tmp_path / "ticket.json"
    ticket.write_text(
        Ticket(run=RUN_ID, attempt=1, url="http://127.0.0.1:1", key="secret-key").model_dump_json()[:-5]
    )
    agent = psutil.Popen(
        [sys.executable, "-m", "prime_agent.main", "--ticket", str(ticket), "--disk", str(tmp_path)],
        stderr=-1,
    )
    answer = agent.communicate(timeout=HANG_S)[1]
    assert agent.returncode == 2
    assert b"is not a ticket" in answer
    assert b"secret" not in answer


def test_an_attempt_that_was_replaced_before_it_began_does_nothing(tmp_path: Path) -> None:
    def replaced(plane: FakeControlPlane) -> None:
        plane.fenced = True

    with attempt(tmp_path, demo_spec("--steps 5"), prepare=replaced) as here:
        assert here.wait() == 75
        assert [path.name for path in (here.disk / "logs").iterdir()] == ["agent.log"]


# -------------------------------------------------------------------------------- when the bucket is away as
# the trainer ends


REMOVES = " && rm -rf out"


def close_bucket(here: Attempt) -> Path:
    """Make every write for this run fail from now on, by a file in place of the folder of its blobs. Removing
    that file ends this.
    """
    place = Path(here.plane.bootstrap.bucket_url.removeprefix("file://")) / "runs" / RUN_ID
    for name in ("blobs", "manifests"):
        shutil.rmtree(place / name, ignore_errors=True)
        (place / name).write_text("not a folder")
    return place


def test_a_trainer_that_removes_its_folder_while_the_bucket_is_away_loses_nothing(tmp_path: Path) -> None:
    gate = "while [ ! -e go ]; do sleep 0.05; done"
    wanted = demo_spec(
        "", trainer={"command": f"{DEMO} --steps 30 --save-every 10; {gate}{REMOVES}", "steps": 30}
    )
    with attempt(tmp_path, wanted) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.phase is Phase.TRAIN)
        place = close_bucket(here)
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step == 30)
        await_true(
            "the last checkpoint is held",
            lambda: list((here.disk / "stage").glob("waiting-1/30/step_30/COMPLETE")),
        )
        (here.disk / "work" / "go").touch()
        waits = here.plane.await_heartbeat(
            lambda heartbeat: heartbeat.upload_pending and bool(heartbeat.upload_problem)
        )
        assert waits.phase is Phase.FLUSH
        assert "uploads in a row have failed; step 30 was not uploaded" in waits.upload_problem
        assert here.plane.exits == []
        for name in ("blobs", "manifests"):
            (place / name).unlink()
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.saved_step, last.uploaded_step) == (Cause.FINISHED, 30, 30)
        assert here.plane.commits[-1].step == 30
        manifest = read_manifest(here.bucket, manifest_key(RUN_ID, 30, 1))
        assert manifest is not None
        assert verify(here.bucket, manifest) == []


def test_a_trainer_that_removes_a_checkpoint_before_it_is_complete_has_not_finished(tmp_path: Path) -> None:
    answer = """echo '{{"step": 5, "loss": 1.0}}' >> progress.jsonl"""
    # In one move: nobody may see the folder before the file that is in it.
    begun = "mkdir -p half out/checkpoints && echo half > half/weights.npz && mv half out/checkpoints/step_5"
    command = f"{answer} && {begun} && while [ ! -e go ]; do sleep 0.05; done{REMOVES}"
    with attempt(tmp_path, demo_spec("", trainer={"command": command, "steps": 5})) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.saving)
        (here.disk / "work" / "go").touch()
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.saved_step) == (Cause.UPLOAD_FAILED, 5)
        assert "the trainer's checkpoint of step 5 was removed" in last.exit.detail
        assert "no checkpoint is in the bucket" in last.exit.detail


# --------------------------------------------------------------------------------------------------------
# what the agent itself lacks


def test_a_machine_without_the_engine_for_patterns_is_reported_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    (tmp_path / "re2.py").write_text("raise ImportError('no RE2 for this Python')\n")
    with attempt(tmp_path, demo_spec("--steps 30"), env={"PYTHONPATH": str(tmp_path)}) as here:
        last = the_exit(here)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.detail) == (
            Cause.AGENT_ERROR,
            "preflight: ImportError: no RE2 for this Python",
        )
        assert last.step == 0


PROGRESS_DIES = """
import sys, threading
def dies(event, args):
    if event == "open" and "progress.jsonl" in str(args[0]) and threading.current_thread().name == "progress":
        raise RuntimeError("a bug in prime-agent")
if "prime_agent.main" in sys.orig_argv:
    sys.addaudithook(dies)
"""


def test_a_thread_of_the_agent_that_dies_ends_the_attempt_and_does_not_leave_a_training_that_nobody_follows(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PROGRESS_DIES)
    with attempt(
        tmp_path, demo_spec(LONG, trainer={"steps": 100_000}), env={"PYTHONPATH": str(tmp_path)}
    ) as here:
        last = the_exit(here, code=70)
        assert last.exit is not None
        assert (last.exit.cause, last.exit.detail) == (
            Cause.AGENT_ERROR,
            "ThreadDied: progress: RuntimeError: a bug in prime-agent",
        )
