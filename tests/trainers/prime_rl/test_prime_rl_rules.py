"""The meaning of prime-rl's log lines."""

import pytest

from prime_train.spec.causes import POLICY, Cause
from prime_train.trainers.of_spec import classify, fired, trainer_for
from prime_train.trainers.prime_rl.trainer import RULES
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec

TABLE = trainer_for(prime_rl_spec()).log_rules(prime_rl_spec())
SAMPLES: dict[Cause, list[str]] = {
    Cause.RESUME_IGNORED: [
        "WARNING No checkpoints found in /w/outputs/x/checkpoints. Starting from scratch."
    ],
    Cause.BAD_CHECKPOINT: [
        "FileNotFoundError: Checkpoint not found at /w/outputs/x/checkpoints/step_20/trainer",
        "FileNotFoundError: Orchestrator checkpoint not found at "
        "/w/outputs/x/checkpoints/step_20/orchestrator/progress.pt",
        "ValueError: invalid literal for int() with base 10: '10.tmp'",
    ],
    Cause.BAD_CONFIG: [
        "  Extra inputs are not permitted [type=extra_forbidden, input_value=True, input_type=bool]",
        "pydantic_config.cli.ConfigFileError: --wandb: unknown (got 'x') - did you mean --monitors.wandb?",
        "Unrecognized arguments: @rl.toml",
        "ValueError: Shared config conflicts: seq_len",
        "ValueError: env_vars cannot set launcher-managed vars ['PRL_RUN_ID']",
        "ValueError: lora rank 1024 exceeds vLLM maximum of 512",
        "ValueError: Requested 9 GPUs via deployment settings, but only 8 physical GPU(s) are available: [0]",
        "FileExistsError: Run directory '/w/outputs/x' already contains artifacts from a previous run.",
        "ModuleNotFoundError: taskset 'reverse-text' not found (tried to import 'reverse_text')",
    ],
    Cause.INFERENCE_OOM: [
        "inference.log: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB.",
        "(EngineCore_DP0 pid=812) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.00 GiB.",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
        "ValueError: 7.00 GiB KV cache is needed, which is larger than the available KV cache memory (2.1 "
        "GiB).",
        "ValueError: Free memory on device (3.1/79.2 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.3 GiB).",
    ],
    Cause.INFERENCE_FAILED: [
        "TimeoutError: Inference server is not ready after 1800 (>1800) seconds. Aborting...",
        'INFO: 127.0.0.1 - "GET /liveness" 503 {"status":"engine_unresponsive"}',
        "ValueError: Model Qwen/Qwen3-4B was not found in the inference pool on http://localhost:8100",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace above.",
        "ERROR Error: Inference failed with exit code -9",
    ],
    Cause.WEIGHT_BROADCAST: [
        "ERROR Failed to initialize NCCL broadcast: timed out after 1200 s",
        "httpx.HTTPStatusError: Server error '500 Internal Server Error' for url "
        "'http://localhost:8100/init_broadcaster' (500)",
        '  File "/prime-rl/src/prime_rl/transports/weights/nccl.py", line 88, in __init__',
        '  File "/prime-rl/src/prime_rl/orchestrator/clients.py", line 130, in initialize_nccl',
        "RuntimeError: No consumer acknowledged the offered version in 1200 s",
    ],
    Cause.EMPTY_BATCHES: [
        "RuntimeError: Step 7 failed after 10 consecutive empty batches",
        "    assert len(training_batch.examples) != 0",
    ],
    Cause.ACCESS_DENIED: [
        "OSError: You are trying to access a gated repo. Make sure to have access to it at "
        "https://huggingface.co/a/b",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error.",
        "requests.exceptions.HTTPError: Invalid user token.",
        "wandb.errors.errors.UsageError: api_key not configured (no-tty). call "
        "wandb.login(key=[your_api_key])",
        "wandb: ERROR API key must have 40+ characters, has 3.",
    ],
    Cause.GPU_OOM: ["[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."],
    Cause.OPEN_FILES: ["OSError: [Errno 24] Too many open files"],
    Cause.DISK_FULL: [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 122] Disk quota exceeded",
    ],
}
PAIRS = [(cause, line) for cause, lines in SAMPLES.items() for line in lines]
HARMLESS = [
    "SUCCESS Step 12 | Time: 8.10s | Reward: 0.5000 | Throughput: 1200.0 tokens/s",
    "WARNING Step 7 produced 0 training samples (attempt 1/10). Retrying in 30s...",
    "INFO Initializing NCCL broadcast: 1 servers, inference_world_size=1, gpus_per_server=1",
    "INFO Waiting for inference server at http://localhost:8100 to start up (30s elapsed)",
    "WARNING rollout failed: ValueError: invalid literal for int() with base 10: '3.5'",
    "INFO Found latest checkpoint in /w/outputs/x/checkpoints: 20",
]


@pytest.mark.parametrize(
    ("cause", "line"), PAIRS, ids=[f"{cause}-{number}" for number, (cause, _) in enumerate(PAIRS)]
)
def test_a_line_alone_names_its_cause(cause: Cause, line: str) -> None:
    assert classify(["step 10 loss 2.5", line, ""], TABLE, code=1, resumed=True)[0] is cause


def test_every_rule_of_prime_rl_has_a_sample_and_fires_for_its_cause() -> None:
    for rule in RULES:
        lines = [line for line in SAMPLES[rule.cause] if rule.fits(line)]
        assert lines, rule.pattern


@pytest.mark.parametrize("line", HARMLESS)
def test_what_it_prints_when_it_is_well_fires_nothing(line: str) -> None:
    assert fired(line, TABLE, resumed=True) is None


def test_starting_over_is_stopped_at_once_where_a_checkpoint_was_to_be_resumed() -> None:
    (line,) = SAMPLES[Cause.RESUME_IGNORED]
    rule = fired(line, TABLE, resumed=True)
    assert rule is not None
    assert rule.stop
    assert fired(line, TABLE, resumed=False) is None


def test_an_inference_server_that_ran_out_of_memory_is_not_only_dead() -> None:
    lines = [*SAMPLES[Cause.INFERENCE_FAILED][-2:], SAMPLES[Cause.INFERENCE_OOM][1]]
    assert classify(lines, TABLE, code=1)[0] is Cause.INFERENCE_OOM


def test_a_broadcast_that_failed_because_its_peer_was_out_of_memory_is_out_of_memory() -> None:
    lines = [SAMPLES[Cause.WEIGHT_BROADCAST][2], SAMPLES[Cause.INFERENCE_OOM][0]]
    assert classify(lines, TABLE, code=1)[0] is Cause.INFERENCE_OOM


def test_after_a_broadcast_that_failed_another_attempt_is_told_to_use_files() -> None:
    policy = POLICY[Cause.WEIGHT_BROADCAST]
    assert policy.retry.value == "counted"
    assert "filesystem" in policy.advice
