"""How the fake dies: the component, the lines that it leaves in that component's log, and what the launcher
does then.
"""

import os
from dataclasses import dataclass
from enum import StrEnum


class Then(StrEnum):
    FAIL = "fail"
    """The component ends with an error code, and the launcher with 1."""
    MASK = "mask"
    """The launcher ends with 0."""
    HANG = "hang"
    """Nothing ends, because the processes wait for each other."""


@dataclass(frozen=True)
class Death:
    component: str
    line: str
    then: Then = Then.FAIL
    at_start: bool = False


DEATHS = {
    "oom": Death(
        "trainer", "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    ),
    "inference_oom": Death(
        "inference", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB.", at_start=True
    ),
    "nccl": Death(
        "orchestrator",
        "httpx.HTTPStatusError: '500 Internal' for url 'http://localhost:8100/init_broadcaster' (500)",
        at_start=True,
    ),
    "not_ready": Death(
        "orchestrator",
        "TimeoutError: Inference server is not ready after 1800 (>1800) seconds. Aborting...",
        at_start=True,
    ),
    "gated": Death(
        "trainer",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url https://a",
        at_start=True,
    ),
    "vllm": Death("inference", 'GET /liveness 503 {"status": "engine_unresponsive"}', Then.HANG),
    "hang": Death("trainer", "INFO Waiting for training batch to arrive", Then.HANG),
    "masked": Death("orchestrator", "RuntimeError: Session is closed", Then.MASK),
    "empty": Death("orchestrator", "RuntimeError: Step 7 failed after 10 consecutive empty batches"),
    "disk": Death(
        "trainer", "OSError: [Errno 28] No space left on device: 'broadcasts/step_8/model.safetensors'"
    ),
    "save": Death("trainer", "[rank1]: RuntimeError: training loop stopped unexpectedly"),
}
"""The kinds of deaths. `save`: in the middle of writing its half of a checkpoint."""


class Died(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.death = DEATHS[name]


def requested() -> tuple[str, int]:
    """Return the requested death and its step, "" for none."""
    name, _, step = os.environ.get("FAKE_RL_DIES", "").partition("@")
    return name, int(step or 0)


def _is_due() -> bool:
    """Return whether to die now: with FAKE_RL_ONCE, only the first launch that gets there dies."""
    once = os.environ.get("FAKE_RL_ONCE")
    if once is None:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def at_start(broadcast: str) -> None:
    """Raise Died for a death before the first step; without NCCL its failures cannot occur."""
    name, _ = requested()
    if name and DEATHS[name].at_start and not (name == "nccl" and broadcast != "nccl") and _is_due():
        raise Died(name)


def at(step: int) -> None:
    """Raise Died in the requested step."""
    name, when = requested()
    if name and not DEATHS[name].at_start and step == when and _is_due():
        raise Died(name)
