"""The real agent on a machine with a driver: what its heartbeats and its evidence contain about the GPUs, and
its conclusions about failing ones.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from prime_train.runs.wire import Order, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from tests.agent.attempts import attempt, demo_spec
from tests.agent.test_prime_rl import Shop
from tests.fakes.nvml import Driver
from tests.trainers.prime_rl.prime_rl_spec import FOLDER

LONG = "--steps 100000 --save-every 10 --step-seconds 0.02"


def spec_of_two(arguments: str = LONG, **changes: Any) -> RunSpec:
    return demo_spec(arguments, hardware={"gpus": ["H100"], "count": 2}, **changes)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_heartbeats_tell_the_figures_and_evidence_has_all_of_them(tmp_path: Path, driver: Driver) -> None:
    driver.says(gpu0_util=35, gpu1_util=98, gpu1_temperature=74, gpu1_reasons=0x20, gpu1_ecc="E3")
    driver.reports(0, 31)
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        answer = here.plane.await_heartbeat(
            lambda heartbeat: (
                heartbeat.gpus is not None and "Xid" in heartbeat.gpus.note and heartbeat.step > 0
            )
        )
        assert answer.gpus is not None
        assert (answer.gpu_util_pct, answer.gpu_mem_mib, answer.sick) == (66.5, 80_000.0, None)
        assert (answer.gpus.count, answer.gpus.idle, answer.gpus.util_low_pct, answer.gpus.util_high_pct) == (
            2,
            0,
            35.0,
            98.0,
        )
        assert (answer.gpus.hottest_c, answer.gpus.power_w) == (74, 200.0)
        assert "GPU 0 reports Xid 31" in answer.gpus.note
        assert "GPU 1 (NVIDIA H100 80GB HBM3) is throttled by heat" in answer.gpus.note
        here.plane.order = Order.EVIDENCE
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.evidence)
        head, first, second, *rest = here.evidence("gpu.txt").splitlines()
        assert head.split()[:3] == ["GPU", "name", "busy"]
        assert cells(first)[1:6] == [
            "NVIDIA H100 80GB HBM3",
            "35 %",
            "40000 of 81559 MiB",
            "60 C",
            "100 of 700 W",
        ]
        assert cells(second)[2:9] == [
            "98 %",
            "40000 of 81559 MiB",
            "74 C",
            "100 of 700 W",
            "heat",
            "?",
            "none",
        ]
        assert rest[0].startswith("GPU 0 reports Xid 31")


def test_a_gpu_that_falls_off_the_bus_is_reported_with_evidence_in_the_bucket(
    tmp_path: Path, driver: Driver
) -> None:
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 3 and heartbeat.gpus is not None)
        driver.says(gpu1_handle="E15")
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.sick is not None)
        assert answer.sick is Cause.GPU_HARDWARE
        assert answer.sick_detail.startswith(
            "GPU 1 (NVIDIA H100 80GB HBM3), GPU-00000001, is lost: GPU is lost, at step "
        )
        assert cells(here.evidence("gpu.txt").splitlines()[2]) == [
            "1",
            "NVIDIA H100 80GB HBM3",
            "GPU is lost",
        ]
        assert here.trainers() != [], "whether it goes on is not for the agent to say"


def test_an_xid_is_reported(tmp_path: Path, driver: Driver) -> None:
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step > 3 and heartbeat.gpus is not None)
        driver.reports(1, 95)
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.sick is not None)
        assert (answer.sick, "GPU 1 reports Xid 95" in answer.sick_detail) == (Cause.GPU_HARDWARE, True)


def test_a_driver_that_hangs_delays_no_heartbeat_and_is_reported(tmp_path: Path, driver: Driver) -> None:
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        before = here.plane.await_heartbeat(
            lambda heartbeat: heartbeat.step > 3 and heartbeat.gpus is not None
        )
        driver.says(hang=1)
        answer = here.plane.await_heartbeat(
            lambda heartbeat: heartbeat.gpus is not None and "has not answered for" in heartbeat.gpus.note
        )
        assert answer.gpus is not None
        assert answer.gpus.age_s >= 5
        assert answer.step > before.step
        assert answer.seq - before.seq >= 2, "heartbeats went on"
        assert answer.disk_free_gib is not None
        here.plane.order = Order.EVIDENCE
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.evidence)
        assert "the GPU driver has not answered for" in here.evidence("gpu.txt")
        assert "s old" in here.evidence("gpu.txt")


def test_a_machine_with_a_broken_gpu_is_refused_before_anything_is_done(
    tmp_path: Path, driver: Driver
) -> None:
    driver.says(gpu1_remap_failed=1)
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.PREFLIGHT_FAILED
        assert (
            "GPU 1 (NVIDIA H100 80GB HBM3) has bad memory that could not be taken out of use"
            in last.exit.detail
        )


def test_a_machine_whose_gpu_answers_but_cannot_be_computed_on_is_refused(
    tmp_path: Path, driver: Driver
) -> None:
    driver.says(gpu1_context=2)
    with attempt(tmp_path, spec_of_two(), env=driver.env) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.PREFLIGHT_FAILED
        assert last.exit.detail == "no CUDA context can be made on GPU 1: CUDA_ERROR_OUT_OF_MEMORY"


def test_training_beside_idle_gpus_is_reported(tmp_path: Path, driver: Driver) -> None:
    driver.says(gpu0_util=0, gpu0_used=0, gpu1_util=0, gpu1_used=0)
    wanted = spec_of_two(health={"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10, "gpu_idle_s": 2})
    with attempt(tmp_path, wanted, env=driver.env) as here:
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.sick is not None)
        assert (answer.sick, answer.phase) == (Cause.GPU_IDLE, Phase.TRAIN)
        assert answer.gpus is not None
        assert answer.gpus.idle == 2


# ------------------------------------------------------------------------------------------------------------
# inference


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_inference_that_died_while_prime_rl_waits_is_reported_with_its_gpus_and_the_step(
    shop: Shop, driver: Driver
) -> None:
    wanted = shop.spec()
    health = wanted.health.model_copy(update={"inference_idle_s": 2})
    hardware = wanted.hardware.model_copy(update={"gpus": ("H100",), "count": 2})
    wanted = wanted.model_copy(update={"health": health, "hardware": hardware})
    files = {"rl.toml": b"[inference]\n[deployment]\nnum_infer_gpus = 1\nnum_train_gpus = 1\n"}
    env = {**shop.git, **shop.uv, **driver.env, "FAKE_RL_DIES": "vllm@7"}
    with attempt(shop.folder, wanted, files=files, env=env) as here:
        here.plane.await_heartbeat(
            lambda heartbeat: heartbeat.step == 6 and heartbeat.step_age_s >= 3 and heartbeat.gpus is not None
        )
        driver.says(gpu0_util=0, gpu0_used=0, gpu1_util=0)
        half = here.disk / "work" / FOLDER / "checkpoints" / "step_8"
        for path in (half, *half.rglob("*")):
            # The orchestrator's last save, of the step it is ahead, was long ago.
            os.utime(path, (1e9, 1e9))
        answer = here.plane.await_heartbeat(lambda heartbeat: heartbeat.sick is not None)
        assert answer.sick is Cause.INFERENCE_FAILED
        assert "GPU 0 of the inference server at 0 % with empty memory" in answer.sick_detail
        assert "the trainer has waited at step 6" in answer.sick_detail
        assert "engine_unresponsive" in here.evidence("stall.txt")
