"""Trainer `torchrun`: a script in as many processes as there are workers. One worker needs neither torchrun nor torch."""

import zlib

from prime_train.core.spec import RunSpec
from prime_train.trainers.command import CommandTrainer

_PORTS = range(20_000, 32_000)
"""Below what Linux hands out by itself."""

_FLIGHT_RECORDER = "2000"


class TorchrunTrainer(CommandTrainer):
    def command(self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None) -> str:
        script = super().command(spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder)
        if spec.trainer.workers == 1:
            return f"python3 {script}"
        # No restarts by torchrun: whoever restarts must restore first. Standalone: a free port, so nothing is in use.
        return f"torchrun --standalone --nproc-per-node {spec.trainer.workers} --max-restarts 0 {script}"

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        own = _one_worker(run_id, attempt) if spec.trainer.workers == 1 else _nccl()
        return own | super().environment(spec, attempt=attempt, run_id=run_id, link=link)


def _one_worker(run_id: str, attempt: int) -> dict[str, str]:
    """What torchrun would have set; the port differs between runs, so that two on one machine do not meet."""
    port = _PORTS[zlib.crc32(f"{run_id}-e{attempt}".encode()) % len(_PORTS)]
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    return ranks | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def _nccl() -> dict[str, str]:
    """A hanging collective ends the process and leaves a record; torch has known both names of each variable."""
    return {
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_BUFFER_SIZE": _FLIGHT_RECORDER,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": _FLIGHT_RECORDER,
    }
