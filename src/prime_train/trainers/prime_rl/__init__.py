"""Trainer `prime_rl`: prime-rl's own launcher, which starts a trainer, an orchestrator and an inference server.

What it does by itself cannot be left to it. Asked to resume, it takes the folder with the highest number, though its orchestrator saves
before its trainer does and once more when it crashes; and where there is nothing to resume it starts over without a word. So the step is
always named, and nothing else that looks like a checkpoint is left in its snapshot (`prime_rl_leftovers`). Code 0 may be a crash whose
tidying up took too long, so only the step tells success (`honest_code`).
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from prime_train.core.prime_rl import SHIPPED
from prime_train.core.spec import PrimeRlSpec, RunSpec
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.folders import FileSeen
from prime_train.trainers.log_rules import BUILT_IN, LogRule, of_spec
from prime_train.trainers.prime_rl.install import HOME, UV
from prime_train.trainers.prime_rl.log_rules import INFERENCE_LOG, RULES, marked
from prime_train.trainers.prime_rl.progress import PrimeRlReader
from prime_train.trainers.progress import LineReader

PORT = "PRIME_TRAIN_HEARTBEAT_PORT"
"""Variable with the port on loopback where somebody listens to heartbeats; unset, none are asked for."""

BROADCAST = "PRIME_TRAIN_WEIGHT_BROADCAST"
"""Variable with the way weights are to be broadcast; unset, the configuration decides."""

LOGS = ("trainer.log", INFERENCE_LOG, "orchestrator.log")
"""The launcher shows its own lines and the orchestrator's only: what killed the trainer stands in these."""

_SHARD = ".distcp"
_TRAINER = "trainer"


class PrimeRlTrainer(CommandTrainer):
    def command(self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None) -> str:
        part = part_of(spec)
        # exec: a shell that waited beside it would die first and take its exit code along.
        words = ["exec", *UV, "run", "--no-sync", "--project", HOME, "rl", "@", shlex.quote(part.config)]
        words += [shlex.quote(word) for word in part.overrides]
        words += _ours(spec, output=str(PurePosixPath(checkpoints).parent.parent))
        words += [_if_set(PORT, f"--{side}.heartbeat.url http://127.0.0.1:${PORT}/hb/{side}") for side in ("trainer", "orchestrator")]
        words.append(_if_set(BROADCAST, f"--weight-broadcast.type ${BROADCAST}"))
        return " ".join(words if resume_step is None else [*words, "--resume.step", str(resume_step)])

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        # Both names of the tracker's run, for the older one was read before 0.8.1. NEVER_CLEAN: no argument deletes checkpoints.
        tracked = {"PRL_RUN_ID": run_id, "WANDB_SHARED_RUN_ID": run_id}
        own = {"OMP_NUM_THREADS": "1", "GIT_LFS_SKIP_SMUDGE": "1", "NEVER_CLEAN": "1", "NEVER_CLEAN_OUTPUT_DIR": "1"}
        return own | tracked | super().environment(spec, attempt=attempt, run_id=run_id, link=link)

    def reader(self, spec: RunSpec) -> LineReader:
        return PrimeRlReader()

    def is_complete(self, spec: RunSpec, files: Sequence[FileSeen], now_s: int) -> bool:
        """Both halves are there, and the trainer's has shards. That each is as long as `.metadata` needs is told by `dcp.shard_sizes`, from
        the files themselves."""
        paths = [PurePosixPath(file.path) for file in files]
        trained = any(path.suffix == _SHARD and path.parent.name == _TRAINER for path in paths)
        return trained and PurePosixPath(SHIPPED) in paths and super().is_complete(spec, files, now_s)

    def is_begun(self, spec: RunSpec, files: Sequence[FileSeen]) -> bool:
        """The orchestrator saves its half ahead of the trainer, and once more when it crashes: no step waits for that."""
        return any(PurePosixPath(file.path).parts[0] == _TRAINER for file in files)

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        return (*of_spec(spec.health.log_rules), *RULES, *BUILT_IN)


def part_of(spec: RunSpec) -> PrimeRlSpec:
    """What a spec of this kind says of prime-rl; a spec of another kind is a bug."""
    assert spec.trainer.prime_rl is not None
    return spec.trainer.prime_rl


def honest_code(spec: RunSpec, *, code: int, step: int) -> int:
    """The exit code, but 1 for a 0 before the last step, which is a crash that was masked. `step`: the newest that was made."""
    steps = spec.trainer.steps
    return 1 if code == 0 and spec.trainer.prime_rl is not None and steps is not None and step < steps else code


def log_files(spec: RunSpec) -> tuple[str, ...]:
    """The logs of the newest launch, inside the working tree, in the order in which their ends tell most."""
    return tuple(f"{part_of(spec).folder}/logs/latest/{name}" for name in LOGS) if spec.trainer.prime_rl is not None else ()


def last_lines(logs: Mapping[str, Iterable[str]], output: Iterable[str]) -> list[str]:
    """What `classify` is to read: the ends of `log_files`, by path, before the launcher's own output."""
    lines = [marked(PurePosixPath(path).name, line) for path, found in logs.items() for line in found]
    return [*lines, *output]


def _ours(spec: RunSpec, *, output: str) -> list[str]:
    part = part_of(spec)
    words = ["--run.name", part.run_name, "--run.dir", part.run_name, "--output-dir", shlex.quote(output)]
    words += ["--max-steps", str(spec.trainer.steps), "--monitors.file"]
    if spec.checkpoints.every_steps is not None:
        words += ["--ckpt.interval", str(spec.checkpoints.every_steps)]
    if spec.wandb is not None:
        words += ["--monitors.wandb.project", shlex.quote(spec.wandb.project)]
        words += ["--monitors.wandb.entity", shlex.quote(spec.wandb.entity)] if spec.wandb.entity else []
    return words


def _if_set(variable: str, words: str) -> str:
    """Words the shell puts there if the variable is set when it starts the launcher."""
    return f"${{{variable}:+{words}}}"
