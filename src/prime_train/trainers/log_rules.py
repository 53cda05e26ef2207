"""The table of log rules: what lines of a trainer's output mean.

Patterns are case-sensitive unless marked otherwise and are searched in cleaned lines (no colours, no rank prefix), so `^` is the start of
the text itself. `strength` is the strength of a line as evidence. When one of eight processes runs out of memory, the other seven log far
more errors about their lost peer. So a root cause outranks a hint, and a hint outranks a consequence, wherever they occur in the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from prime_train.core.causes import Cause
from prime_train.core.spec import LogRuleSpec, RunSpec
from prime_train.trainers.patterns import found_in


class EvidenceStrength(IntEnum):
    """Strength of a line as evidence; a lower value is stronger."""

    USER = 0
    ROOT = 1
    HINT = 2
    """Names a cause, but trainers also log such lines, handle the error and go on."""
    CONSEQUENCE = 3
    """The line probably only describes a consequence of another failure."""


@dataclass(frozen=True)
class LogRule:
    """A pattern whose match in a line indicates `cause`. With `stop`, the trainer is stopped at once, because going on would do harm or be
    futile."""

    pattern: str
    cause: Cause
    stop: bool = False
    strength: EvidenceStrength = EvidenceStrength.ROOT
    resumed_only: bool = False
    """Whether the rule applies only if a checkpoint was to be resumed."""

    def fits(self, text: str) -> bool:
        """Return whether the pattern is found in `text`, which must be a cleaned line."""
        return found_in(self.pattern, text)

    @property
    def is_consequence(self) -> bool:
        return self.strength is EvidenceStrength.CONSEQUENCE


def patterns_of(spec: RunSpec) -> tuple[str, ...]:
    """Return every pattern that the user wrote."""
    progress = spec.trainer.progress.pattern
    return (*(rule.pattern for rule in spec.health.log_rules), *((progress,) if progress is not None else ()))


def of_spec(rules: Iterable[LogRuleSpec]) -> tuple[LogRule, ...]:
    """Return the user's own rules, which outrank all others."""
    return tuple(LogRule(rule.pattern, rule.cause, rule.stop, EvidenceStrength.USER) for rule in rules)


def _root(cause: Cause, *patterns: str) -> tuple[LogRule, ...]:
    return tuple(LogRule(pattern, cause) for pattern in patterns)


def _hint(cause: Cause, *patterns: str) -> tuple[LogRule, ...]:
    return tuple(LogRule(pattern, cause, strength=EvidenceStrength.HINT) for pattern in patterns)


def _consequence(cause: Cause, *patterns: str) -> tuple[LogRule, ...]:
    return tuple(LogRule(pattern, cause, strength=EvidenceStrength.CONSEQUENCE) for pattern in patterns)


def _started_over(*patterns: str) -> tuple[LogRule, ...]:
    """Return rules that stop the trainer at once, because a trainer that starts over would overwrite good checkpoints with its first
    steps.
    """
    return tuple(LogRule(pattern, Cause.RESUME_IGNORED, stop=True, resumed_only=True) for pattern in patterns)


BUILT_IN: tuple[LogRule, ...] = (
    *_started_over(
        r"this is a fresh start",
        r"Training from scratch",
        r"No checkpoint found at .*skipping checkpoint loading",
        r"there is no last checkpoint available",
        r"Resume info not found at .*This should not be a resumed experiment",
        r"Optimizer state not found .*freshly initialized",
        r"No dataloader state found at",
    ),
    *_root(
        Cause.GPU_OOM,
        r"OutOfMemoryError: CUDA out of memory",
        r"CUDA error: out of memory",
        r"RuntimeError: CUDA out of memory",
        r"OutOfMemoryError: HIP out of memory",
        r"torch\.OutOfMemoryError: Allocation on device",
        r"CUBLAS_STATUS_ALLOC_FAILED",
        r"No available memory for the cache blocks",
    ),
    *_root(
        Cause.HOST_OOM,
        r"DefaultCPUAllocator: can't allocate memory",
        r"[Oo]ut of memory: Killed process \d+",
        r"oom-kill:|oom_reaper:|Memory cgroup out of memory",
        r"^(numpy\.\S*)?_?(Array)?MemoryError(: |$)",
        r"\[Errno 12\] Cannot allocate memory",
        r"std::bad_alloc",
        r"ray\.exceptions\.OutOfMemoryError",
    ),
    *_root(
        Cause.OPEN_FILES,
        r"\[Errno 24\] Too many open files",
        r"Too many open files\. Communication with the workers is no longer possible",
        r"received 0 items of ancdata",
        r"(?i)too many open files \(os error 24\)|accept4?\(?\)?.*: too many open files",
    ),
    *_root(
        Cause.DISK_FULL,
        r"\[Errno 28\] No space left on device",
        r"No space left on device \(os error 28\)",
        # The error that torch.save raises on a full disk.
        r"\[enforce fail at inline_container\.cc:\d+\] ?\. ?unexpected pos \d+ vs \d+",
        r"\[Errno 122\] Disk quota exceeded",
        r": No space left on device$",
        r"ray\.exceptions\.OutOfDiskError",
    ),
    *_root(
        Cause.SHARED_MEMORY,
        r"unable to (open|allocate|mmap|write to|resize) (a )?(shared memory|file </torch_)",
        r"(?i)insufficient shared memory \(shm\)",
        r"^Bus error|[Kk]illed by signal: Bus error|Fatal Python error: Bus error",
    ),
    *_root(
        Cause.GPU_HARDWARE,
        r"(?i)uncorrectable (NVLink|ECC) error",
        r"NVRM: Xid.*: (48|62|63|64|74|79|94|95|119|120)\b",
        r"GPU has fallen off the bus",
        r"CUDA error: (hardware stack error|NVLink|GPU is lost)",
        r"No CUDA GPUs are available|CUDA-capable device\(s\) is/are busy or unavailable",
        r"CUDA driver version is insufficient|forward compatibility was attempted",
        r"Failed to initialize NVML|Unable to determine the device handle for GPU",
    ),
    *_root(
        Cause.CUDA_ERROR,
        r"CUDA error: an illegal memory access was encountered",
        r"CUDA error: device-side assert triggered",
        r"CUDA error: (unspecified launch failure|misaligned address|invalid device function|an illegal instruction was encountered)",
        r"CUDA error: (invalid configuration argument|the launch timed out and was terminated|unknown error|initialization error)",
        r"CUBLAS_STATUS_(EXECUTION_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)|CUDNN_STATUS_(EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)",
    ),
    *_root(
        Cause.IMPORT_ERROR,
        r"^(ModuleNotFoundError|ImportError): ",
        r"undefined symbol: ",
        r"No module named [\w.]+$",
        r"FlashAttention only supports Ampere",
        r"CUDA error: no kernel image is available for execution",
        r"error while loading shared libraries: ",
    ),
    *_root(
        Cause.BAD_CHECKPOINT,
        r"PytorchStreamReader failed",
        r"Error while deserializing header",
        r"read failed: \[Errno 2\].*\.metadata",
        r"Can't find a valid checkpoint at|No valid checkpoint found in output directory",
        r"FileNotFoundError.*trainer_state\.json",
        r"(?i)^\w*(error|exception): (the )?checkpoint .*(is incomplete|can ?not be read|is corrupt)|^error: no checkpoint at ",
        r"zipfile\.BadZipFile: |^EOFError: (Ran out of input|No data left in file)",
    ),
    *_root(
        Cause.BAD_CONFIG,
        r"error: (unrecognized arguments|the following arguments are required|argument .*: (invalid|expected|must))",
        r"Invalid recover mode|Invalid wandb mode",
        r"ConfigAttributeError|ConfigKeyError|Could not override|OverrideParseException",
        r"\d+ validation errors? for \w+",
        r"size mismatch for \S+: copying a param|(Missing|Unexpected) key\(s\) in state_dict",
        r"does not match the world size",
        r"Requested \d+ GPUs but only \d+ available",
        r"can't open file '[^']*': \[Errno 2\]",
        r"^(/bin/)?sh: (line )?\d+: .*(not found|Permission denied)$",
        r"wandb\.errors\.(errors\.)?UsageError|api_key not configured",
    ),
    *_root(
        Cause.NOT_FINITE,
        r"Loss or gradient norm is not finite on at least one rank at step \d+",
        r"(?i)\bloss (is|became|was) (nan|inf|not finite|infinite)\b",
        r"Function '\w+' returned nan values in its \d+th output",
        r"(?i)loss scale already at minimum|minimum loss scale reached",
    ),
    *_root(Cause.ACCESS_DENIED, r"GatedRepoError|Repository Not Found for url", r"\b40[13] Client Error\b"),
    *_root(Cause.STOPPED_EARLY, r"Ran out of data; last step was canceled"),
    # The summary that torchrun prints last, with what its own exit code hides. It comes after everything that the workers logged.
    *_root(Cause.KILLED, r"exitcode\s*: -9 .*\(SIGKILL\)", r"Signal 9 \(SIGKILL\) received by PID \d+"),
    *_root(Cause.SHARED_MEMORY, r"exitcode\s*: -7 .*\(SIGBUS\)"),
    *_hint(Cause.PORT_IN_USE, r"EADDRINUSE|Address already in use|address already in use"),
    *_hint(
        Cause.NETWORK_ERROR,
        r"\b429 Client Error\b|HfHubHTTPError: 5\d\d|\b5\d\d Server Error\b",
        r"Read timed out|Temporary failure in name resolution|Name or service not known|Max retries exceeded with url",
    ),
    *_hint(Cause.BAD_CHECKPOINT, r"CheckpointException", r"^EOFError$"),
    *_hint(Cause.GPU_HARDWARE, r"ncclUnhandledCudaError"),
    *_hint(Cause.ACCESS_DENIED, r"wandb\.errors\.(errors\.)?(AuthenticationError|CommError)"),
    *_hint(Cause.HOST_OOM, r"DataLoader worker \(pid(\(s\))? .* is killed by signal: Killed"),
    *_hint(Cause.SHARED_MEMORY, r"DataLoader worker \(pid(\(s\))? .* exited unexpectedly"),
    *_consequence(
        Cause.COLLECTIVE_TIMEOUT,
        r"Watchdog caught collective operation timeout",
        r"Some NCCL operations have failed or timed out",
        r"NCCL watchdog thread terminated with exception",
        r"monitoring thread detects no heartbeat and will finally kill the process",
        r"Terminating the process after attempting to dump debug info",
        r"Timed out waiting \d+ms for (recv|send) operation to complete",
    ),
    *_consequence(
        Cause.NETWORK_ERROR,
        r"ncclSystemError|NCCL error: unhandled system error",
        r"ncclRemoteError|remote process exited or there was a network error",
        r"DistNetworkError|DistStoreError|RendezvousTimeoutError|RendezvousConnectionError",
        r"Connection reset by peer|Connection closed by (remote )?peer|Broken pipe",
        r"The vLLM server can't be reached at",
    ),
    *_consequence(
        Cause.TRAINER_ERROR,
        r"EngineDeadError: EngineCore encountered an issue|Engine core proc \S+ died unexpectedly",
        r"SIGQUIT received\.|Received sigquit from a child proc",
        r"Worker '[^']+' failed with exit code -?\d+|Failed to create worker",
        r"Timeout waiting for rollout servers to be ready|Timeout waiting for worker '",
        r"ray\.exceptions\.(ActorDiedError|ActorUnavailableError|ObjectStoreFullError)|Worker exit type: SYSTEM_ERROR",
    ),
)
"""The built-in rules. If two rules of the same strength match a line, the earlier one wins."""
