"""All rules about prime-rl configs: what prime-rl refuses, and what it accepts and then fails on."""

from prime_train.rules.prime_rl import checkpoints as prime_rl_saving
from prime_train.rules.prime_rl import environments as prime_rl_sources
from prime_train.rules.prime_rl import gpus as prime_rl_gpus
from prime_train.rules.prime_rl import keys as prime_rl_keys
from prime_train.rules.prime_rl import lengths as prime_rl_lengths
from prime_train.rules.prime_rl import lora as prime_rl_lora
from prime_train.rules.prime_rl import models as prime_rl_models
from prime_train.rules.prime_rl import nodes as prime_rl_nodes
from prime_train.rules.prime_rl import ports as prime_rl_ports
from prime_train.rules.prime_rl import renderers as prime_rl_renderers
from prime_train.rules.prime_rl import resuming as prime_rl_resuming
from prime_train.rules.prime_rl import rollouts as prime_rl_rollouts
from prime_train.rules.prime_rl import shared_settings as prime_rl_tracking
from prime_train.rules.prime_rl import training as prime_rl_training
from prime_train.rules.prime_rl import transport as prime_rl_transport
from prime_train.rules.prime_rl import upstream as prime_rl_upstream
from prime_train.rules.prime_rl import vllm as prime_rl_vllm

RULES = (
    *prime_rl_keys.RULES,
    *prime_rl_lengths.RULES,
    *prime_rl_vllm.RULES,
    *prime_rl_gpus.RULES,
    *prime_rl_nodes.RULES,
    *prime_rl_ports.RULES,
    *prime_rl_lora.RULES,
    *prime_rl_saving.RULES,
    *prime_rl_resuming.RULES,
    *prime_rl_rollouts.RULES,
    *prime_rl_sources.RULES,
    *prime_rl_training.RULES,
    *prime_rl_models.RULES,
    *prime_rl_renderers.RULES,
    *prime_rl_transport.RULES,
    *prime_rl_tracking.RULES,
    *prime_rl_upstream.RULES,
)
