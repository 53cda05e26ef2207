"""How a model is trained, and what an inference server must hold: what an estimate of memory is made from."""

import math
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.memory.software import PRIME_RL, Software


class Method(StrEnum):
    FULL = "full"
    LORA = "lora"


class Logits(StrEnum):
    """How the loss is made of the hidden states; what a logit takes at the peak is the software's."""

    WHOLE = "whole"
    """All at once, with their 32-bit copies and gradients: prime-rl's SFT, transformers."""
    CHUNKED = "chunked"
    """In pieces that are all kept for the backward pass: torchtune, lit-gpt."""
    FUSED = "fused"
    """Only some at a time: prime-rl's RL, Liger."""


class Recompute(StrEnum):
    """Which activations inside layers are made again in the backward pass (activation or gradient checkpointing)."""

    FULL = "full"
    SELECTIVE = "selective"
    """Outputs of matrices and attention are kept, every other one of the matrices' made again."""
    NONE = "none"


class Sharding(StrEnum):
    """What is divided among the GPUs; on one GPU, FSDP still has its unsharded gradients and ZeRO its buffers."""

    NONE = "none"
    """Each has a whole copy: one GPU, or DDP."""
    ZERO1 = "zero1"
    """Optimizer states."""
    ZERO2 = "zero2"
    """Optimizer states and gradients."""
    ZERO3 = "zero3"
    FSDP1 = "fsdp1"
    FSDP2 = "fsdp2"

    @property
    def is_whole(self) -> bool:
        """Weights, gradients and states are all divided."""
        return self in (Sharding.ZERO3, Sharding.FSDP1, Sharding.FSDP2)


@dataclass(frozen=True)
class Training:
    """How a model is trained. The defaults are prime-rl's: 32-bit weights, gradients and AdamW states, computed in 16 bit."""

    method: Method = Method.FULL
    seq_len: int = 4096
    micro_batch: int = 1
    weight_bytes: float = 4
    """Less than 1: quantised, but for embedding and head."""
    embedding_bytes: float = 2
    """Of embedding and head where the rest is quantised; 4 where they are made 32-bit for stability (PEFT's
    prepare_model_for_kbit_training)."""
    gradient_bytes: float = 4
    """0: each is used and freed in the backward pass."""
    state_bytes: float = 8
    """Of the optimizer, for one trained parameter; a 32-bit copy of 16-bit weights is part of it."""
    recompute: Recompute = Recompute.FULL
    activations_offloaded: bool = False
    """Borders of layers are kept in the host's memory; one layer's stay."""
    eager_attention: bool = False
    """Scores of all pairs of tokens are made."""
    logits: Logits = Logits.WHOLE
    lora_rank: int = 16
    adapter_bytes: float = 4
    """Of the weights of adapters."""
    adapters: int = 1
    """RunRecord at once; one of them has gradients and states."""
    adapter_params: int = 0
    """Of one adapter; 0: as many as are beside all matrices of each layer."""
    adapts_mlp: bool = True
    """Adapters are beside all matrices of a layer, not only those that make queries, keys and values."""
    trains_embeddings: bool = False
    """Embedding and head are trained beside the adapters."""
    foreach: bool = False
    """The optimizer goes over all parameters at once and needs one more copy of the gradients."""
    sharding: Sharding = Sharding.FSDP2
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    states_offloaded: bool = False
    """Weights, gradients and states are in the host's memory; layers come when they are needed."""
    optimizer_offloaded: bool = False
    compiled: bool = False
    software: Software = PRIME_RL

    def __post_init__(self) -> None:
        if min(self.seq_len, self.micro_batch, self.lora_rank, self.adapters, self.tensor_parallel, self.pipeline_parallel) < 1:
            raise ValueError(f"{self}: seq_len, micro_batch, lora_rank, adapters and parallel degrees must be at least 1")

    @property
    def quantised(self) -> bool:
        return self.weight_bytes < 1

    @property
    def tokens(self) -> float:
        """RunRecord at once on a GPU. Where the length is only a cap, the longest sample grows as its root."""
        natural = self.software.natural_tokens
        if natural and self.seq_len > natural:
            return self.micro_batch * math.sqrt(natural * self.seq_len)
        return self.micro_batch * self.seq_len

    def shards(self, gpus: int) -> int:
        """Over how many GPUs weights are divided."""
        return gpus if self.sharding.is_whole else self.tensor_parallel * self.pipeline_parallel
