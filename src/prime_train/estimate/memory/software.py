"""What trainers differ by in memory, beside what a config says, made of what was learned from published peaks (memory_learned.py)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.memory.learned import SHARED, TRAINERS, UNKNOWN

UNKNOWN_MARGIN = 1.08
"""Times what is estimated of a trainer without published peaks: with each source left out in turn, one peak in twenty is then more than
10 % above what is told."""


class Measure(StrEnum):
    """What a peak counts."""

    ALLOCATED = "allocated"
    """Tensors."""
    RESERVED = "reserved"
    """What torch's allocator holds."""
    DEVICE = "device"
    """All on the GPU, the CUDA context with it: nvidia-smi."""


class Loss(StrEnum):
    """What a logit is while the loss is made of it, where all are made at once."""

    WIDE = "wide"
    """32 bit: its 16-bit original and gradient, and 32-bit copies, their logarithms and gradients: 2 + 2 + 3 x 4 = 16 bytes."""
    NARROW = "narrow"
    """16 bit throughout, as under DeepSpeed, which has no autocast: 4 or 5 copies of 2 bytes."""
    COMPILED = "compiled"
    """Fused by the compiler: logits and their gradients in 16 bit, 4 bytes."""


@dataclass(frozen=True)
class MadeWith:
    """A trainer as an estimate is asked for. `ragged`: batches are of many lengths, and what torch cached for one serves no other."""

    trainer: str
    measure: Measure = Measure.RESERVED
    loss: Loss = Loss.WIDE
    ragged: bool = False


@dataclass(frozen=True)
class Learned:
    """Constants shared by all trainers, and how many times of them each that has peaks takes."""

    shared: Mapping[str, float]
    times: Mapping[str, Mapping[str, float]]

    def of(self, trainer: str, constant: str) -> float:
        return self.shared[constant] * self.times.get(trainer, {}).get(constant, 1.0)


LEARNED = Learned(SHARED, {name: trainer.times for name, trainer in TRAINERS.items()})


@dataclass(frozen=True)
class Software:
    """Bytes of a logit at the peak are for all its copies and gradients together."""

    name: str
    whole_logit_bytes: float
    chunked_logit_bytes: float
    rest_gib: float
    """Allocator, libraries; with the CUDA context where peaks are told by nvidia-smi."""
    compiled_share: float
    """Of what layers keep, where they are compiled."""
    loss_fragments: float = 1.0
    """Times the loss's buffers: cached for batches of several lengths."""
    natural_tokens: float = 0
    """Above so many tokens the cap on lengths is met by few samples; 0: every sequence is exactly that long."""
    whole_at_load: bool = False
    unties_head: bool = False


def software(made: MadeWith, learned: Learned = LEARNED) -> Software:
    """Of a trainer, known or not."""
    name, facts = made.trainer, TRAINERS.get(made.trainer, UNKNOWN)
    margin = 1.0 if name in learned.times else UNKNOWN_MARGIN
    cached = made.ragged and made.measure is not Measure.ALLOCATED
    return Software(
        name,
        whole_logit_bytes=margin * learned.of(name, made.loss),
        chunked_logit_bytes=margin * learned.of(name, "chunked"),
        rest_gib=margin * learned.of(name, made.measure),
        compiled_share=learned.of(name, "compiled_share"),
        loss_fragments=learned.of(name, "fragments") if cached else 1.0,
        natural_tokens=learned.of(name, "natural") if made.ragged else 0,
        whole_at_load=facts.whole_at_load,
        unties_head=facts.unties_head,
    )


PRIME_RL = software(MadeWith("prime-rl"))
