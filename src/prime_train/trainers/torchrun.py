"""Trainer `torchrun`: a script started in one process per worker. With a single worker neither torchrun nor
torch is needed.
"""

import zlib

from prime_train.spec.spec import RunSpec
from prime_train.trainers.command import CommandTrainer

_PORTS = range(20_000, 32_000)
"""A range of ports below the one from which Linux assigns ephemeral ports."""

_FLIGHT_RECORDER = "2000"


class TorchrunTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        script = super().command(
            spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder
        )
        return launched(script, workers=spec.trainer.workers)

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        own = one_worker(run_id, attempt) if spec.trainer.workers == 1 else nccl()
        return own | super().environment(spec, attempt=attempt, run_id=run_id, link=link)


def launched(script: str, *, workers: int) -> str:
    """Return the command that runs a script and its arguments in this many processes."""
    return f"python3 {script}" if workers == 1 else torchrun(script, workers=workers)


def torchrun(script: str, *, workers: int) -> str:
    """Return the command that runs a script and its arguments with torchrun, even in a single process."""
    # No restarts by torchrun, because a checkpoint must be restored first. --standalone picks a free port, so
    # none can be in use.
    return f"torchrun --standalone --nproc-per-node {workers} --max-restarts 0 {script}"


def one_worker(run_id: str, attempt: int) -> dict[str, str]:
    """Return the variables that torchrun would set. The port depends on run and attempt, so that two runs on
    one machine do not collide.
    """
    port = _PORTS[zlib.crc32(f"{run_id}-e{attempt}".encode()) % len(_PORTS)]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    return ranks | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def nccl() -> dict[str, str]:
    """Return NCCL settings that end a process with a hanging collective and dump a record. Each buffer size
    has two names in torch's history.
    """
    return {
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_BUFFER_SIZE": _FLIGHT_RECORDER,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": _FLIGHT_RECORDER,
    }
