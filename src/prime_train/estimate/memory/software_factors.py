"""How trainers differ in memory beyond what a config says, derived from constants fitted to published peaks (learned.py)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prime_train.estimate.memory.learned import FITTED, SHARED, UNKNOWN

UNKNOWN_MARGIN = 1.08
"""The factor on estimated parts for a trainer without published peaks: with each source left out in turn, one peak in twenty is then more
than 10 % above the estimate."""


class Measure(StrEnum):
    """What a published peak measures."""

    ALLOCATED = "allocated"
    """The bytes of all tensors."""
    RESERVED = "reserved"
    """The bytes reserved by torch's allocator."""
    DEVICE = "device"
    """Everything on the GPU, including the CUDA context, as nvidia-smi reports it."""


class Loss(StrEnum):
    """The precision of logits while the loss is computed from all of them at once."""

    WIDE = "wide"
    """In 32 bit: the 16-bit original and its gradient, and 32-bit copies, log-probabilities and gradients: 2 + 2 + 3 x 4 = 16 bytes."""
    NARROW = "narrow"
    """In 16 bit throughout, as under DeepSpeed, which has no autocast: 4 or 5 copies of 2 bytes."""
    COMPILED = "compiled"
    """Fused by the compiler: logits and their gradients in 16 bit, 4 bytes."""


@dataclass(frozen=True)
class MadeWith:
    """The trainer to estimate for. `ragged` means that batches have mixed lengths, so that the memory torch cached for one length cannot
    serve another."""

    trainer: str
    measure: Measure = Measure.RESERVED
    loss: Loss = Loss.WIDE
    ragged: bool = False


@dataclass(frozen=True)
class Learned:
    """The constants shared by all trainers, and each fitted trainer's factors on them."""

    shared: Mapping[str, float]
    times: Mapping[str, Mapping[str, float]]

    def of(self, trainer: str, constant: str) -> float:
        """Return a constant for a trainer: the shared one times the trainer's factor, if it has one."""
        return self.shared[constant] * self.times.get(trainer, {}).get(constant, 1.0)


LEARNED = Learned(SHARED, {name: trainer.times for name, trainer in FITTED.items()})


@dataclass(frozen=True)
class Software:
    """A trainer's memory constants. Bytes per logit at the peak include all its copies and gradients."""

    name: str
    full_logit_bytes: float
    chunked_logit_bytes: float
    rest_gib: float
    """GiB of allocator and libraries; with the CUDA context if peaks are reported by nvidia-smi."""
    compiled_share: float
    """The share of activations that compiled layers keep."""
    loss_fragments: float = 1.0
    """The factor on the loss's buffers, which are cached for batches of mixed lengths."""
    natural_tokens: float = 0
    """The token count above which few samples reach the length limit; 0 if every sequence has exactly that length."""
    full_at_load: bool = False
    unties_head: bool = False


def software(made: MadeWith, learned: Learned = LEARNED) -> Software:
    """Return the memory constants of a trainer, whether it has published peaks or not."""
    name, facts = made.trainer, FITTED.get(made.trainer, UNKNOWN)
    margin = 1.0 if name in learned.times else UNKNOWN_MARGIN
    cached = made.ragged and made.measure is not Measure.ALLOCATED
    return Software(
        name,
        full_logit_bytes=margin * learned.of(name, made.loss),
        chunked_logit_bytes=margin * learned.of(name, "chunked"),
        rest_gib=margin * learned.of(name, made.measure),
        compiled_share=learned.of(name, "compiled_share"),
        loss_fragments=learned.of(name, "fragments") if cached else 1.0,
        natural_tokens=learned.of(name, "natural") if made.ragged else 0,
        full_at_load=facts.full_at_load,
        unties_head=facts.unties_head,
    )


PRIME_RL = software(MadeWith("prime-rl"))
