"""GPU memory of a model while it is trained or serves: what lies on one GPU, in each phase, and how far the estimate may be off.

Weights, gradients and optimizer states are counted: bytes of a number times numbers, divided by the GPUs that they are sharded over
(FSDP or ZeRO-3). The rest is estimated, per token that one GPU holds at once (`seq_len` times `micro_batch`):

    recomputed activations   2 bytes x layers x hidden, kept at the borders of layers, and what one layer works with:
                             2 bytes x (8 hidden + 2 queries + 2 keys + 5 ffn), in widths
    kept activations         0.7 of what a layer works with, times all layers
    logits                   bytes of one logit (`Logits`) x vocabulary
    gathered                 two layers and embedding or head in 16 bit, and with them one layer's gradient in 32 bit

and 0.7 GiB for whatever holds no tensor of the model. An optimizer that goes over all parameters at once (`foreach`) needs one more copy
of the gradients in its step. The peak is the phase that needs most. Kept layer borders of 2 bytes x layers x hidden a token and 18 bytes
a logit are what published peaks differ by between lengths; the widths of a layer are those of its matrices' inputs and outputs.

The band. Counted parts are taken as 0.97 to 1.10 of what is counted, estimated ones as 0.6 to 1.8 (2.4 where a doubt is added: a mixture
of experts, a shape guessed from the size, activations that are not recomputed). Held against 79 published peaks of full and LoRA
training (tests/data/memory_peaks.json), which the shares and widths were chosen by as well: 67 lie in the band, 2 below it. The 10 above
are of trainers that hold unsharded buffers or fragment their memory (DeepSpeed, FSDP 1, HF trainers of 2023); none is of prime-rl,
torchtitan, torchtune or FSDP for QLoRA.

Not covered: quantised weights, offloading, tensor or pipeline parallel training.
"""

from dataclasses import dataclass, fields, replace
from enum import IntEnum, StrEnum

from prime_train.core.model_table import Model

GIB = 2**30
REST_BYTES = 0.7 * GIB
ACTIVATION_BYTES = 2
KEPT_SHARE = 0.7
COUNTED_BAND = (0.97, 1.10)
ESTIMATED_BAND = (0.6, 1.8)
DOUBTED_BAND = (0.5, 2.4)
FUSED_VOCAB = 2048
"""Logits that a fused head makes at a time."""
PREFILL_TOKENS = 8192
"""What an inference server takes in at once, and measures its own activations by."""
SERVER_BYTES = 2 * GIB
"""CUDA graphs, communication buffers and the CUDA context of an inference server; 1.2 to 3.6 GiB are published."""
_COUNTED = frozenset({"weights", "gradients", "optimizer", "kv_cache"})


class Method(StrEnum):
    FULL = "full"
    LORA = "lora"


class Logits(IntEnum):
    """How the loss is made of the hidden states; the value is the bytes a logit takes at the peak."""

    WHOLE = 18
    """All at once, with their 32-bit copies and gradients: prime-rl's SFT, transformers."""
    CHUNKED = 8
    """In pieces that are all kept for the backward pass: torchtune, lit-gpt."""
    FUSED = 12
    """Only `FUSED_VOCAB` at a time: prime-rl's RL, Liger."""


class Phase(StrEnum):
    PASS = "forward and backward"
    STEP = "optimizer step"
    SERVING = "inference"


@dataclass(frozen=True)
class Training:
    """How a model is trained. The defaults are prime-rl's: 32-bit weights, gradients and AdamW states, computed in 16 bit."""

    method: Method = Method.FULL
    seq_len: int = 4096
    micro_batch: int = 1
    weight_bytes: int = 4
    gradient_bytes: int = 4
    state_bytes: int = 8
    """Of the optimizer, for one trained parameter; a 32-bit copy of 16-bit weights is part of it."""
    recompute: bool = True
    """Activations inside layers are made again in the backward pass (activation or gradient checkpointing)."""
    logits: Logits = Logits.WHOLE
    lora_rank: int = 16
    foreach: bool = False
    sharded: bool = True
    """Over all GPUs; otherwise each has a whole copy."""

    def __post_init__(self) -> None:
        if self.seq_len < 1 or self.micro_batch < 1 or self.lora_rank < 1:
            raise ValueError(f"{self}: seq_len, micro_batch and lora_rank must be at least 1")


@dataclass(frozen=True)
class Serving:
    """What an inference server must hold at the least: so many sequences of that length."""

    seq_len: int = 4096
    sequences: int = 16
    weight_bytes: int = 2
    cache_bytes: int = 2


@dataclass(frozen=True)
class Use:
    """Bytes on one GPU in one phase."""

    phase: Phase
    weights: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    logits: float = 0.0
    gathered: float = 0.0
    kv_cache: float = 0.0
    rest: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """Bytes by what they are for."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "phase"}

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def counted(self) -> float:
        return sum(size for part, size in self.parts.items() if part in _COUNTED)

    @property
    def estimated(self) -> float:
        return self.total - self.counted

    def beside(self, other: "Use") -> "Use":
        """Both on the same GPU at once."""
        mine, theirs = self.parts, other.parts
        return Use(self.phase, **{part: size + theirs[part] for part, size in mine.items()})


@dataclass(frozen=True)
class Need:
    """Bytes of one GPU: of the GPU that needs most, where they do different things. `doubted`: the wider band holds."""

    uses: tuple[Use, ...]
    doubted: bool = False

    @property
    def peak(self) -> Use:
        return max(self.uses, key=lambda use: use.total)

    @property
    def low(self) -> float:
        return max(_times(use, COUNTED_BAND[0], self._estimated[0]) for use in self.uses)

    @property
    def high(self) -> float:
        return max(_times(use, COUNTED_BAND[1], self._estimated[1]) for use in self.uses)

    @property
    def _estimated(self) -> tuple[float, float]:
        return DOUBTED_BAND if self.doubted else ESTIMATED_BAND


def training_need(model: Model, training: Training, gpus: int) -> Need:
    """Of each of `gpus` GPUs, weights, gradients and states sharded over them."""
    shards = gpus if training.sharded else 1
    trained = trained_params(model, training)
    step = Use(
        Phase.STEP,
        weights=model.params * training.weight_bytes / shards,
        gradients=trained * training.gradient_bytes / shards,
        optimizer=trained * training.state_bytes / shards,
        rest=REST_BYTES,
    )
    passing = replace(
        step,
        phase=Phase.PASS,
        activations=_activations(model, training),
        logits=_logits(model, training),
        gathered=_gathered(model, training),
    )
    if training.foreach:
        step = replace(step, rest=step.rest + step.gradients)
    return Need((passing, step), doubted=model.is_moe or model.guessed or not training.recompute)


def serving_need(model: Model, serving: Serving, gpus: int) -> Need:
    """Of each of `gpus` GPUs that serve one copy together (tensor parallel)."""
    prefill = PREFILL_TOKENS * ACTIVATION_BYTES * (4 * model.hidden + 2 * model.ffn)
    use = Use(
        Phase.SERVING,
        weights=model.params * serving.weight_bytes / gpus,
        kv_cache=kv_bytes(model, serving, gpus) * serving.seq_len * serving.sequences,
        activations=prefill,
        rest=SERVER_BYTES,
    )
    return Need((use,), doubted=model.is_moe or model.guessed)


def rl_need(model: Model, training: Training, serving: Serving, gpus: int) -> Need:
    """Half of the GPUs train and the others make the roll-outs; a single one does both at once."""
    if gpus == 1:
        server = serving_need(model, serving, 1)
        trainer = training_need(model, training, 1)
        return Need(tuple(use.beside(server.peak) for use in trainer.uses), doubted=trainer.doubted or server.doubted)
    trainers = training_need(model, training, rl_trainers(gpus))
    servers = serving_need(model, serving, gpus - rl_trainers(gpus))
    return Need((*trainers.uses, *servers.uses), doubted=trainers.doubted or servers.doubted)


def rl_trainers(gpus: int) -> int:
    """How many of the GPUs train."""
    return max(1, gpus // 2)


def trained_params(model: Model, training: Training) -> float:
    """All of them, or LoRA's: two thin matrices beside each of a layer's, every expert's with them."""
    if training.method is Method.FULL:
        return model.params
    attention = 2 * (model.hidden + model.attention_width) + 2 * (model.hidden + model.kv_width)
    mlp = 3 * model.experts * (model.hidden + model.ffn / model.experts_used)
    return training.lora_rank * model.layers * (attention + mlp)


def kv_bytes(model: Model, serving: Serving, gpus: int = 1) -> float:
    """Keys and values of one token on one GPU. Heads are divided among the GPUs, and copied where there are fewer of them."""
    heads = max(1.0, model.kv_heads / gpus)
    return 2 * model.layers * heads * model.head_dim * serving.cache_bytes


def _activations(model: Model, training: Training) -> float:
    tokens = training.seq_len * training.micro_batch
    widths = 8 * model.hidden + 2 * model.attention_width + 2 * model.kv_width + 5 * model.ffn
    layer = tokens * ACTIVATION_BYTES * widths
    if training.recompute:
        return tokens * ACTIVATION_BYTES * model.layers * model.hidden + layer
    return KEPT_SHARE * model.layers * layer


def _logits(model: Model, training: Training) -> float:
    tokens = training.seq_len * training.micro_batch
    if training.logits is Logits.FUSED:
        return tokens * (Logits.FUSED * FUSED_VOCAB + 8 * model.hidden)
    return tokens * training.logits * model.vocab


def _gathered(model: Model, training: Training) -> float:
    """Whole layers, made of their shards just when they are needed. One GPU gathers as well: into 16 bit."""
    if not training.sharded:
        return 0.0
    gradient = 4 * model.layer_params if training.method is Method.FULL else 0.0
    return 2 * ACTIVATION_BYTES * model.layer_params + ACTIVATION_BYTES * model.vocab * model.hidden + gradient


def _times(use: Use, counted: float, estimated: float) -> float:
    return use.counted * counted + use.estimated * estimated
