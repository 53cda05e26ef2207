"""Estimates the GPU memory of an inference server (vLLM): its fixed parts, and what its share of a GPU leaves
for the KV cache.

At the start a server takes the share `utilization` of the GPU's total memory, which includes weights and
activations, and uses the remainder as KV cache. CUDA graphs are within that share since vLLM 0.21.0; before,
they were on top of it. Activations are those of one pass over `PREFILL_TOKENS`, plus the sampler's logits in
32 bit; tensor parallelism divides neither (Llama-3-8B: 1.26 GiB on one GPU and on two, vLLM PR 10511).
"""

from dataclasses import dataclass

from prime_train.estimate.models.dimensions import Model

_GIB = 2**30
PREFILL_TOKENS = 8192
"""The tokens of one prefill pass, by which vLLM also measures its own activations."""
SAMPLED = 256
"""Number of sequences whose logits are computed at once (vLLM's max_num_seqs)."""
SAMPLED_LOGIT_BYTES = 16
GRAPH_BYTES = 0.64 * _GIB
"""Assumed size of CUDA graphs; published values are 0.3 to 1.6 GiB."""
BUFFER_BYTES = 1.2 * _GIB
"""Assumed memory outside of torch, for the CUDA context and kernels; 0.2 to 1.8 GiB by version."""
PARALLEL_BYTES = 0.9 * _GIB
"""Assumed size of the additional buffers of NCCL and all-reduce with tensor parallelism."""
WIDE = 2


@dataclass(frozen=True)
class Serving:
    """The minimum load of an inference server: `sequences` sequences of `seq_len` tokens at once."""

    seq_len: int = 4096
    sequences: int = 16
    weight_bytes: float = 2
    cache_bytes: float = 2
    eager: bool = False
    """No CUDA graphs are used."""

    def __post_init__(self) -> None:
        if self.seq_len < 1 or self.sequences < 1:
            raise ValueError(f"{self}: seq_len and sequences must be at least 1")


@dataclass(frozen=True)
class ServerParts:
    """The bytes on one GPU, by purpose."""

    weights: float
    kv_cache: float
    activations: float
    logits: float
    graphs: float
    buffers: float

    @property
    def fixed(self) -> float:
        """Return the bytes of all parts except the KV cache."""
        return self.weights + self.activations + self.logits + self.graphs + self.buffers


@dataclass(frozen=True)
class Share:
    """What a server's share of one GPU holds. `kv_tokens` is the capacity of the KV cache; it is negative if
    not even the fixed parts fit.
    """

    budget: float
    parts: ServerParts
    kv_tokens: float

    def sequences(self, seq_len: int) -> float:
        """Return how many sequences of `seq_len` tokens the KV cache holds at once."""
        return max(0.0, self.kv_tokens / seq_len)


def server_parts(model: Model, serving: Serving, gpus: int) -> ServerParts:
    """Return the parts on each of `gpus` GPUs that serve one copy together."""
    embedding = model.embedding_params * WIDE
    weights = model.params * serving.weight_bytes
    if serving.weight_bytes < 1:
        weights = (model.params - model.embedding_params) * serving.weight_bytes + embedding
    return ServerParts(
        weights=weights / gpus,
        kv_cache=kv_bytes(model, serving, gpus) * serving.seq_len * serving.sequences,
        activations=PREFILL_TOKENS * WIDE * (4 * model.hidden + 2 * model.ffn),
        logits=SAMPLED * SAMPLED_LOGIT_BYTES * model.vocab,
        graphs=0.0 if serving.eager else GRAPH_BYTES,
        buffers=BUFFER_BYTES + (PARALLEL_BYTES if gpus > 1 else 0.0),
    )


def share(model: Model, serving: Serving, gpus: int, *, utilization: float, gpu_bytes: float) -> Share:
    """Return the server's share of one of `gpus` GPUs with `gpu_bytes` bytes each, of which the server may
    use `utilization`.
    """
    parts = server_parts(model, serving, gpus)
    budget = utilization * gpu_bytes
    return Share(budget, parts, (budget - parts.fixed) / kv_bytes(model, serving, gpus))


def kv_bytes(model: Model, serving: Serving, gpus: int = 1) -> float:
    """Return the bytes of keys and values of one token on one GPU. Heads are divided among the GPUs, and
    replicated if there are fewer heads than GPUs.
    """
    heads = max(1.0, model.kv_heads / gpus)
    return 2 * model.layers * heads * model.head_dim * serving.cache_bytes
