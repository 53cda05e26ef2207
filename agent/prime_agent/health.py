"""The health of an attempt whose trainer is running: its worst current problem, and when to report it.

The control plane replaces the machine of an attempt that reports a problem, and all evidence on the machine
is lost with it. So evidence is gathered first, and the report follows once it is in the bucket, or after
`EVIDENCE_S_MAX` seconds.
"""

from dataclasses import dataclass, replace

from prime_agent.gpu import health as gpu_health
from prime_agent.gpu.health import GpuHealth
from prime_agent.trainer.services import Services, failure
from prime_agent.trainer.steps import Steps, slow_s
from prime_train.spec.causes import Cause
from prime_train.spec.spec import HealthSpec

EVIDENCE_S_MAX = 60.0


@dataclass(frozen=True)
class HealthProblem:
    """A problem of the attempt. `is_reported` is True once it is reported to the control plane."""

    cause: Cause
    detail: str
    report_s: float
    """Time at which the problem is reported even if the evidence is not complete."""
    is_reported: bool = False


def found(
    gpus: GpuHealth,
    services: Services,
    steps: Steps,
    now_s: float,
    *,
    health: HealthSpec,
    training: bool,
    saving: bool,
) -> tuple[Cause, str] | None:
    """Return the cause and description of the worst current problem, or None.

    `training` says that the trainer runs, was not asked to stop, and has steps left to make.
    """
    if gpus.fault:
        return Cause.GPU_HARDWARE, f"{gpus.fault}{_at(steps)}"
    if not training:
        return None
    rose_s = now_s if steps.rose_s is None else steps.rose_s
    failed = failure(services, now_s, step=steps.step, rose_s=rose_s, slow_s=slow_s(steps), saving=saving)
    if failed is not None:
        return failed
    idle_s = gpu_health.idle_s(gpus, now_s)
    if idle_s >= health.gpu_idle_s:
        count = len(gpus.snapshot.loads)
        who = "the GPU is" if count == 1 else f"all {count} GPUs are"
        return Cause.GPU_IDLE, f"{who} at 0 % with empty memory for {idle_s} s{_at(steps)}"
    return None


def changed(
    health_problem: HealthProblem | None, now: tuple[Cause, str] | None, now_s: float
) -> HealthProblem | None:
    """Return the health problem after a check: a different cause starts a new problem, the same cause keeps
    its first description, and None means that the attempt is healthy again.
    """
    if now is None:
        return None
    if health_problem is not None and health_problem.cause is now[0]:
        return health_problem
    return HealthProblem(*now, report_s=now_s + EVIDENCE_S_MAX)


def reported(health_problem: HealthProblem) -> HealthProblem:
    return replace(health_problem, is_reported=True)


def _at(steps: Steps) -> str:
    return f", at step {steps.step}" if steps.step else ""
