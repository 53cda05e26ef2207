"""Every kind of alert: what causes it, and what people are told, through every notifier."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.alerts.card import AlertCard, card_of
from prime_train.errors import NoCapacity, NoFunds, TemporaryError, UsageError
from prime_train.providers.memory import MemoryPods
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.change import requested
from prime_train.runs.run import DesiredState, Run, Severity
from prime_train.runs.unreadable import RECORD, Unreadable, unreadable_alert
from prime_train.runs.verdict import TrackerObserved
from prime_train.runs.wire import JobExit, Phase
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.reconcile.ports import Outside

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
TRACKED = {"wandb": {"project": "train", "entity": "acme"}}


def sending_heartbeats(w: Outside, seconds: int, *, every_s: int = 30) -> Outside:
    """Let the run make steps and send heartbeats for this long, with sweeps."""
    for _ in range(seconds // every_s):
        w.after(every_s).heartbeat(step=w.now_s)
        w.sweep()
    return w


def launched(w: Outside) -> None:
    w.settle()


def training(w: Outside) -> None:
    w.trains()


def lost(w: Outside) -> None:
    w.trains()
    w.save_checkpoint(8)
    w.store.commit(b.commit(8), w.now_s)
    sending_heartbeats(w, 60)
    (pod,) = w.pods.real.list()
    w.pods.real.preempt(pod.pod_id)
    w.sweeps(60)


def restored(w: Outside) -> None:
    w.trains()
    put_back = w.copied()
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.sweeps(60)
    put_back()
    w.sweeps(60)


def recovered(w: Outside) -> None:
    lost(w)
    w.heartbeat(step=0)
    w.sweeps(30)
    w.heartbeat(step=9)
    w.sweeps(15)


def stalled(w: Outside) -> None:
    w.trains().after(301).heartbeat(step=10, step_age_s=301)
    w.settle()


def sick(w: Outside) -> None:
    w.trains().heartbeat(step=11, sick=Cause.GPU_IDLE, sick_detail="0 % and 0 MiB on 8 GPUs", news=True)
    w.sweep()


def sick_for_a_person(w: Outside) -> None:
    w.trains().heartbeat(step=11, sick=Cause.ZERO_REWARD, sick_detail="10 steps up to step 11", news=True)
    w.sweep()


def failed(w: Outside) -> None:
    w.trains().heartbeat(
        step=11,
        exit=JobExit(cause=Cause.GPU_OOM, detail="torch.OutOfMemoryError: CUDA out of memory"),
        news=True,
    )
    w.sweep()


def stopped_after_three(w: Outside) -> None:
    for _ in range(3):
        w.trains().exit(Cause.TRAINER_ERROR, step=11)
        w.settle()
        w.sweeps(1200)


def used(w: Outside, share: float) -> None:
    """Use this share of a dollar, at 0.60 an hour."""
    sending_heartbeats(w.trains(), int(share * 6000) + 60)


def budget(w: Outside) -> None:
    used(w, 0.8)


def cheaper(w: Outside) -> None:
    """Let a cheaper machine be for rent after the run has trained for a while."""
    offers = (b.offer("dear", usd_per_hour=6.0), b.offer("cheap", usd_per_hour=2.0))
    w.pods.real = MemoryPods(offers=offers, stock={"cheap": 0}, clock=lambda: w.now_s)
    w.trains().after(900).heartbeat(step=200)
    w.pods.real.set_stock("cheap", 1)
    w.sweep()


def draining(w: Outside) -> None:
    used(w, 0.95)


def spent(w: Outside) -> None:
    used(w, 0.95)
    w.heartbeat(step=w.now_s, exit=JobExit(cause=Cause.STOPPED_GRACEFULLY), news=True)
    w.sweep()


def unsaved(w: Outside) -> None:
    """Let its checkpoints not reach the bucket."""
    w.trains().heartbeat(step=11, upload_problem="the bucket refuses step 10", news=True)
    w.sweep()


def without_checkpoint(w: Outside) -> None:
    w.trains().heartbeat(step=40, unsaved="6 entries in out/, none matches ckpt-{step}", news=True)
    w.sweep()


def with_checkpoint_again(w: Outside) -> None:
    without_checkpoint(w)
    w.heartbeat(step=50, news=True)
    w.sweep()


def kept(w: Outside) -> None:
    """Let its checkpoints not reach the bucket, and its trainer exit."""
    unsaved(w)
    w.heartbeat(step=12, upload_problem="the bucket refuses step 12", upload_pending=True, news=True)
    w.sweeps(30)


def saved_again(w: Outside) -> None:
    unsaved(w)
    w.heartbeat(step=13, news=True)
    w.sweep()


def succeeded(w: Outside) -> None:
    sending_heartbeats(w.trains(), 600).exit(Cause.FINISHED, step=w.now_s)
    w.sweep()


def cancelled(w: Outside) -> None:
    w.trains()
    assert w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.sweep()


def silent(w: Outside) -> None:
    w.trains().sweeps(120)


def cut_off(w: Outside) -> None:
    w.trains()
    w.tracker.seen = TrackerObserved(20, w.now_s + 100)
    w.sweeps(120)


def untracked(w: Outside) -> None:
    w.tracker.seen = TrackerObserved(20, w.now_s)
    sending_heartbeats(w.trains(), 3600)


def blind(w: Outside) -> None:
    w.trains()
    w.canary.sings_now = False
    w.sweeps(120)


def unknown(w: Outside) -> None:
    w.trains()
    w.fail["list"] = TemporaryError("HTTP 503")
    w.sweeps(120)


def boot_late(w: Outside) -> None:
    w.settle()
    w.sweeps(b.spec().health.first_heartbeat_s + 30)


def no_capacity(w: Outside) -> None:
    w.fail["create"] = NoCapacity("sold out")
    w.settle()


def funds(w: Outside) -> None:
    w.fail["create"] = NoFunds("the wallet holds $0.02")
    w.settle()


def bucket(w: Outside) -> None:
    w.trains().exit(Cause.PREEMPTED)
    w.fail["bucket"] = TemporaryError("HTTP 503")
    w.settle()


def checkpoint(w: Outside) -> None:
    w.trains(step=10)
    w.store.commit(b.commit(10, key=w.save_checkpoint(10).key), w.now_s)
    w.bucket.objects.clear()
    w.exit(Cause.PREEMPTED)
    w.settle()


def older(w: Outside) -> None:
    w.trains(step=10)
    for step in (5, 10):
        w.store.commit(b.commit(step, key=w.save_checkpoint(step, complete=step == 5).key), w.now_s)
    w.exit(Cause.PREEMPTED)
    w.settle()


def diverging(w: Outside) -> None:
    w.trains(step=10).heartbeat(step=12, not_finite_since=11, finite_step=10)
    w.settle()


def begun_anew(w: Outside) -> None:
    w.settle()
    w.after(5).heartbeat()
    w.settle()
    w.after(5).heartbeat(step=1, loss=9.0)
    w.settle()
    manifest = w.save_checkpoint(5).model_copy(update={"loss": 2.0})
    w.bucket.objects[manifest.key] = manifest.model_dump_json(exclude_none=True).encode()
    w.exit(Cause.PREEMPTED)
    w.settle()
    w.after(5).heartbeat()
    w.settle()
    w.after(5).heartbeat(step=6, loss=8.9)
    w.settle()


def secrets(w: Outside) -> None:
    w.world = replace(w.world, secrets=frozenset())
    w.settle()


def without_policy(w: Outside) -> None:
    def broken(run: Run) -> str:
        raise UsageError("policy.yaml:1:1: unknown key")

    w.world = replace(w.world, not_allowed=broken)
    w.settle()


def orphan(w: Outside) -> None:
    w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), w.run().spec.hardware)
    w.sweep()


def unreadable(w: Outside) -> None:
    w.store.enqueue_alert(unreadable_alert(Unreadable(b.RUN_ID, RECORD, "spec.brand_new: unknown"), w.now_s))
    w.sweep()


MACHINE = ("Machine: ", "memory, spot, $0.60 an hour")
EVIDENCE = ("Evidence: evidence/tiny-1/e1/ in the bucket",)
MONEY = ("Spent: ", "of paid time")


def damaged(w: Outside) -> None:
    w.world = replace(w.world, reads_back=True)
    committed_as(w)


def late_files(w: Outside) -> None:
    committed_as(w, changes_late=True)


def committed_as(w: Outside, **fields: object) -> None:
    """Commit a checkpoint of step 10 whose only chunk has another content in the bucket."""
    w.trains(step=12)
    manifest = w.save_checkpoint(10, 1).model_copy(update=fields)
    w.bucket.objects[manifest.key] = manifest.to_json()
    w.store.commit(b.commit(10, attempt=1, key=manifest.key), w.now_s)
    w.after(5).heartbeat(phase=Phase.TRAIN, step=13)
    w.after(60).sweep()


TOLD: tuple[tuple[str, Callable[[Outside], None], Mapping[str, object], tuple[str, ...]], ...] = (
    ("launched", launched, {}, ("attempt 1 has a machine", *MACHINE)),
    ("training", training, {}, ("training at step 10", *MACHINE)),
    (
        "lost",
        lost,
        {},
        (
            "machine preempted",
            "in the bucket up to 8",
            "Last heartbeat or commit: ",
            "It lasted: ",
            *EVIDENCE,
        ),
    ),
    ("relaunched", lost, {}, ("attempt 2 has a machine", "Machine: ")),
    (
        "restored",
        restored,
        {},
        (
            "the store was restored from an older copy",
            "the run was training after attempt 1",
            "booting after attempt 2",
        ),
    ),
    ("recovered", recovered, {}, ("Resumed from: step 8; ", "steps are repeated", "The gap cost: $")),
    (
        "stalled",
        stalled,
        {},
        ("no step within its deadline", "waited 301 s, limit 300 s", *MACHINE, *EVIDENCE),
    ),
    ("lost", sick, {}, ("GPUs idle while training", "0 % and 0 MiB on 8 GPUs", "What to do: ", *EVIDENCE)),
    (
        "stopped",
        sick_for_a_person,
        {},
        ("reward 0 for too long", "10 steps up to step 11", "What to do: Look at the rollouts.", *EVIDENCE),
    ),
    (
        "failed",
        failed,
        {},
        ("GPU out of memory", "CUDA out of memory", "What to do: Lower the batch", *MONEY, *EVIDENCE),
    ),
    (
        "stopped",
        stopped_after_three,
        {},
        ("3 attempts in a row made no new checkpoint", "The last 3 attempts share: cause: trainer failed"),
    ),
    (
        "budget",
        budget,
        {"budget": {"usd": 1.0}},
        ("80% of the budget is used", *MONEY, "The budget lasts for: "),
    ),
    (
        "cheaper",
        cheaper,
        {"trainer": {"steps": 20_000}, "budget": {"usd": 500}},
        (
            "a move to another machine would save $",
            "a machine at $2.00/h from local",
            "of which $",
            "hardware.migrate: auto",
            *MONEY,
        ),
    ),
    (
        "draining",
        draining,
        {"budget": {"usd": 1.0}},
        ("saving and uploading, then stopping", "the budget of $1.00 is nearly spent", *MONEY),
    ),
    (
        "stopped",
        spent,
        {"budget": {"usd": 1.0}},
        ("the budget of $1.00 is spent; flushed", "What to do: Raise budget.usd", *MONEY),
    ),
    ("succeeded", succeeded, {}, (*MONEY, "Paid time: useful", "Attempts: 1", "█")),
    ("cancelled", cancelled, {}, ("cancelled by the user", *MONEY)),
    ("silent", silent, {}, ("no heartbeat for", "it is replaced after", *MACHINE)),
    (
        "cut_off",
        cut_off,
        TRACKED,
        (
            "no heartbeats, but training",
            "the tracker's step still advances",
            "W&B: https://wandb.ai/acme/train/runs/tiny-1",
        ),
    ),
    (
        "untracked",
        untracked,
        TRACKED,
        (
            "the tracker no longer receives data from the run",
            "at step 20",
            "W&B: https://wandb.ai/acme/train/runs/tiny-1",
        ),
    ),
    ("blind", blind, {}, ("the control plane cannot judge the runs", "no machine is terminated")),
    ("unknown", unknown, {}, ("the provider does not answer", "HTTP 503", "no machine is terminated")),
    ("boot_late", boot_late, {}, ("the machine is late", "limit")),
    ("no_capacity", no_capacity, {}, ("no suitable machine for rent", "sold out")),
    ("funds", funds, {}, ("the wallet has no credit", "the wallet holds $0.02", *MONEY)),
    ("bucket", bucket, {}, ("the bucket does not answer", "the run waits")),
    (
        "checkpoint",
        checkpoint,
        {},
        ("a committed checkpoint cannot be found", "step 10 was committed", "prime-train stop tiny-1"),
    ),
    ("older", older, {}, ("an older checkpoint is used", "resumes from step 5", "files of step 10")),
    ("not_finite", diverging, {}, ("the loss is not finite", "since step 11", "health.not_finite_steps")),
    ("began_anew", begun_anew, {}, ("training seems to have begun anew", "at step 6", "the loss is 8.9")),
    (
        "damaged",
        damaged,
        {},
        ("a checkpoint is damaged in the bucket", "weights has a different content", "of step 10"),
    ),
    ("late_files", late_files, {}, ("a checkpoint changed after it was complete", "checkpoints.settled_s")),
    ("policy", without_policy, {}, ("the policy cannot be read", "policy.yaml:1:1", "no machine is rented")),
    ("secrets", secrets, {"secrets": ["HF_TOKEN"]}, ("secrets are missing", "HF_TOKEN")),
    (
        "uploads",
        unsaved,
        {},
        ("checkpoints or outputs do not become durable", "the bucket refuses step 10", *MACHINE),
    ),
    (
        "unsaved",
        without_checkpoint,
        {},
        ("checkpoints do not come to be", "6 entries in out/, none matches ckpt-{step}", *MACHINE),
    ),
    (
        "saved_again",
        with_checkpoint_again,
        {},
        ("checkpoints come to be as promised again", "newest committed step: "),
    ),
    ("kept", kept, {}, ("a machine is kept until its uploads are complete", "has the only copy", *MACHINE)),
    (
        "uploads_again",
        saved_again,
        {},
        ("checkpoints and outputs become durable again", "newest committed step: "),
    ),
    ("orphan", orphan, {}, ("an orphaned machine was found", "pt-nobody-e1", "terminated")),
    (
        "unreadable",
        unreadable,
        {},
        ("a stored value cannot be read", "spec.brand_new: unknown", "it is kept as it is"),
    ),
)


def reported(w: Outside, kind: str) -> AlertCard:
    """Return the newest alert of that kind, with the run's record at that time."""
    w.sweep()
    alert = [alert for alert in w.reported.alerts if alert.kind == kind][-1]
    record = w.store.load(alert.run_id)
    return card_of(alert, record.run if record else None, w.now_s, lease=record.lease if record else None)


@pytest.mark.parametrize(("kind", "happens", "spec", "words"), TOLD, ids=[row[1].__name__ for row in TOLD])
def test_people_are_notified_what_happened_with_the_values_that_loaded_config(
    kind: str, happens: Callable[[Outside], None], spec: Mapping[str, object], words: tuple[str, ...]
) -> None:
    w = Outside(spec)
    happens(w)
    card = reported(w, kind)
    lines = [
        card.title,
        card.text,
        card.image,
        *(f"{name}: {value}" for name, value in (*card.facts, *card.links)),
    ]
    message = "\n".join(lines)
    assert not [word for word in words if word not in message], message


def test_an_outage_is_told_once_with_the_runs_that_are_silent_and_each_run_shows_it() -> None:
    w = Outside()
    names = [f"run-{number:02d}" for number in range(1, 31)]
    for name in names:
        w.add(name)
    for name in (b.RUN_ID, *names):
        w.trains(name)
    for name in (b.RUN_ID, *names):
        w.heartbeat(name, step=20)
    w.sweeps(30)
    before = len(w.reported.alerts)
    w.canary.sings_now = False
    w.sweeps(1200)
    (told,) = [
        alert
        for alert in w.reported.alerts[before:]
        if alert.severity is not Severity.QUIET and alert.kind is AlertKind.BLIND
    ]
    assert "Silent: run-01, run-02, " in told.text
    assert "and 11 more" in told.text
    assert all(w.run(name).noted_s(AlertKind.BLIND) is not None for name in names)
    assert not [run for name in names if (run := w.run(name)).attempt != 1]


def test_every_alert_is_in_the_runbook_and_is_tried_here() -> None:
    rows = re.findall(
        r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|",
        RUNBOOK.read_text().partition("## Alerts")[2].partition("\n## ")[0],
        re.M,
    )
    sent = {kind.value for kind in AlertKind if not policy_of(kind).is_display_only}
    assert {kind for row in rows for kind in re.findall(r"`([a-z_]+)`", row)} == sent
    assert {kind for kind, *_ in TOLD} == sent
