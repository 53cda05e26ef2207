"""Trainer `prime_rl`: prime-rl's own launcher, which starts a trainer, an orchestrator and an inference server.

prime-rl's own choice of what to resume is not safe. When asked to resume, it takes the folder with the highest step, although its
orchestrator saves before its trainer does and again when it crashes; with nothing to resume it silently starts over. So the step is always
named, and everything else that looks like a checkpoint is moved away first (`prime_rl/stale_outputs.py`). Exit code 0 may be a crash whose
clean-up took too long, so only the step proves success (`honest_code`).
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
"""Variable with the loopback port that receives prime-rl's heartbeats; if unset, prime-rl is not configured to send any."""

BROADCAST = "PRIME_TRAIN_WEIGHT_BROADCAST"
"""Variable with the method of broadcasting weights; if unset, the configuration decides."""

LOGS = ("trainer.log", INFERENCE_LOG, "orchestrator.log")
"""Log files to read. The launcher prints only its own lines and the orchestrator's, so what ended the trainer is only in these files."""

_SHARD = ".distcp"
_TRAINER = "trainer"


class PrimeRlTrainer(CommandTrainer):
    def command(self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None) -> str:
        part = part_of(spec)
        # exec, because a shell that waited for the launcher would be terminated first and lose its exit code.
        words = ["exec", *UV, "run", "--no-sync", "--project", HOME, "rl", "@", shlex.quote(part.config)]
        words += [shlex.quote(word) for word in part.overrides]
        words += _ours(spec, output=str(PurePosixPath(checkpoints).parent.parent))
        words += [_if_set(PORT, f"--{side}.heartbeat.url http://127.0.0.1:${PORT}/hb/{side}") for side in ("trainer", "orchestrator")]
        words.append(_if_set(BROADCAST, f"--weight-broadcast.type ${BROADCAST}"))
        return " ".join(words if resume_step is None else [*words, "--resume.step", str(resume_step)])

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        # Both names of the tracker's run ID: versions before 0.8.1 read the older one. NEVER_CLEAN stops every argument from deleting
        # checkpoints.
        tracked = {"PRL_RUN_ID": run_id, "WANDB_SHARED_RUN_ID": run_id}
        own = {"OMP_NUM_THREADS": "1", "GIT_LFS_SKIP_SMUDGE": "1", "NEVER_CLEAN": "1", "NEVER_CLEAN_OUTPUT_DIR": "1"}
        return own | tracked | super().environment(spec, attempt=attempt, run_id=run_id, link=link)

    def reader(self, spec: RunSpec) -> LineReader:
        return PrimeRlReader()

    def is_complete(self, spec: RunSpec, files: Sequence[FileSeen], now_s: int) -> bool:
        """Return whether the halves of trainer and orchestrator both exist, the trainer's with shards.

        Whether each shard is as long as `.metadata` requires is checked by `dcp.shard_sizes`, which needs the files themselves.
        """
        paths = [PurePosixPath(file.path) for file in files]
        trained = any(path.suffix == _SHARD and path.parent.name == _TRAINER for path in paths)
        return trained and PurePosixPath(SHIPPED) in paths and super().is_complete(spec, files, now_s)

    def is_begun(self, spec: RunSpec, files: Sequence[FileSeen]) -> bool:
        """Return whether the trainer has begun to save. The orchestrator saves its half earlier, and again when it crashes, and no step
        waits for that."""
        return any(PurePosixPath(file.path).parts[0] == _TRAINER for file in files)

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        return (*of_spec(spec.health.log_rules), *RULES, *BUILT_IN)


def part_of(spec: RunSpec) -> PrimeRlSpec:
    """Return the part of the spec about prime-rl. Calling it for another kind of trainer is a bug."""
    assert spec.trainer.prime_rl is not None
    return spec.trainer.prime_rl


def honest_code(spec: RunSpec, *, code: int, step: int) -> int:
    """Return the exit code, except 1 for an exit code 0 before the last step, which is a masked crash. `step` is the newest completed
    step."""
    steps = spec.trainer.steps
    return 1 if code == 0 and spec.trainer.prime_rl is not None and steps is not None and step < steps else code


def log_files(spec: RunSpec) -> tuple[str, ...]:
    """Return the logs of the newest launch as paths inside the working tree, those with the most informative ends first; empty for other
    kinds."""
    return tuple(f"{part_of(spec).folder}/logs/latest/{name}" for name in LOGS) if spec.trainer.prime_rl is not None else ()


def last_lines(logs: Mapping[str, Iterable[str]], output: Iterable[str]) -> list[str]:
    """Return the lines for `classify`: the ends of `log_files`, given by path, followed by the launcher's own output."""
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
    """Return a shell expression that expands to `words` if the variable is set when the launcher starts."""
    return f"${{{variable}:+{words}}}"
