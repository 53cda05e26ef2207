"""Describes how a model is trained; the input of the memory estimate."""

import math
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.memory.software_factors import PRIME_RL, Software

SEQ_LEN = 4096
"""Tokens per sequence where nobody says how many."""


class Method(StrEnum):
    FULL = "full"
    LORA = "lora"


class Logits(StrEnum):
    """How the loss is computed from the hidden states; the bytes per logit at the peak depend on the
    trainer.
    """

    FULL = "full"
    """All logits at once, with their 32-bit copies and gradients: prime-rl's SFT, transformers."""
    CHUNKED = "chunked"
    """The logits are computed in chunks that are all kept for the backward pass: torchtune, lit-gpt."""
    FUSED = "fused"
    """The logits are computed in chunks, of which only one is kept at a time: prime-rl's RL, Liger."""


class Recompute(StrEnum):
    """Which activations within layers are recomputed in the backward pass (activation or gradient
    checkpointing).
    """

    FULL = "full"
    SELECTIVE = "selective"
    """Outputs of attention and of every other matrix are kept; the rest is recomputed."""
    NONE = "none"


class Sharding(StrEnum):
    """What is sharded over the GPUs; on one GPU, FSDP still has its unsharded gradients and ZeRO its
    buffers.
    """

    NONE = "none"
    """Each GPU has a complete copy: one GPU, or DDP."""
    ZERO1 = "zero1"
    """Optimizer states are sharded."""
    ZERO2 = "zero2"
    """Optimizer states and gradients are sharded."""
    ZERO3 = "zero3"
    FSDP1 = "fsdp1"
    FSDP2 = "fsdp2"

    @property
    def is_full(self) -> bool:
        """Return whether weights, gradients and optimizer states are all sharded."""
        return self in (Sharding.ZERO3, Sharding.FSDP1, Sharding.FSDP2)


@dataclass(frozen=True)
class Training:
    """How a model is trained. The defaults are prime-rl's: 32-bit weights, gradients and AdamW states,
    computed in 16 bit.
    """

    method: Method = Method.FULL
    seq_len: int = 4096
    micro_batch: int = 1
    weight_bytes: float = 4
    """Bytes per weight; less than 1 means quantised, except for embedding and head."""
    embedding_bytes: float = 2
    """Bytes per weight of embedding and head if the rest is quantised; 4 if they are cast to 32 bit for
    stability (PEFT's prepare_model_for_kbit_training).
    """
    gradient_bytes: float = 4
    """Bytes per gradient; 0 if each gradient is applied and freed in the backward pass."""
    state_bytes: float = 8
    """Bytes of optimizer state per trained parameter, including a 32-bit copy of 16-bit weights."""
    recompute: Recompute = Recompute.FULL
    activations_offloaded: bool = False
    """Layer inputs are kept in host memory; only one layer's stay on the GPU."""
    eager_attention: bool = False
    """The attention scores of all pairs of tokens are materialised."""
    logits: Logits = Logits.FULL
    lora_rank: int = 16
    adapter_bytes: float = 4
    """Bytes per adapter weight."""
    adapters: int = 1
    """The number of adapters in memory at once; one of them has gradients and optimizer states."""
    adapter_params: int = 0
    """Parameters of one adapter; 0 means that they are computed for adapters on all matrices of each
    layer.
    """
    adapts_mlp: bool = True
    """Adapters are on all matrices of a layer, not only on the query, key and value projections."""
    trains_embeddings: bool = False
    """Embedding and head are trained in addition to the adapters."""
    foreach: bool = False
    """The optimizer steps all parameters at once and needs one more copy of the gradients."""
    sharding: Sharding = Sharding.FSDP2
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_parallel: int = 1
    """GPUs beside those of the other degrees that the experts, nearly all of a mixture's weights, are divided
    over.
    """
    states_offloaded: bool = False
    """Weights, gradients and optimizer states are in host memory; layers are loaded when needed."""
    optimizer_offloaded: bool = False
    compiled: bool = False
    models: int = 1
    """Models of this shape that are trained on the same GPUs, such as an actor and its critic."""
    frozen_bytes: float = 0
    """Bytes per parameter of models of this shape that are kept on the same GPUs and not trained, such as a
    reference model.
    """
    software: Software = PRIME_RL

    def __post_init__(self) -> None:
        if (
            min(
                self.seq_len,
                self.micro_batch,
                self.lora_rank,
                self.adapters,
                self.tensor_parallel,
                self.pipeline_parallel,
            )
            < 1
        ):
            raise ValueError(
                f"{self}: seq_len, micro_batch, lora_rank, adapters and parallel degrees must be at least 1"
            )

    @property
    def quantised(self) -> bool:
        return self.weight_bytes < 1

    @property
    def tokens(self) -> float:
        """Return the tokens on a GPU in one pass. If `seq_len` is only a limit that few samples reach, the
        longest sample grows with its square root.
        """
        natural = self.software.natural_tokens
        if natural and self.seq_len > natural:
            return self.micro_batch * math.sqrt(natural * self.seq_len)
        return self.micro_batch * self.seq_len

    def shards(self, gpus: int) -> int:
        """Return the number of GPUs that the weights are divided over."""
        return (
            gpus
            if self.sharding.is_full
            else min(gpus, self.tensor_parallel * self.pipeline_parallel * self.expert_parallel)
        )

    def state_shards(self, gpus: int) -> tuple[int, int, int]:
        """Return the number of GPUs that weights, gradients and optimizer states are divided over."""
        full = self.shards(gpus)
        gradients = gpus if self.sharding not in (Sharding.NONE, Sharding.ZERO1) else full
        return full, gradients, gpus if self.sharding is not Sharding.NONE else full


def usual_training(
    method: Method, seq_len: int = SEQ_LEN, *, rl: bool = False, bf16: bool = False
) -> Training:
    """Return how a model is trained where no config says it: as prime-rl does by default. Its RL keeps the
    optimizer and the inputs of layers in host memory and computes only some logits at a time, its SFT all of
    them. `bf16`: weights, gradients and AdamW states in 16 bit.
    """
    width = 2 if bf16 else 4
    return Training(
        method=method,
        seq_len=seq_len,
        weight_bytes=width,
        gradient_bytes=width,
        state_bytes=2 * width,
        adapter_bytes=width,
        logits=Logits.FUSED if rl else Logits.FULL,
        activations_offloaded=rl,
        optimizer_offloaded=rl,
        compiled=rl,
    )
