"""Log rules for prime-rl, which precede the built-in table for PyTorch, vLLM and the Hugging Face hub.

prime-rl's launcher exits with code 1 after every failure, so only these lines show the cause.
"""

from collections.abc import Iterable

from prime_train.spec.causes import Cause
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import found_in

INFERENCE_LOG = "inference.log"

_OUT_OF_MEMORY = r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory"


def marked(log: str, line: str) -> str:
    """Return the line, prefixed with its log's name if that decides the cause: out of memory on the inference server's GPUs is a separate
    cause."""
    return f"{log}: {line}" if log == INFERENCE_LOG and found_in(_OUT_OF_MEMORY, line) else line


def _rows(cause: Cause, *patterns: str, strength: EvidenceStrength = EvidenceStrength.ROOT) -> Iterable[LogRule]:
    return (LogRule(pattern, cause, strength=strength) for pattern in patterns)


RULES: tuple[LogRule, ...] = (
    # Stop at once: a trainer that starts over would save its first steps over the good checkpoints.
    LogRule(r"No checkpoints found in .*Starting from scratch", Cause.RESUME_IGNORED, stop=True, resumed_only=True),
    *_rows(
        Cause.BAD_CHECKPOINT,
        r"FileNotFoundError: (Orchestrator c|C)heckpoint not found at ",
        # The error raised for a folder name such as step_10.tmp.
        r"ValueError: invalid literal for int\(\) with base 10: '\d*\.[A-Za-z]\w*'",
    ),
    *_rows(
        Cause.BAD_CONFIG,
        r"\bextra_forbidden\b|Extra inputs are not permitted",
        r"\bConfigFileError\b|^\W*Unrecognized arguments",
        r"Shared config conflicts|conflicts with (the )?run directory|Must use SLURM",
        r"env_vars cannot set launcher-managed vars",
        r"exceeds vLLM maximum of \d+",
        r"Requested \d+ GPUs via deployment settings, but only",
        r"FileExistsError: (Run|Checkpoint) directory '[^']*' already contains",
        r"ModuleNotFoundError: (taskset|harness) '[^']*' not found",
    ),
    *_rows(
        Cause.INFERENCE_OOM,
        r"^inference\.log: .*(OutOfMemoryError|out of memory)",
        r"\(EngineCore\S* pid=\d+\).*OutOfMemoryError",
        r"CUDA out of memory occurred when warming up sampler",
        r"No available memory for the cache blocks",
        r"KV cache is needed, which is larger than the available KV cache memory",
        r"Free memory on device .* on startup is less than desired GPU memory utilization",
    ),
    *_rows(
        Cause.INFERENCE_FAILED,
        r"Inference server is not ready after \d+ \(>\d+\) seconds",
        r"\bengine_unresponsive\b",
        r"Model \S+ was not found in the inference pool",
    ),
    *_rows(
        Cause.INFERENCE_FAILED,
        r"EngineDeadError: EngineCore encountered an issue|Engine core proc \S+ died unexpectedly",
        r"Error: Inference failed with exit code -?\d+",
        strength=EvidenceStrength.CONSEQUENCE,
    ),
    *_rows(
        Cause.WEIGHT_BROADCAST,
        r"(?i)\b(failed|error|timed out|unable)\b.*\b(initiali[sz]\w+|init) (the )?NCCL broadcast",
        r"/init_broadcaster\b.*\b(50\d|[Tt]imed? ?out|[Ff]ailed)",
        r"No consumer acknowledged .*version|NCCL_READY.*(timed out|never appeared)",
    ),
    # Traceback frames that an exception passed through: another process may have failed first.
    *_rows(
        Cause.WEIGHT_BROADCAST,
        r"transports/weights/nccl\.py\", line \d+|, in (init_broadcaster|initialize_nccl|init_nccl_broadcast)$",
        strength=EvidenceStrength.HINT,
    ),
    *_rows(Cause.EMPTY_BATCHES, r"\b\d+ consecutive empty batches"),
    LogRule(r"^\s*assert len\(training_batch\.examples\) != 0", Cause.EMPTY_BATCHES, in_code=True),
    *_rows(
        Cause.ACCESS_DENIED,
        r"(Cannot access|trying to access a) gated repo",
        r"Invalid user token|Invalid username or password",
        r"wandb: ERROR .*(API key|[Pp]ermission denied|not logged in)|wandb\.errors\S*: .*(API key|not logged in|PERMISSION_ERROR)",
        r"wandb\.errors\S*UsageError|api_key not configured",
    ),
)
