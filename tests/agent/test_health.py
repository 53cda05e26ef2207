"""The agent's reports of failing GPUs and inference over histories: what it reports, when, and which evidence
it gathers before.
"""

import pytest

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent.gpu.reading import Xid
from prime_agent.health import EVIDENCE_S_MAX
from prime_agent.trainer.services import ProbeReply, ServiceHealth
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.services import Service
from tests.agent.gpu.gpu_snapshots import BUSY, EMPTY, LOST, WAITING, sensed, snapshot
from tests.agent.histories import History, steps
from tests.builders import spec
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec

SERVICE = Service("the inference server", Cause.INFERENCE_FAILED, 180, gpus=(0,))
SPLIT = v.ServicesFound((ServiceHealth(SERVICE),))


def of_two(**health: int) -> RunSpec:
    return spec(hardware={"gpus": ["H100"], "count": 2}, health=health, checkpoints={"sentinel": "COMPLETE"})


def training(wanted: RunSpec | None = None) -> History:
    history = History(wanted or of_two()).begin()
    history.hear(SPLIT)
    history.hear(sensed(BUSY, BUSY), after_s=10)
    return history.train(1)


def after(history: History, sensed_: v.Sensed, seconds: int) -> History:
    """Let the state `sensed_` be observed every ten seconds for this long; requested evidence is gathered."""
    for _ in range(seconds // 10):
        if e.GatherEvidence() in history.hear(sensed_, after_s=10):
            history.hear(v.EvidenceDone(kept=True))
    history.wait(1)
    return history


# ------------------------------------------------------------------------------------------------------------
# broken GPUs


def test_a_broken_gpu_is_reported_with_its_words_and_the_step() -> None:
    heartbeat = after(training(), sensed(BUSY, LOST), 10).heartbeats[-1]
    assert (heartbeat.sick, heartbeat.sick_detail) == (
        Cause.GPU_HARDWARE,
        "GPU 1 (H100), GPU-1, is lost: GPU is lost, at step 1",
    )
    assert heartbeat.news


@pytest.mark.parametrize("phase", [Phase.PREFLIGHT, Phase.SETUP])
def test_it_is_reported_before_training_too(phase: Phase) -> None:
    history = History(of_two())
    history.hear(v.Started())
    while history.state.phase is not phase:
        history.hear(v.PhaseDone(history.state.phase))
    history.hear(sensed(BUSY, BUSY))
    assert (
        after(history, sensed(BUSY, BUSY, xids=(Xid(0, 95),)), 10).heartbeats[-1].sick is Cause.GPU_HARDWARE
    )


def test_a_programs_xid_is_reported_to_people_and_is_no_health_problem() -> None:
    heartbeat = after(training(), sensed(BUSY, BUSY, xids=(Xid(1, 31),)), 60).heartbeats[-1]
    assert heartbeat.sick is None
    assert heartbeat.gpus is not None
    assert heartbeat.gpus.note == "GPU 1 reports Xid 31: a program's access to invalid memory"


def test_a_crash_after_a_gpu_broke_is_put_down_to_the_gpu() -> None:
    history = training()
    history.hear(sensed(BUSY, BUSY, xids=(Xid(1, 79),)))
    history.end(v.TrainerExited(1, Cause.CUDA_ERROR, "CUDA error: unspecified launch failure", "the log"))
    ended = history.heartbeats[-1].exit
    assert ended is not None
    assert (ended.cause, ended.code, ended.log_tail) == (Cause.GPU_HARDWARE, 1, "the log")
    assert (
        ended.detail
        == "GPU 1 reports Xid 79: the GPU has fallen off the bus; then CUDA error: unspecified launch failure"
    )


def test_a_trainer_that_ended_well_in_spite_of_it_has_ended_well() -> None:
    history = training()
    history.hear(sensed(BUSY, BUSY, xids=(Xid(1, 94),)))
    history.end(v.TrainerExited(0, Cause.FINISHED))
    ended = history.heartbeats[-1].exit
    assert ended is not None
    assert ended.cause is Cause.FINISHED


# -------------------------------------------------------------------------------------------------------
# evidence comes first


def test_evidence_is_in_the_bucket_before_the_word_for_with_it_the_machine_goes() -> None:
    history = training()
    assert history.hear(sensed(BUSY, LOST), after_s=10).count(e.GatherEvidence()) == 1
    history.hear(sensed(BUSY, LOST), after_s=10)
    assert history.effects.count(e.GatherEvidence()) == 1
    assert history.heartbeats[-1].sick is None
    history.hear(v.EvidenceDone(kept=True))
    assert history.heartbeats[-1].sick is Cause.GPU_HARDWARE


@pytest.mark.parametrize("kept", [True, False])
def test_evidence_that_does_not_come_delays_the_word_no_longer_than_that(kept: bool) -> None:
    history = training()
    history.hear(sensed(BUSY, LOST))
    history.wait(EVIDENCE_S_MAX - 1)
    assert history.heartbeats[-1].sick is None
    if kept:
        history.wait(2)
    else:
        history.hear(v.EvidenceDone(kept=False, why="the bucket answers 503"))
    assert history.heartbeats[-1].sick is Cause.GPU_HARDWARE


# ------------------------------------------------------------------------------------------------------------
# idle GPUs


def test_weights_that_take_an_hour_to_load_make_no_gpu_idle() -> None:
    history = History(of_two(gpu_idle_s=900)).begin()
    assert after(history, sensed(EMPTY, EMPTY), 3600).state.health_problem is None
    history.train(1)
    assert after(history, sensed(EMPTY, EMPTY), 890).state.health_problem is None
    assert after(history, sensed(EMPTY, EMPTY), 40).heartbeats[-1].sick is Cause.GPU_IDLE


def test_a_trainer_that_was_told_to_leave_may_leave_its_gpus_idle() -> None:
    history = training(of_two(gpu_idle_s=60))
    history.hear(v.RuleFired(Cause.LOG_RULE, "a line"))
    assert after(history, sensed(EMPTY, EMPTY), 110).state.health_problem is None


# ------------------------------------------------------------------------------------------------------------
# inference


def test_dead_inference_is_reported_well_before_the_step_is_late() -> None:
    history = training(prime_rl_spec(hardware={"gpus": ["H100"], "count": 2}))
    history = after(history, sensed(EMPTY, WAITING), 190)
    heartbeat = history.heartbeats[-1]
    assert heartbeat.sick is Cause.INFERENCE_FAILED
    assert "GPU 0 of the inference server at 0 % with empty memory" in heartbeat.sick_detail
    assert "the trainer has waited at step 1 for 190 s" in heartbeat.sick_detail
    assert history.state.job.spec.health.stall_s - heartbeat.step_age_s >= 100


def test_while_the_driver_hangs_no_gpu_is_called_empty() -> None:
    hangs = v.Sensed(100.0, snapshot(EMPTY, EMPTY, problem="the GPU driver has not answered for 20 s"))
    history = after(training(of_two(gpu_idle_s=60)), sensed(EMPTY, EMPTY), 50)
    assert after(history, hangs, 600).state.health_problem is None


def test_once_a_step_is_made_inference_lives() -> None:
    history = after(training(), sensed(EMPTY, WAITING), 190)
    history.hear(steps(2))
    history.wait(40)
    assert history.heartbeats[-1].sick is None


def test_a_server_that_refuses_is_reported_without_any_gpu() -> None:
    history = training()
    for _ in range(20):
        history.hear(v.ServiceAnswered(SERVICE.name, ProbeReply.GONE), after_s=10)
    history.hear(v.EvidenceDone(kept=True))
    assert history.heartbeats[-1].sick is Cause.INFERENCE_FAILED


def test_after_the_last_step_the_server_may_go_before_the_trainer() -> None:
    history = training(prime_rl_spec(steps=2, hardware={"gpus": ["H100"], "count": 2})).train(2)
    assert after(history, sensed(EMPTY, EMPTY), 1800).state.health_problem is None


def test_a_broken_gpu_outranks_what_follows_from_it() -> None:
    history = after(training(), sensed(EMPTY, WAITING), 190)
    assert after(history, sensed(LOST, WAITING), 10).heartbeats[-1].sick is Cause.GPU_HARDWARE
