"""Settings that prime-rl determines itself: a spec of kind prime_rl may omit some of them, and must not set
others.

The place of its checkpoints follows from its output folder and its run's name. Both are passed to it on every
launch: without a name it would generate a new one each time, find no checkpoint there, and silently start
from scratch.
"""

from typing import Protocol

from prime_train.trainers.kind import Configured, ConfiguredPrimeRl, Layout

KIND = "prime_rl"
OUTPUT = "outputs"
PATTERN = "step_{step}"
"""Pattern of a checkpoint's name; prime-rl parses the step from any name with this prefix."""

TRAINED = "trainer/.metadata"
SHIPPED = "orchestrator/progress.pt"
"""The files that complete the halves of a checkpoint: the trainer's half is written by all ranks, and this
file last; the orchestrator's is one file.
"""

METRICS = "metrics.jsonl"

OURS: dict[str, str] = {
    "--resume": "the checkpoint to resume is chosen from the bucket",
    "--clean": "it deletes the run's folder with its checkpoints",
    "--dry-run": "nothing would be trained",
    "--run": "use trainer.prime_rl.run_name",
    "--output-dir": "use trainer.prime_rl.output",
    "--max-steps": "use trainer.steps",
    "--no-ckpt": "nothing would be saved",
    "--ckpt.interval": "use checkpoints.every_steps",
    "--ckpt.output-dir": "both halves of a checkpoint must be in one folder",
    "--monitors.file": "progress is read from the run's metrics file",
    "--no-monitors": "progress is read from the run's metrics file",
    "--trainer.heartbeat": "the agent receives these heartbeats",
    "--orchestrator.heartbeat": "the agent receives these heartbeats",
    "--env-vars.PRL-RUN-ID": "the run's id is used, so that all attempts are one run in the tracker",
}
"""Arguments that prime-train sets itself, each with the reason or with what to use instead. An entry also
covers the arguments nested below it.
"""


def refused(argument: str) -> str | None:
    """Return why this argument cannot be among `overrides`; None if it can."""
    flag = argument.split("=", 1)[0].replace("_", "-")
    for ours, instead in OURS.items():
        if flag == ours or flag.startswith(f"{ours}."):
            return f"{argument!r} is not allowed: {instead}"
    return None


class WantsGpus(Protocol):
    """The GPUs that a config asks for."""

    @property
    def gpus(self) -> tuple[str, ...]: ...
    @property
    def count(self) -> int: ...


def shares_gpu(hardware: WantsGpus) -> bool:
    """Return whether prime-rl's trainer and its inference server, if the config has one, share the only GPU
    of a rented machine. Without kinds of GPUs, the number of the machine's GPUs is not known.
    """
    return bool(hardware.gpus) and hardware.count == 1


def layout(spec: Configured) -> Layout:
    """Return the paths where a run of prime-rl saves."""
    part = spec.trainer.prime_rl
    assert part is not None
    folder = run_folder(part.output, part.run_name or spec.name)
    return Layout(f"{folder}/checkpoints", PATTERN, TRAINED, (TRAINED, SHIPPED), f"{folder}/{METRICS}")


def log_folder(part: ConfiguredPrimeRl) -> str:
    """Return the folder of the logs of the newest launch."""
    return f"{part.folder}/logs/latest"


def server_log(part: ConfiguredPrimeRl) -> str:
    """Return the log of an inference server that shares the trainer's GPU. It is beside the run's folder,
    which prime-rl's launcher refuses to use if it holds anything that the launcher did not write.
    """
    return f"{part.output}/.server-{part.run_name}/inference.log"


def run_folder(output: str, run_name: str) -> str:
    return f"{output}/{run_name}" if output != "." else run_name
