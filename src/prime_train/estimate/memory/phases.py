"""The GPU memory of a model in training or serving: what one GPU holds in each phase, and the error band of
the estimate.

Weights, gradients and optimizer states are counted: their number times bytes each, divided by the GPUs that
they are sharded over. The rest is estimated (terms.py), with constants per trainer (learned.py). A training's
peak is the largest of its phases:

    loss        layer inputs (or all activations without recomputation) and the logits with their copies and
    gradients backward    the same activations, and one layer that is recomputed for its backward pass step
    states, and one more copy of the gradients if the optimizer steps all parameters at once (`foreach`) load
    the complete model and its shard, if the trainer loads it that way

The band contains nine in ten of the published peaks of tests/data/memory_peaks.json, even if nothing was
fitted to their source: counted parts are taken as 0.97 to 1.06 of the count, estimated ones as 0.72 to 1.4
(0.6 to 1.8 for a doubtful case: a mixture of experts, a shape guessed from the size, activations that are not
recomputed). tests/benchmarks/memory/model.py prints how the estimate and its band perform on peaks used in
the fit and on others, next to two other formulas.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from prime_train.estimate.memory import formulas
from prime_train.estimate.memory.formulas import trained_params
from prime_train.estimate.memory.serving import ServerParts, Serving, kv_bytes, server_parts
from prime_train.estimate.memory.training_setup import Logits, Method, Recompute, Sharding, Training
from prime_train.estimate.models.dimensions import Model
from prime_train.runs.forecast import GIB, GpuNeed

__all__ = [
    "GIB",
    "Logits",
    "Method",
    "Need",
    "Phase",
    "Recompute",
    "Serving",
    "Sharding",
    "Training",
    "Use",
    "kv_bytes",
    "serving_need",
    "trained_params",
    "training_need",
]  # fmt: skip

COUNTED_BAND = (0.97, 1.06)
"""Factors from the count of a part to the ends of its error band."""
ESTIMATED_BAND = (0.72, 1.4)
"""Factors from the estimate of a part to the ends of its error band."""
DOUBTED_BAND = (0.6, 1.8)
"""Factors for estimated parts in doubtful cases."""
_COUNTED = frozenset({"weights", "gradients", "optimizer", "kv_cache"})


class Phase(StrEnum):
    LOSS = "loss"
    BACKWARD = "backward"
    STEP = "optimizer step"
    LOAD = "load"
    SERVING = "inference"


@dataclass(frozen=True)
class Use:
    """The bytes on one GPU in one phase."""

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
        """Return the bytes by purpose, without `phase`."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "phase"}

    @property
    def total(self) -> float:
        return sum(self.parts.values())

    @property
    def counted(self) -> float:
        """Return the bytes of parts that are counted exactly, such as weights."""
        return sum(size for part, size in self.parts.items() if part in _COUNTED)

    @property
    def estimated(self) -> float:
        """Return the bytes of parts that are estimated, such as activations."""
        return self.total - self.counted


@dataclass(frozen=True)
class Need:
    """The bytes needed on one GPU; if the GPUs have different roles, on the one that needs most. `doubted`
    selects the wider band.
    """

    uses: tuple[Use, ...]
    doubted: bool = False

    @property
    def peak(self) -> Use:
        """Return the phase with the most bytes, by the estimate itself."""
        return max(self.uses, key=lambda use: use.total)

    @property
    def low(self) -> float:
        """Return the bytes at the lower end of the band, in the phase where that is highest."""
        return max(_times(use, COUNTED_BAND[0], self._estimated[0]) for use in self.uses)

    @property
    def high(self) -> float:
        """Return the bytes at the upper end of the band, in the phase where that is highest."""
        return max(_times(use, COUNTED_BAND[1], self._estimated[1]) for use in self.uses)

    def on(self, gpu_count: int) -> GpuNeed:
        """Return the need as that of each GPU of a machine with so many GPUs."""
        return GpuNeed(gpu_count, self.low, self.peak.total, self.high)

    @property
    def _estimated(self) -> tuple[float, float]:
        return DOUBTED_BAND if self.doubted else ESTIMATED_BAND


def training_need(model: Model, training: Training, gpus: int) -> Need:
    """Return the need of each of `gpus` GPUs that train."""
    states = _states(model, training, gpus)
    shards = training.shards(gpus)
    stored = replace(
        states,
        rest=states.rest + formulas.workspace(model, training),
        gathered=formulas.gathered(model, training, shards),
    )
    if training.recompute is Recompute.FULL:
        activations, working = formulas.borders(model, training), formulas.working(model, training)
    else:
        activations, working = formulas.kept(model, training), 0.0
    loss = replace(
        stored, phase=Phase.LOSS, activations=activations, logits=formulas.logit_bytes(model, training)
    )
    backward = replace(stored, phase=Phase.BACKWARD, activations=activations + working)
    uses = [loss, backward, _step(states, training)]
    if training.software.full_at_load and shards > 1:
        uses.append(_load(model, training, loss, shards))
    return Need(
        tuple(uses), doubted=model.is_moe or model.guessed or training.recompute is not Recompute.FULL
    )


def serving_need(model: Model, serving: Serving, gpus: int) -> Need:
    """Return the need of each of `gpus` GPUs that serve one copy together (tensor parallel)."""
    return Need((_serving_use(server_parts(model, serving, gpus)),), doubted=model.is_moe or model.guessed)


def _states(model: Model, training: Training, gpus: int) -> Use:
    """Return what stays in memory from step to step."""
    full_shards, gradient_shards, state_shards = training.state_shards(gpus)
    trained = trained_params(model, training)
    weights = formulas.weight_bytes(model, training)
    if training.method is Method.LORA:
        weights += trained * training.adapters * training.adapter_bytes
        trained += model.embedding_params if training.trains_embeddings else 0
    weights, trained = (
        weights * training.models + model.params * training.frozen_bytes,
        trained * training.models,
    )
    return Use(
        Phase.STEP,
        weights=0.0 if training.states_offloaded else weights / full_shards,
        gradients=0.0 if training.states_offloaded else trained * training.gradient_bytes / gradient_shards,
        optimizer=0.0
        if training.states_offloaded or training.optimizer_offloaded
        else trained * training.state_bytes / state_shards,
        rest=training.software.rest_gib * GIB,
    )


def _step(states: Use, training: Training) -> Use:
    return replace(states, rest=states.rest + states.gradients) if training.foreach else states


def _load(model: Model, training: Training, loss: Use, shards: int) -> Use:
    """Return the use of the load phase, as the first pass runs while the complete model and the shard are
    both in memory; full training loads in 32 bit.
    """
    each = 2 * training.weight_bytes if training.method is Method.FULL else training.weight_bytes
    full = formulas.weight_bytes(model, training) / training.weight_bytes * each
    return Use(
        Phase.LOAD,
        weights=full * (1 + 1 / shards),
        activations=loss.activations,
        logits=loss.logits,
        rest=loss.rest,
    )


def _serving_use(parts: ServerParts) -> Use:
    return Use(
        Phase.SERVING,
        weights=parts.weights,
        kv_cache=parts.kv_cache,
        activations=parts.activations,
        logits=parts.logits,
        rest=parts.graphs + parts.buffers,
    )


def _times(use: Use, counted: float, estimated: float) -> float:
    return use.counted * counted + use.estimated * estimated
