"""What every estimate is made for: a model, how it is trained and served, its steps, and the GPUs that it is
placed on.

A config is described by its trainer's plan (`checks/memory_plan.py`), a model alone by `ModelTraining`. The
memory that each GPU must have, the time of a step and the space on the disk follow from the description here
and nowhere else, so that `validate`, `memory`, `find`, `cost`, `init`, `verify-model` and every ranking of
offers agree.
"""

import math
from dataclasses import dataclass, replace

from prime_train.estimate.cost.duration import Between
from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.formulas import trained_params
from prime_train.estimate.memory.phases import GIB, Need, serving_need, training_need
from prime_train.estimate.memory.serving import ServerParts, Serving, server_parts
from prime_train.estimate.memory.training_setup import Method, Training
from prime_train.estimate.models.dimensions import Model
from prime_train.runs.forecast import GpuNeed
from prime_train.spec.limits import DISK_GIB_MAX

UTILIZATION = 0.9
"""The share of each of its GPUs that a server uses, unless its config says otherwise."""
NUMBER_MAX = 2**24
"""The largest number of tokens, samples or ranks that is taken for one."""
GPUS_MAX = 1024
SHORTEST = 0.25
QUANTISED = {"fp8": 1.0, "mxfp8": 1.0, "awq": 0.53, "gptq": 0.53, "bitsandbytes": 0.5625}
"""Bytes per weight of a quantised model."""
SERVER_LOW = (0.97, 0.72)
"""Lower ends of the error bands: of the weights, and of the rest of a server."""
LEFT_SHARE_MIN = 0.001
"""The share of a GPU that a server is assumed to leave to its trainer at least, so that no need is
infinite.
"""
DOWNLOAD_BYTES = 2
KEPT = 2
"""Checkpoints on the disk at once, one of them being written, where it is not known how many the trainer
keeps.
"""
DISK_FACTOR, DISK_GIB, SERVER_DISK_GIB = 1.15, 20, 20
"""What a disk has in reserve: a share of what is needed, and GiB for the software of a trainer and of a
server.
"""


@dataclass(frozen=True)
class JobDescription:
    """A training on the GPUs of one machine. `train_gpus` hold one copy of the model's states, `serve_gpus`
    one copy of the server; 0 means that there is none.
    """

    model: Model
    training: Training
    train_gpus: int
    serving: Serving
    serve_gpus: int = 0
    utilization: float = UTILIZATION
    """The share of each of its GPUs that the server uses."""
    together: bool = False
    """Trainer and server share their GPUs; the server takes its share first."""
    batch_tokens: float = 0
    """The tokens of one training step if every sequence has the full length; 0 if not known."""
    shortest: float = SHORTEST
    """Minimum share of `batch_tokens` that a step trains on, as answers end earlier."""
    assumed: tuple[str, ...] = ()
    """What was assumed where the config does not say it, in words."""

    @property
    def is_rl(self) -> bool:
        """Return whether rollouts are generated beside the training."""
        return self.serve_gpus > 0

    @property
    def trainer_need(self) -> Need:
        """Return what the trainer takes of each of its GPUs, by phase."""
        return training_need(self.model, self.training, self.train_gpus)

    @property
    def server_parts(self) -> ServerParts:
        return server_parts(self.model, self.serving, self.serve_gpus)

    @property
    def phases(self) -> Need:
        """Return the same, and what the server takes of each of its own, if there is one."""
        if not self.is_rl:
            return self.trainer_need
        trainer, server = self.trainer_need, serving_need(self.model, self.serving, self.serve_gpus)
        return Need((*trainer.uses, *server.uses), doubted=trainer.doubted or server.doubted)

    def trainer_bytes(self, usable: float) -> float:
        """Return what of the `usable` bytes of a GPU the trainer may use: all, or what a server on the same
        GPU leaves.
        """
        return usable * (1 - self.utilization) if self.together else usable

    def gpu_need(self, gpu_count: int) -> GpuNeed:
        """Return the usable bytes that each GPU of a machine with `gpu_count` GPUs must have: the trainer's
        peak, in what the server leaves it if both share their GPUs, and what the server takes at least before
        it starts, in the share that it may use.
        """
        trainer = self.trainer_need
        left = max(LEFT_SHARE_MIN, 1.0 - self.utilization) if self.together else 1.0
        ends = [end / left for end in (trainer.low, trainer.peak.total, trainer.high)]
        if self.is_rl:
            parts = self.server_parts
            least, expected = server_low_bytes(parts) + parts.kv_cache, parts.fixed + parts.kv_cache
            ends = [
                max(one, server / self.utilization)
                for one, server in zip(ends, (least, expected, expected), strict=True)
            ]
        return GpuNeed(gpu_count, *ends)

    def step_s(self, gpu: Gpu, gpu_count: int) -> Between:
        """Return the seconds of a step on a machine with so many of these GPUs. Raises ValueError if the
        tokens of a step are not known.
        """
        training = self.training
        if not 0 < self.batch_tokens < math.inf:
            raise ValueError(f"{self.batch_tokens} tokens of a step; they must be above 0")
        done = Pass(training.seq_len, training.micro_batch, training.method, training.recompute, self.is_rl)
        slow, fast = tokens_per_s(self.model, done, gpu, gpu_count)
        return Between(self.batch_tokens * self.shortest / fast, self.batch_tokens / slow)

    @property
    def trained(self) -> float:
        """Return the number of parameters that are trained."""
        return trained_params(self.model, self.training)

    @property
    def checkpoint_bytes(self) -> float:
        """Return the bytes of a checkpoint of all that is trained, with the optimizer's states."""
        training = self.training
        width = training.adapter_bytes if training.method is Method.LORA else training.weight_bytes
        return (width + training.state_bytes) * self.trained

    @property
    def model_bytes(self) -> float:
        """Return the bytes of the downloaded model on the disk and, if it is served, of two broadcasts of
        what is trained.
        """
        broadcast = self.model.params if self.training.method is Method.FULL else self.trained
        return DOWNLOAD_BYTES * self.model.params + (2 * DOWNLOAD_BYTES * broadcast if self.is_rl else 0.0)

    def disk_gib(self, kept: int = KEPT) -> int:
        """Return the GiB of disk for the model and `kept` checkpoints, one of them being written, with a
        reserve.
        """
        return self.disk_gib_for(self.model_bytes + kept * self.checkpoint_bytes)

    def disk_gib_for(self, needed_bytes: float) -> int:
        """Return the GiB of disk for so many bytes, with a reserve."""
        software_gib = DISK_GIB + (SERVER_DISK_GIB if self.is_rl else 0)
        return min(DISK_GIB_MAX, math.ceil((needed_bytes / GIB * DISK_FACTOR + software_gib) / 10) * 10)


def server_low_bytes(parts: ServerParts) -> float:
    """Return the bytes of a server without its cache, at the lower end of the band."""
    return parts.weights * SERVER_LOW[0] + (parts.fixed - parts.weights) * SERVER_LOW[1]


def rl_trainers(gpus: int) -> int:
    """Return how many of the GPUs of an RL machine train, where nobody says it: half of them. The others
    generate.
    """
    return max(1, gpus // 2)


@dataclass(frozen=True)
class ModelTraining:
    """What is to be trained, how, and on how many tokens, before it is placed on GPUs."""

    model: Model
    training: Training
    tokens: float
    rl: bool = False

    def on(self, count: int) -> JobDescription:
        """Return the job on a machine with that many GPUs, as one step of all tokens. Of RL, half of the GPUs
        train and the others generate; a single GPU does both at once, and its server gets the share that it
        needs.
        """
        job = JobDescription(
            self.model,
            self.training,
            count,
            Serving(self.training.seq_len),
            batch_tokens=self.tokens,
            shortest=1.0,
        )
        if not self.rl:
            return job
        train = rl_trainers(count)
        job = replace(job, train_gpus=train, serve_gpus=max(1, count - train))
        if count > 1:
            return job
        server = job.server_parts.fixed + job.server_parts.kv_cache
        return replace(job, together=True, utilization=server / (server + job.trainer_need.peak.total))
