"""What was estimated of a config when its run was launched, because only then its trainer's files were at hand."""

from dataclasses import dataclass
from hashlib import sha256

from prime_train.core.market.gpu_memory import GpuNeed
from prime_train.core.market.step_times import StepEstimate

ESTIMATES_MAX = 100
FAMILY_CHARS_MAX = 300


@dataclass(frozen=True)
class Forecast:
    """`steps`: the estimated time of a step, by kind of machine. `every_steps`, `every_s`: training between two saves; None: not known, or
    set in the other unit. `stall_s`: seconds that training pauses for a save. Bytes of 0 are not known. `family`: the trainer, the model
    and how it is trained, in words; runs with the same words differ from their estimates by about the same factor. Empty: not known.
    `last_step`: the last step by the trainer's own settings; None: not known. `needs`: the memory of GPUs, of each variant; empty: not
    known. `environment`: the environments of the rollouts, in words; empty: there are none, or they are not known. `batch_tokens`: tokens
    of a step at most; 0: not known."""

    steps: tuple[StepEstimate, ...] = ()
    every_steps: int | None = None
    every_s: float | None = None
    stall_s: float | None = None
    checkpoint_bytes: float = 0.0
    model_bytes: float = 0.0
    family: str = ""
    last_step: int | None = None
    needs: tuple[GpuNeed, ...] = ()
    environment: str = ""
    batch_tokens: float = 0.0

    @property
    def family_key(self) -> str:
        """Return a digest of the family, so that nobody learns which models others train."""
        return sha256(self.family.encode()).hexdigest() if self.family else ""

    @property
    def trained(self) -> str:
        """Return the model and how it is trained, without the trainer: Qwen/Qwen3-8B lora"""
        return self.family.partition(": ")[2]


NO_FORECAST = Forecast()
