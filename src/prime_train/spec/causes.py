"""The causes for which attempts end, and the policy table of what follows from each.

An `Action` says what follows from an end. It follows from the cause, unless the trainer's own words say more
(see `runs/next_action.py`).

`Retry.FREE` causes do not count towards the limit of attempts without a new durable step: the user's code is
not at fault, and money and hours bound these retries. `Retry.COUNTED` causes are retried up to that limit.
`Retry.NEVER` causes would fail the same way on any machine, so no other machine is rented.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    PREEMPTED = "preempted"
    MACHINE_LOST = "machine_lost"
    SILENT = "silent"
    STALLED = "stalled"
    BOOT_LOST = "boot_lost"
    BOOT_FAILED = "boot_failed"
    BOOT_TIMEOUT = "boot_timeout"
    START_TIMEOUT = "start_timeout"
    LAUNCH_LOST = "launch_lost"
    LAUNCH_REFUSED = "launch_refused"
    NO_CAPACITY = "no_capacity"
    LIMIT_REACHED = "limit_reached"
    NO_FUNDS = "no_funds"
    NOT_ALLOWED = "not_allowed"
    AGENT_ERROR = "agent_error"
    PREFLIGHT_FAILED = "preflight_failed"
    SLOW_DISK = "slow_disk"
    SLOW_DOWNLOAD = "slow_download"
    ALL_REDUCE_FAILED = "all_reduce_failed"
    SETUP_FAILED = "setup_failed"
    VERIFY_FAILED = "verify_failed"
    SMOKE_FAILED = "smoke_failed"
    RESTORE_FAILED = "restore_failed"
    CHECKPOINTS_DAMAGED = "checkpoints_damaged"
    RESUME_IGNORED = "resume_ignored"
    UPLOAD_FAILED = "upload_failed"
    GPU_OOM = "gpu_oom"
    HOST_OOM = "host_oom"
    OPEN_FILES = "open_files"
    DISK_FULL = "disk_full"
    CUDA_ERROR = "cuda_error"
    GPU_HARDWARE = "gpu_hardware"
    COLLECTIVE_TIMEOUT = "collective_timeout"
    IMPORT_ERROR = "import_error"
    BAD_CONFIG = "bad_config"
    BAD_CHECKPOINT = "bad_checkpoint"
    SHARED_MEMORY = "shared_memory"
    PORT_IN_USE = "port_in_use"
    NETWORK_ERROR = "network_error"
    ACCESS_DENIED = "access_denied"
    NOT_FINITE = "not_finite"
    KILLED = "killed"
    TRAINER_ERROR = "trainer_error"
    STOPPED_EARLY = "stopped_early"
    ZERO_REWARD = "zero_reward"
    GPU_IDLE = "gpu_idle"
    INFERENCE_OOM = "inference_oom"
    INFERENCE_FAILED = "inference_failed"
    WEIGHT_BROADCAST = "weight_broadcast"
    EMPTY_BATCHES = "empty_batches"
    LOG_RULE = "log_rule"
    AFTER_FAILED = "after_failed"
    HOURS_SPENT = "hours_spent"
    DEADLINE = "deadline"
    BUDGET_SPENT = "budget_spent"
    STOPPED_GRACEFULLY = "stopped_gracefully"
    MOVED = "moved"
    FENCED = "fenced"
    FINISHED = "finished"
    PROBED = "probed"

    @classmethod
    def _missing_(cls, value: object) -> "Cause | None":
        """Return the cause that stored runs, and agents, from before 2026-11-23 call otherwise."""
        return cls.STOPPED_GRACEFULLY if value == "drained" else None


class Retry(StrEnum):
    FREE = "free"
    COUNTED = "counted"
    NEVER = "never"


class Action(StrEnum):
    """What follows from an attempt's end. SAME_MACHINE says that nothing speaks against the machine: as long
    as the trainer cannot be started again in place, another attempt is made, which may get a machine of the
    same offer.
    """

    STOP = "stop at once"
    SAME_MACHINE = "same machine"
    ANOTHER_MACHINE = "another machine"
    BACK_OFF = "after a back-off"


@dataclass(frozen=True)
class CausePolicy:
    """What follows from a cause: whether another machine may be rented, whether this offer is left out next
    time, whether a person has to look, and the texts for people. `advice`: what a person can do; `by_itself`:
    what the control plane does while the run is live.
    """

    retry: Retry
    title: str
    advice: str
    exclude_offer: bool = False
    backs_off: bool = False
    needs_person: bool = False
    by_itself: str = ""

    @property
    def action(self) -> Action:
        """Return what follows from the cause if nothing else is known of the end."""
        if self.retry is Retry.NEVER:
            return Action.STOP
        if self.exclude_offer:
            return Action.ANOTHER_MACHINE
        return Action.BACK_OFF if self.backs_off else Action.SAME_MACHINE

    @property
    def advice_while_live(self) -> str:
        return f"{self.advice} {self.by_itself}".strip()


_FREE, _COUNTED, _NEVER = Retry.FREE, Retry.COUNTED, Retry.NEVER

POLICY: dict[Cause, CausePolicy] = {
    Cause.PREEMPTED: CausePolicy(
        _FREE, "machine preempted", "", by_itself="Nothing to do: it resumes on another machine."
    ),
    Cause.MACHINE_LOST: CausePolicy(
        _COUNTED, "machine lost", "", True, by_itself="Nothing to do: it resumes on another machine."
    ),
    Cause.SILENT: CausePolicy(
        _COUNTED,
        "no heartbeats",
        "The machine may have lost its network or hung.",
        True,
        by_itself="It is replaced.",
    ),
    Cause.STALLED: CausePolicy(
        _COUNTED, "no step within its deadline", "Look at the stack dumps in the evidence folder."
    ),
    Cause.BOOT_LOST: CausePolicy(
        _FREE,
        "machine gone before its agent started",
        "",
        False,
        True,
        by_itself="Another machine is requested.",
    ),
    Cause.BOOT_FAILED: CausePolicy(
        _FREE, "machine setup failed", "", True, True, by_itself="Another offer is tried."
    ),
    Cause.BOOT_TIMEOUT: CausePolicy(
        _COUNTED, "machine never became reachable", "", True, True, by_itself="Another offer is tried."
    ),
    Cause.START_TIMEOUT: CausePolicy(
        _COUNTED, "no first step in time", "Raise health.first_step_s if setup or compilation needs longer."
    ),
    Cause.LAUNCH_LOST: CausePolicy(
        _FREE, "no answer to the create call", "", False, True, by_itself="Another machine is requested."
    ),
    Cause.LAUNCH_REFUSED: CausePolicy(
        _FREE, "offer refused", "", True, True, by_itself="Another offer is tried."
    ),
    Cause.NO_CAPACITY: CausePolicy(
        _FREE, "no suitable machine for rent", "Widen hardware.gpus, spot or the price.", True, True
    ),
    Cause.LIMIT_REACHED: CausePolicy(
        _FREE,
        "the account's machine limit is reached",
        "End a machine, or request a higher limit.",
        False,
        True,
        by_itself="The run then continues by itself.",
    ),
    Cause.NO_FUNDS: CausePolicy(
        _FREE,
        "the wallet has no credit",
        "Add credit.",
        False,
        True,
        by_itself="The run then continues by itself.",
    ),
    Cause.NOT_ALLOWED: CausePolicy(
        _NEVER,
        "the operator's policy does not allow it",
        "Change the config, or ask the operator for the line that the run's end names.",
    ),
    Cause.AGENT_ERROR: CausePolicy(
        _COUNTED, "the agent failed", "Report this with the evidence folder.", True, True
    ),
    Cause.PREFLIGHT_FAILED: CausePolicy(
        _COUNTED, "machine unfit", "", True, True, by_itself="Another offer is tried."
    ),
    Cause.SLOW_DISK: CausePolicy(
        _COUNTED,
        "disk too slow",
        "Lower hardware.disk_mb_per_s_min to accept such disks.",
        True,
        True,
        by_itself="Another offer is tried.",
    ),
    Cause.SLOW_DOWNLOAD: CausePolicy(
        _COUNTED,
        "downloads from the bucket too slow",
        "If every machine is slow, it is the bucket: use one closer to them, or lower "
        "hardware.download_mb_per_s_min.",
        True,
        True,
        by_itself="Another offer is tried.",
    ),
    Cause.ALL_REDUCE_FAILED: CausePolicy(
        _COUNTED,
        "the GPUs cannot exchange data",
        "If every machine fails, check the installed torch and the NCCL variables in `environment`; "
        "setup.log has the error.",
        True,
        True,
        by_itself="Another offer is tried.",
    ),
    Cause.SETUP_FAILED: CausePolicy(_COUNTED, "a setup command failed", "Read the setup log.", False, True),
    Cause.VERIFY_FAILED: CausePolicy(
        _NEVER, "verification failed", "The data does not match `verification`."
    ),
    Cause.SMOKE_FAILED: CausePolicy(_NEVER, "smoke test failed", "Read the smoke test's log."),
    Cause.CHECKPOINTS_DAMAGED: CausePolicy(
        _NEVER,
        "every checkpoint is damaged in the bucket",
        "Look at the run's checkpoints. Restore the bucket from a copy, or launch the config again.",
    ),
    Cause.RESTORE_FAILED: CausePolicy(
        _COUNTED, "restore failed", "Look at the run's checkpoints.", False, True
    ),
    Cause.RESUME_IGNORED: CausePolicy(
        _NEVER,
        "the trainer started over",
        "Check trainer.resume: the first step after a resume did not follow the restored one.",
    ),
    Cause.UPLOAD_FAILED: CausePolicy(
        _NEVER,
        "last checkpoint or outputs not uploaded",
        "Check the bucket's permissions and free space; the trainer must not remove its checkpoints.",
    ),
    Cause.GPU_OOM: CausePolicy(
        _NEVER, "GPU out of memory", "Lower the batch or sequence length, or use a larger GPU."
    ),
    Cause.HOST_OOM: CausePolicy(
        _NEVER, "host out of memory", "Use a machine with more memory or fewer loader workers."
    ),
    Cause.OPEN_FILES: CausePolicy(
        _NEVER, "too many open files", "Raise the limit or use fewer loader workers."
    ),
    Cause.DISK_FULL: CausePolicy(_COUNTED, "disk full", "Raise hardware.disk_gib or lower checkpoints.keep."),
    Cause.CUDA_ERROR: CausePolicy(
        _COUNTED,
        "CUDA error",
        "If the error repeats, the cause is the code.",
        True,
        by_itself="Another machine is tried.",
    ),
    Cause.GPU_HARDWARE: CausePolicy(
        _COUNTED, "GPU hardware fault", "", True, by_itself="Another machine is tried."
    ),
    Cause.COLLECTIVE_TIMEOUT: CausePolicy(
        _COUNTED, "collective timed out", "", True, by_itself="Another machine is tried."
    ),
    Cause.IMPORT_ERROR: CausePolicy(
        _NEVER, "import error", "Add the package to `setup`, or pin versions that fit one another."
    ),
    Cause.BAD_CONFIG: CausePolicy(
        _NEVER,
        "configuration, model or data refused",
        "Fix the trainer's configuration, or the model or the data that it names.",
    ),
    Cause.BAD_CHECKPOINT: CausePolicy(_COUNTED, "checkpoint unreadable", "Look at the run's checkpoints."),
    Cause.SHARED_MEMORY: CausePolicy(
        _COUNTED, "/dev/shm too small", "Use fewer loader workers or another image.", True
    ),
    Cause.PORT_IN_USE: CausePolicy(_COUNTED, "port in use", "", True, by_itself="Another machine is tried."),
    Cause.NETWORK_ERROR: CausePolicy(
        _FREE,
        "network or service unavailable",
        "",
        False,
        True,
        by_itself="Nothing to do: it is tried again after a while.",
    ),
    Cause.ACCESS_DENIED: CausePolicy(_NEVER, "access denied", "Check the tokens named in `secrets`."),
    Cause.NOT_FINITE: CausePolicy(
        _NEVER, "loss is not finite", "Lower the learning rate, or resume from an earlier checkpoint."
    ),
    Cause.KILLED: CausePolicy(_COUNTED, "trainer killed", "The usual reason is that host memory ran out."),
    Cause.TRAINER_ERROR: CausePolicy(_COUNTED, "trainer failed", "Read the end of the log."),
    Cause.STOPPED_EARLY: CausePolicy(
        _NEVER, "trainer ended before its last step", "It exited with code 0 before trainer.steps."
    ),
    Cause.ZERO_REWARD: CausePolicy(
        _NEVER, "reward 0 for too long", "Look at the rollouts.", needs_person=True
    ),
    Cause.GPU_IDLE: CausePolicy(
        _COUNTED, "GPUs idle while training", "Look at the stack dumps in the evidence folder."
    ),
    Cause.INFERENCE_OOM: CausePolicy(
        _NEVER,
        "inference server out of GPU memory",
        "Lower its share of GPU memory or its maximum sequence length.",
    ),
    Cause.INFERENCE_FAILED: CausePolicy(
        _COUNTED, "inference server crashed or never became ready", "Read the end of its own log."
    ),
    Cause.WEIGHT_BROADCAST: CausePolicy(
        _COUNTED, "weights not broadcast over NCCL", "Fall back to the filesystem broadcast."
    ),
    Cause.EMPTY_BATCHES: CausePolicy(
        _NEVER,
        "no rollouts to train on",
        "Look at the rollouts: all of them failed or were filtered out.",
        needs_person=True,
    ),
    Cause.LOG_RULE: CausePolicy(_NEVER, "a log rule fired", "Read the matched line.", needs_person=True),
    Cause.AFTER_FAILED: CausePolicy(
        _NEVER,
        "a required step after training failed",
        "Training has succeeded and is not repeated: mend the step, and resume the run.",
    ),
    Cause.HOURS_SPENT: CausePolicy(_NEVER, "hours spent", "Raise budget.hours.", needs_person=True),
    Cause.DEADLINE: CausePolicy(
        _NEVER, "deadline reached", "Set a later budget.deadline.", needs_person=True
    ),
    Cause.BUDGET_SPENT: CausePolicy(_NEVER, "budget spent", "Raise budget.usd.", needs_person=True),
    Cause.STOPPED_GRACEFULLY: CausePolicy(_FREE, "flushed and stopped on request", ""),
    Cause.MOVED: CausePolicy(
        _FREE, "moved to a cheaper machine", "", by_itself="Nothing to do: it resumes on another machine."
    ),
    Cause.FENCED: CausePolicy(_FREE, "replaced by a newer attempt", ""),
    Cause.FINISHED: CausePolicy(_NEVER, "finished", ""),
    Cause.PROBED: CausePolicy(_NEVER, "measured", ""),
}

FLUSHED = (Cause.STOPPED_GRACEFULLY, Cause.HOURS_SPENT, Cause.DEADLINE, Cause.BUDGET_SPENT)
"""Causes that an agent reports after it has saved everything and exited, because it was ordered to or because
a limit of the budget was reached. If it could not upload the last checkpoint or the outputs in time, it
reports UPLOAD_FAILED instead.
"""

MENDED_IN_CONFIG = frozenset(
    {
        Cause.AFTER_FAILED,
        Cause.BAD_CONFIG,
        Cause.EMPTY_BATCHES,
        Cause.GPU_OOM,
        Cause.HOST_OOM,
        Cause.IMPORT_ERROR,
        Cause.INFERENCE_OOM,
        Cause.LOG_RULE,
        Cause.NOT_FINITE,
        Cause.OPEN_FILES,
        Cause.RESUME_IGNORED,
        Cause.SETUP_FAILED,
        Cause.SMOKE_FAILED,
        Cause.START_TIMEOUT,
        Cause.STOPPED_EARLY,
        Cause.TRAINER_ERROR,
        Cause.VERIFY_FAILED,
        Cause.ZERO_REWARD,
    }
)
"""Causes that would occur again with the same config and code: one of them must change first."""
