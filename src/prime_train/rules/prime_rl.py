"""Rules about prime-rl configs, all of them: what it refuses, and what it takes and then dies of."""

from prime_train.rules import (
    prime_rl_gpus,
    prime_rl_keys,
    prime_rl_lengths,
    prime_rl_lora,
    prime_rl_models,
    prime_rl_ports,
    prime_rl_resuming,
    prime_rl_rollouts,
    prime_rl_saving,
    prime_rl_sources,
    prime_rl_tracking,
    prime_rl_training,
    prime_rl_vllm,
)

RULES = (
    *prime_rl_keys.RULES,
    *prime_rl_lengths.RULES,
    *prime_rl_vllm.RULES,
    *prime_rl_gpus.RULES,
    *prime_rl_ports.RULES,
    *prime_rl_lora.RULES,
    *prime_rl_saving.RULES,
    *prime_rl_resuming.RULES,
    *prime_rl_rollouts.RULES,
    *prime_rl_sources.RULES,
    *prime_rl_training.RULES,
    *prime_rl_models.RULES,
    *prime_rl_tracking.RULES,
)
