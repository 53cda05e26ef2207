"""Settings that prime-rl has moved, renamed or removed, with dates, as its settings change every two to four
weeks.

A path is dotted, with * for an index of a list. A removed section includes everything below it.
"""

from typing import NamedTuple


class UpstreamChange(NamedTuple):
    """A changed setting. `to` is its new path, or empty if it was removed. `date` and `change` (a pull
    request of prime-rl) are empty if not known.
    """

    old: str
    to: str
    date: str = ""
    change: str = ""
    instead: str = ""
    """What to do, if moving the setting is not enough."""


VERSIONS = {
    "559b4477": "2026-08-21",
    "29e422276": "2026-08-20",
    "e26b50503": "2026-08-13",
    "e25953539": "2025-12-17",
    "72c5f5f65": "2025-12-17",
}
"""Prefixes of commits whose date is known. Only the first one's settings are known."""

_SIDES = ("", "trainer.", "orchestrator.")
_SAMPLED = (
    "orchestrator.train",
    "orchestrator.eval",
    "orchestrator.train.source.*",
    "orchestrator.eval.source.*",
)
_SOURCES = ("orchestrator.train.source.*", "orchestrator.eval.source.*")
_SHIMS = ("2026-07-30", "#3156")
_RESUMING = ("2026-08-13", "#3268")
_MONITORS = ("2026-08-15", "#3275")
_ADAPTIVE = ("2026-08-19", "#3285")
_TENANTS = ("2026-08-08", "#3189")
_WEIGHTS = ("2026-08-20", "#3316")

_CHECKPOINTS = (
    *(UpstreamChange(f"{side}ckpt.keep", f"{side}ckpt.keep_last", "2025-12-31", "#1521") for side in _SIDES),
    *(UpstreamChange(f"{side}ckpt.resume_step", "resume.step", *_RESUMING) for side in _SIDES),
    *(
        UpstreamChange(
            f"{side}ckpt.weights",
            "",
            *_WEIGHTS,
            "delete it: weights are now saved only as part of a checkpoint",
        )
        for side in _SIDES
    ),
    UpstreamChange(
        "trainer.ckpt.skip_gather_master_weights",
        "",
        *_WEIGHTS,
        "delete it: weights are not gathered for a checkpoint",
    ),
    UpstreamChange(
        "trainer.ckpt.weights_only",
        "",
        *_WEIGHTS,
        "delete it: a checkpoint always contains the full training state",
    ),
    UpstreamChange("clean_output_dir", "clean", *_RESUMING),
)
_TRACKING = (
    *(UpstreamChange(f"{side}wandb", f"{side}monitors.wandb", *_MONITORS) for side in _SIDES),
    UpstreamChange("orchestrator.prime_monitor", "monitors.prime", *_MONITORS),
    UpstreamChange("prime_monitor", "monitors.prime", *_MONITORS),
    UpstreamChange(
        "heartbeat",
        "trainer.heartbeat",
        "",
        "",
        "set it for both sides: trainer.heartbeat.url and orchestrator.heartbeat.url",
    ),
)
_ROLLOUTS = (
    UpstreamChange("orchestrator.rollouts_per_example", "orchestrator.group_size", *_SHIMS),
    UpstreamChange("orchestrator.eval.rollouts_per_example", "orchestrator.eval.group_size", *_SHIMS),
    *(
        UpstreamChange(f"{source}.rollouts_per_example", f"{source}.group_size", *_SHIMS)
        for source in _SOURCES
    ),
    UpstreamChange("orchestrator.sampling", "orchestrator.train.sampling", *_SHIMS),
    *(
        UpstreamChange(f"{where}.sampling.max_tokens", f"{where}.sampling.max_completion_tokens", *_SHIMS)
        for where in _SAMPLED
    ),
    *(
        UpstreamChange(f"{part}.num_tasks", f"{part}.num_examples")
        for part in ("orchestrator.eval", "orchestrator.eval.source.*")
    ),
    *(
        UpstreamChange(
            f"orchestrator.{name}_batch_filters",
            "",
            "",
            "",
            "delete it: only orchestrator.train.filter_zero_advantages remains",
        )
        for name in ("pre", "post")
    ),
    UpstreamChange("orchestrator.env", "orchestrator.train.source", *_SHIMS),
    UpstreamChange("orchestrator.train.env", "orchestrator.train.source", *_SHIMS),
    UpstreamChange("orchestrator.eval.env", "orchestrator.eval.source", *_SHIMS),
    *(UpstreamChange(f"{source}.id", f"{source}.env.taskset.id", *_SHIMS) for source in _SOURCES),
    *(UpstreamChange(f"{source}.taskset", f"{source}.env.taskset", *_SHIMS) for source in _SOURCES),
    *(UpstreamChange(f"{source}.harness", f"{source}.env.agent.harness", *_SHIMS) for source in _SOURCES),
    *(UpstreamChange(f"{source}.args", f"{source}.env.taskset", *_SHIMS) for source in _SOURCES),
    *(
        UpstreamChange(
            f"{side}max_async_level",
            "",
            "2026-05-25",
            "#2631",
            "delete it: orchestrator.max_off_policy_steps now limits how stale rollouts may be",
        )
        for side in _SIDES
    ),
    *(
        UpstreamChange(
            f"{side}oversampling_factor",
            "",
            *_ADAPTIVE,
            "delete it: concurrency now adapts by itself, within orchestrator.concurrency",
        )
        for side in ("", "orchestrator.")
    ),
    UpstreamChange("orchestrator.max_inflight_rollouts", "orchestrator.concurrency.max_inflight", *_ADAPTIVE),
    UpstreamChange("orchestrator.max_inflight_episodes", "orchestrator.concurrency.max_inflight", *_ADAPTIVE),
    UpstreamChange(
        "orchestrator.advantage", "orchestrator.algo", "", "", "set the algorithm in orchestrator.algo.type"
    ),
)
_MODEL = (
    UpstreamChange("trainer.model.experimental.lora", "trainer.model.lora", "2025-12-17", "#1440"),
    UpstreamChange(
        "trainer.model.fsdp",
        "",
        "",
        "",
        "set fsdp_cpu_offload, reshard_after_forward or dp_replicate in trainer.model instead",
    ),
)
_MACHINE = (
    UpstreamChange(
        "trainer_gpu_ids",
        "deployment.num_train_gpus",
        "",
        "",
        "set the number of GPUs in deployment.num_train_gpus",
    ),
    UpstreamChange(
        "inference_gpu_ids",
        "deployment.num_infer_gpus",
        "",
        "",
        "set the number of GPUs in deployment.num_infer_gpus; the first GPUs of the machine are used",
    ),
    UpstreamChange("env_server_base_port", "orchestrator.env_server_base_port"),
    *(
        UpstreamChange(f"{side}max_concurrent_runs", "", *_TENANTS, "delete it: one launch trains one run")
        for side in _SIDES
    ),
    UpstreamChange(
        "inference.model",
        "inference.vllm",
        "",
        "",
        "write inference.vllm; the model's name is inference.vllm.model",
    ),
    UpstreamChange("inference.vllm_extra", "inference.vllm"),
    UpstreamChange(
        "inference.parallel",
        "inference.vllm",
        "",
        "",
        "tp is now inference.vllm.tensor_parallel_size, and dp is inference.vllm.data_parallel_size",
    ),
)
_NEVER = tuple(
    UpstreamChange(f"{side}executor_backend", "", "", "", "delete it: prime-rl never had such a setting")
    for side in ("", "orchestrator.", "trainer.", "inference.")
)

CHANGES = {
    change.old: change for change in (*_CHECKPOINTS, *_TRACKING, *_ROLLOUTS, *_MODEL, *_MACHINE, *_NEVER)
}

LATER = {
    "orchestrator.train.group_size": "orchestrator.group_size",
    "orchestrator.train.algo": "orchestrator.algo",
    "inference.renderer": "orchestrator.renderer",
    "inference.backend": "",
    "orchestrator.eval.select": "orchestrator.eval.num_examples",
    "trainer.model.moe": "",
}
"""Settings added after the newest table, with their former paths."""
