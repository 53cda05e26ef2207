"""Formulas for the parts of a training's memory, in bytes on one GPU.

Values of 2 bytes per token in one layer:

    kept            what the backward pass needs: normed and 16-bit copies of the hidden state, queries, keys
    and values with their rotated copies, the MLP's intermediate values; also the copies that 4-bit layers or
    each expert make of their inputs working         the same, and their gradients, while one layer is
    recomputed for its backward pass selective       outputs of attention and of every other matrix

A mixture of experts copies each token for every expert that it passes: `working` grows by 12 hidden states
per expert. This is derived from prime-rl's 30B-A3B and INTELLECT-3 between 16k and 64k tokens.
"""

from prime_train.estimate.memory.training_setup import Logits, Method, Recompute, Sharding, Training
from prime_train.estimate.models.dimensions import Model

WIDE = 2
"""Bytes of a number in computations."""
FUSED_VOCAB = 2048
"""The number of logits that a fused head computes at a time."""
FUSED_LOGIT_BYTES = 12
SCORE_BYTES = 5
"""Bytes per attention score if all scores are materialised: swift's Qwen-7B takes 20 GiB more without flash
attention than with it.
"""
EXPERT_COPIES = 12
"""Hidden states that `working` contains for each expert of a token, derived from published peaks of
prime-rl.
"""
EXPERT_COPIES_KEPT = 3
"""Hidden states that `kept` contains for each expert of a token."""
CAPPED_BYTES = 3
"""Additional bytes per logit if a tanh caps the logits."""
STAGE_BYTES = 6
"""Bytes per parameter of a pipeline stage: 16-bit weights stay gathered and 32-bit gradients unsharded until
all micro-batches are done.
"""
WORKSPACE_BYTES = 10
"""Bytes per number of the largest matrix while it is dequantised from 4 bits: copies as integers and in 16
bit.
"""
LIVE_PARAMS = 10**9
"""Number of parameters that ZeRO-3 keeps gathered (stage3_max_live_parameters)."""


def weight_bytes(model: Model, training: Training) -> float:
    """Return the bytes of all of the model's weights, without adapters and before sharding."""
    untied = model.vocab * model.hidden if model.tied and training.software.unties_head else 0
    if not training.quantised:
        return (model.params + untied) * training.weight_bytes
    return (model.params - model.embedding_params) * training.weight_bytes + (
        model.embedding_params + untied
    ) * training.embedding_bytes


def trained_params(model: Model, training: Training) -> float:
    """Return the number of trained parameters: all of them, or those of one LoRA adapter, which adds two thin
    matrices to each matrix of a layer, including those of every expert.
    """
    if training.method is Method.FULL:
        return model.params
    if training.adapter_params:
        return training.adapter_params
    attention = 2 * (model.hidden + model.attention_width) + 2 * (model.hidden + model.kv_width)
    mlp = 3 * model.experts * (model.hidden + model.ffn / model.experts_used)
    return training.lora_rank * model.layers * (attention + mlp)


def kept(model: Model, training: Training) -> float:
    """Return the bytes of activations kept in all layers, with selective or no recomputation."""
    if training.recompute is Recompute.SELECTIVE:
        widths = 2 * model.hidden + model.attention_width + 2 * model.kv_width + 1.5 * model.ffn
    else:
        widths = _kept_widths(model) + _inputs_again(model, training)
    share = training.software.compiled_share if training.compiled else 1.0
    return (
        training.tokens
        * model.layers
        * (WIDE * share * widths + _scores(model, training))
        / _parallel(training)
    )


def borders(model: Model, training: Training) -> float:
    """Return the bytes of the inputs of all layers, which are kept if layers are recomputed."""
    layers = 1 if training.activations_offloaded else model.layers
    return training.tokens * WIDE * layers * model.hidden / _parallel(training)


def working(model: Model, training: Training) -> float:
    """Return the bytes of one layer during its backward pass."""
    widths = 6 * model.hidden + 4 * model.attention_width + 4 * model.kv_width + _mlp_working(model)
    return training.tokens * (WIDE * widths + _scores(model, training)) / _parallel(training)


def logit_bytes(model: Model, training: Training) -> float:
    """Return the bytes of the loss: logits with their copies and gradients."""
    # A pipeline's last stage holds one micro-batch at a time.
    tokens = training.tokens / training.pipeline_parallel
    if training.logits is Logits.FUSED:
        return tokens * (FUSED_LOGIT_BYTES * FUSED_VOCAB + 8 * model.hidden)
    logits = (
        tokens
        * one_logit_bytes(model, training)
        * model.vocab
        * training.software.loss_fragments
        / training.tensor_parallel
    )
    # Tensor parallelism divides the logits, but neither the hidden states that they are computed from nor
    # their gradient.
    return logits + (tokens * 4 * WIDE * model.hidden if training.tensor_parallel > 1 else 0.0)


def one_logit_bytes(model: Model, training: Training) -> float:
    """Return the bytes per logit with its copies and gradients, for a head that is not fused."""
    software = training.software
    each = software.chunked_logit_bytes if training.logits is Logits.CHUNKED else software.full_logit_bytes
    return each + (CAPPED_BYTES if model.capped else 0)


def gathered(model: Model, training: Training, shards: int) -> float:
    """Return the bytes of complete layers gathered from their shards when needed, and of the largest layer's
    unsharded gradient.
    """
    if not training.sharding.is_full:
        return 0.0
    if training.pipeline_parallel > 1:
        return STAGE_BYTES * model.params / _parallel(training)
    layer, embedding = (
        model.layer_params / training.tensor_parallel,
        model.embedding_params / training.tensor_parallel,
    )
    weights = WIDE * (2 * layer + embedding) if shards > 1 or training.states_offloaded else 0.0
    if training.sharding is Sharding.ZERO3:
        # ZeRO-3 has its buffers on a single GPU as well.
        weights = WIDE * max(2 * layer + embedding, min(model.params, LIVE_PARAMS))
    largest = max(layer, embedding if model.tied else embedding / 2)
    is_fsdp2 = training.sharding is Sharding.FSDP2 and training.method is Method.FULL
    return weights + (4 * largest if is_fsdp2 else 0.0)


def workspace(model: Model, training: Training) -> float:
    """Return the bytes used while the largest matrix is dequantised from 4 bits; 0 without quantisation."""
    return WORKSPACE_BYTES * model.hidden * model.ffn / model.experts_used if training.quantised else 0.0


def _kept_widths(model: Model) -> float:
    """Return the numbers per token that a layer keeps. Gated models compute norms in 32 bit and keep those
    values, too.
    """
    norms, mlp = (1 + 2 * model.norms, 4) if model.gated else (1, 2)
    experts = EXPERT_COPIES_KEPT * model.experts_used * model.hidden if model.is_moe else 0
    return norms * model.hidden + 2 * model.attention_width + 4 * model.kv_width + mlp * model.ffn + experts


def _inputs_again(model: Model, training: Training) -> float:
    """Return the numbers per token of additional inputs that a layer keeps: those of 4-bit layers, and those
    of adapters, which have their own after dropout; for adapters, those of the MLP and of the attention's
    output are added.
    """
    quantised = 6 * model.hidden + 2 * model.ffn if training.quantised else 0.0
    adapted = (
        3 * model.hidden + model.attention_width + model.ffn
        if training.method is Method.LORA and training.adapts_mlp
        else 0.0
    )
    return quantised + adapted


def _mlp_working(model: Model) -> float:
    return (
        EXPERT_COPIES * model.experts_used * model.hidden + 5 * model.ffn if model.is_moe else 7 * model.ffn
    )


def _scores(model: Model, training: Training) -> float:
    return SCORE_BYTES * model.heads * training.seq_len if training.eager_attention else 0.0


def _parallel(training: Training) -> int:
    return training.tensor_parallel * training.pipeline_parallel
