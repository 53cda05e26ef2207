"""What a config places on its GPUs: the model, how it is trained and served, and the number of GPUs."""

from dataclasses import dataclass

from prime_train.estimate.memory.phases import Serving, Training
from prime_train.estimate.models.dimensions import Model

NUMBER_MAX = 2**24
"""The largest number of tokens, samples or ranks that is taken for one."""
GPUS_MAX = 1024
SHORTEST = 0.25
QUANTISED = {"fp8": 1.0, "mxfp8": 1.0, "awq": 0.53, "gptq": 0.53, "bitsandbytes": 0.5625}
"""Bytes per weight of a quantised model."""


@dataclass(frozen=True)
class Plan:
    """The placement of a config. `train_gpus` hold one copy of the model's states, `serve_gpus` one copy of the server; 0 means that there
    is none."""

    model: Model
    training: Training
    train_gpus: int
    serving: Serving
    serve_gpus: int = 0
    utilization: float = 0.9
    """The share of each of its GPUs that the server uses."""
    together: bool = False
    """Trainer and server share their GPUs; the server takes its share first."""
    batch_tokens: int = 0
    """The tokens of one training step if every sequence has the full length; 0 if not known."""
    shortest: float = SHORTEST
    """Minimum share of `batch_tokens` that a step trains on, as answers end earlier."""
    assumed: tuple[str, ...] = ()
    """What was assumed where the config does not say it, in words."""

    def trainer_bytes(self, usable: float) -> float:
        """Return what of the `usable` bytes of a GPU the trainer may use: all, or what a server on the same GPU leaves."""
        return usable * (1 - self.utilization) if self.together else usable
