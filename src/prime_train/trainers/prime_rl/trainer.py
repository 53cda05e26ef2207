"""Trainer `prime_rl`: prime-rl's own launcher, which starts a trainer, an orchestrator and an inference
server.

prime-rl's own choice of what to resume is not safe. When asked to resume, it takes the folder with the
highest step, although its orchestrator saves before its trainer does and again when it crashes; with nothing
to resume it silently starts over. So the step is always named, and everything else that looks like a
checkpoint is moved away first (`prime_rl/stale_outputs.py`). Exit code 0 may be a crash whose clean-up took
too long, so only the step proves success (`exit_code`).
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from prime_train.spec.causes import Cause
from prime_train.spec.spec import PrimeRlSpec, RunSpec
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.component_heartbeats import ComponentHeartbeats
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import found_in
from prime_train.trainers.prime_rl import one_gpu
from prime_train.trainers.prime_rl.conventions import SHIPPED, log_folder, server_log, shares_gpu
from prime_train.trainers.prime_rl.install import HOME, UV, install
from prime_train.trainers.prime_rl.layout import layout
from prime_train.trainers.prime_rl.profile.metric_keys import thinned
from prime_train.trainers.prime_rl.profile.profile import Profile, profile
from prime_train.trainers.prime_rl.progress import PrimeRlReader
from prime_train.trainers.prime_rl.stale_outputs import broadcasts_to_remove, is_opened, to_move_aside
from prime_train.trainers.progress import LineReader
from prime_train.trainers.services import Service, ServiceSurroundings
from prime_train.trainers.stale_outputs import Disposable, StaleOutputs

# Log rules for prime-rl, which precede the built-in table for PyTorch, vLLM and the Hugging Face hub.
#
# prime-rl's launcher exits with code 1 after every failure, so only these lines show the cause.
INFERENCE_LOG = "inference.log"

_OUT_OF_MEMORY = r"OutOfMemoryError|CUDA out of memory|CUDA error: out of memory"


def marked(log: str, line: str) -> str:
    """Return the line, prefixed with its log's name if that decides the cause: out of memory on the inference
    server's GPUs is a separate cause.
    """
    return f"{log}: {line}" if log == INFERENCE_LOG and found_in(_OUT_OF_MEMORY, line) else line


def _rows(
    cause: Cause, *patterns: str, strength: EvidenceStrength = EvidenceStrength.ROOT
) -> Iterable[LogRule]:
    return (LogRule(pattern, cause, strength=strength) for pattern in patterns)


RULES: tuple[LogRule, ...] = (
    # Stop at once: a trainer that starts over would save its first steps over the good checkpoints.
    LogRule(
        r"No checkpoints found in .*Starting from scratch", Cause.RESUME_IGNORED, stop=True, resumed_only=True
    ),
    *_rows(
        Cause.BAD_CHECKPOINT,
        r"FileNotFoundError: (Orchestrator c|C)heckpoint not found at ",
        # The error raised for a folder name such as step_10.tmp.
        r"ValueError: invalid literal for int\(\) with base 10: '\d*\.[A-Za-z]\w*'",
    ),
    *_rows(
        Cause.BAD_CONFIG,
        r"\bextra_forbidden\b|Extra inputs are not permitted",
        r"\bConfigFileError\b|^\W*Unrecognized arguments",
        r"Shared config conflicts|conflicts with (the )?run directory|Must use SLURM",
        r"env_vars cannot set launcher-managed vars",
        r"exceeds vLLM maximum of \d+",
        r"Requested \d+ GPUs via deployment settings, but only",
        r"FileExistsError: (Run|Checkpoint) directory '[^']*' already contains",
        r"ModuleNotFoundError: (taskset|harness) '[^']*' not found",
    ),
    *_rows(
        Cause.INFERENCE_OOM,
        r"^inference\.log: .*(OutOfMemoryError|out of memory)",
        r"\(EngineCore\S* pid=\d+\).*OutOfMemoryError",
        r"CUDA out of memory occurred when warming up sampler",
        r"No available memory for the cache blocks",
        r"KV cache is needed, which is larger than the available KV cache memory",
        r"Free memory on device .* on startup is less than desired GPU memory utilization",
    ),
    *_rows(
        Cause.INFERENCE_FAILED,
        r"Inference server is not ready after \d+ \(>\d+\) seconds",
        r"\bengine_unresponsive\b",
        r"Model \S+ was not found in the inference pool",
    ),
    *_rows(
        Cause.INFERENCE_FAILED,
        r"EngineDeadError: EngineCore encountered an issue|Engine core proc \S+ died unexpectedly",
        r"Error: Inference failed with exit code -?\d+",
        strength=EvidenceStrength.CONSEQUENCE,
    ),
    *_rows(
        Cause.WEIGHT_BROADCAST,
        r"(?i)\b(failed|error|timed out|unable)\b.*\b(initiali[sz]\w+|init) (the )?NCCL broadcast",
        r"/init_broadcaster\b.*\b(50\d|[Tt]imed? ?out|[Ff]ailed)",
        r"No consumer acknowledged .*version|NCCL_READY.*(timed out|never appeared)",
    ),
    # Traceback frames that an exception passed through: another process may have failed first.
    *_rows(
        Cause.WEIGHT_BROADCAST,
        r"transports/weights/nccl\.py\", line \d+|, in (init_broadcaster|initialize_nccl|"
        r"init_nccl_broadcast)$",
        strength=EvidenceStrength.HINT,
    ),
    *_rows(Cause.EMPTY_BATCHES, r"\b\d+ consecutive empty batches"),
    LogRule(r"^\s*assert len\(training_batch\.examples\) != 0", Cause.EMPTY_BATCHES, in_code=True),
    *_rows(
        Cause.ACCESS_DENIED,
        r"(Cannot access|trying to access a) gated repo",
        r"Invalid user token|Invalid username or password",
        r"wandb: ERROR .*(API key|[Pp]ermission denied|not logged in)|wandb\.errors\S*: .*(API key|not "
        r"logged in|PERMISSION_ERROR)",
        r"wandb\.errors\S*UsageError|api_key not configured",
    ),
)


PORT = "PRIME_TRAIN_HEARTBEAT_PORT"
"""Variable with the loopback port that receives prime-rl's heartbeats; if unset, prime-rl is not configured
to send any.
"""

COMPONENTS = ("trainer", "orchestrator")
LIVENESS = ("/liveness", "/health")
"""Paths of the inference engine's health probe, which queries its workers first; older versions have only the
second one.
"""
BROADCASTS = "broadcasts"
"""Folder of the broadcast weights."""

BROADCAST = "PRIME_TRAIN_WEIGHT_BROADCAST"
"""Variable with the method of broadcasting weights; if unset, the configuration decides."""

LOGS = ("trainer.log", INFERENCE_LOG, "orchestrator.log")
"""Log files to read. The launcher prints only its own lines and the orchestrator's, so what ended the trainer
is only in these files.
"""

_SHARD = ".distcp"
_TRAINER = "trainer"


class PrimeRlTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        part, run = part_of(spec), PurePosixPath(checkpoints).parent
        words = ["rl", "@", shlex.quote(part.config), *(shlex.quote(word) for word in part.overrides)]
        words += _ours(spec, output=str(run.parent))
        words += [
            _if_set(PORT, f"--{side}.heartbeat.url http://127.0.0.1:${PORT}/hb/{side}") for side in COMPONENTS
        ]
        is_shared = shares_gpu(spec.hardware)
        words += [] if is_shared else [_if_set(BROADCAST, f"--weight-broadcast.type ${BROADCAST}")]
        words += [] if resume_step is None else ["--resume.step", str(resume_step)]
        tool = " ".join((*UV, "run", "--no-sync", "--project", HOME))
        if is_shared:
            return one_gpu.script(
                tool,
                words,
                run=str(run),
                log=str(run.parent / PurePosixPath(server_log(part)).relative_to(part.output)),
            )
        # exec, because a shell that waited for the launcher would be terminated first and lose its exit code.
        return " ".join(("exec", tool, *words))

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        # Both names of the tracker's run ID: versions before 0.8.1 read the older one. NEVER_CLEAN stops
        # every argument from deleting checkpoints.
        tracked = {"PRL_RUN_ID": run_id, "WANDB_SHARED_RUN_ID": run_id}
        own = {
            "OMP_NUM_THREADS": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "NEVER_CLEAN": "1",
            "NEVER_CLEAN_OUTPUT_DIR": "1",
        }
        return own | tracked | super().environment(spec, attempt=attempt, run_id=run_id, link=link)

    def reader(self, spec: RunSpec) -> LineReader:
        return PrimeRlReader()

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        """Return whether the halves of trainer and orchestrator both exist, the trainer's with shards.

        Whether each shard is as long as `.metadata` requires is checked by `dcp.shard_sizes`, which needs the
        files themselves.
        """
        paths = [PurePosixPath(file.path) for file in files]
        trained = any(path.suffix == _SHARD and path.parent.name == _TRAINER for path in paths)
        return trained and PurePosixPath(SHIPPED) in paths and super().is_complete(spec, files, now_s)

    def is_begun(self, spec: RunSpec, files: Sequence[FileInfo]) -> bool:
        """Return whether the trainer has begun to save. The orchestrator saves its half earlier, and again
        when it crashes, and no step waits for that.
        """
        return any(PurePosixPath(file.path).parts[0] == _TRAINER for file in files)

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)

    def setup(self, spec: RunSpec) -> tuple[str, ...]:
        return install(part_of(spec))

    def python(self, spec: RunSpec) -> str:
        return f"{HOME}/.venv/bin/python"

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs:
        return StaleOutputs(part_of(spec).folder, to_move_aside, is_opened)

    def launch_environment(self, spec: RunSpec, *, last_cause: Cause | None) -> dict[str, str]:
        """Return the variable that makes prime-rl broadcast weights over the file system, which is slower,
        after an attempt that could not broadcast them over NCCL.
        """
        return {BROADCAST: "filesystem"} if last_cause is Cause.WEIGHT_BROADCAST else {}

    def services(self, spec: RunSpec, machine: ServiceSurroundings) -> tuple[Service, ...]:
        part = part_of(spec)
        visible = machine.environment.get("CUDA_VISIBLE_DEVICES")
        found = layout(machine.read(part.config), part.overrides, count=spec.hardware.count, visible=visible)
        if not found.gpus and not found.ports:
            return ()
        idle_s = spec.health.inference_idle_s
        return (
            Service(
                "the inference server", Cause.INFERENCE_FAILED, idle_s, found.gpus, found.ports, LIVENESS
            ),
        )

    def heartbeats(self, spec: RunSpec) -> ComponentHeartbeats:
        return ComponentHeartbeats(PORT, COMPONENTS)

    def disposable(self, spec: RunSpec) -> Disposable:
        return Disposable(f"{part_of(spec).folder}/{BROADCASTS}", broadcasts_to_remove)

    def exit_code(self, spec: RunSpec, *, code: int, step: int) -> int:
        """Return the exit code, except 1 for an exit code 0 before the last step, which hides a crash."""
        steps = spec.trainer.steps
        return 1 if code == 0 and steps is not None and step < steps else code

    def log_files(self, spec: RunSpec) -> tuple[str, ...]:
        part = part_of(spec)
        return tuple(
            server_log(part)
            if name == INFERENCE_LOG and shares_gpu(spec.hardware)
            else f"{log_folder(part)}/{name}"
            for name in LOGS
        )

    def last_lines(
        self, spec: RunSpec, logs: Mapping[str, Iterable[str]], output: Iterable[str]
    ) -> list[str]:
        lines = [marked(PurePosixPath(path).name, line) for path, found in logs.items() for line in found]
        return [*lines, *output]

    def kept_row(self, spec: RunSpec, line: str) -> str:
        return thinned(line)

    def profile(self, lines: Iterable[str], *, steps: int) -> Profile:
        return profile(lines, steps=steps)

    def shown_command(self, spec: RunSpec) -> str:
        part = part_of(spec)
        beside = "; inference runs beside it on the same GPU" if shares_gpu(spec.hardware) else ""
        return f"{shlex.join(['rl', '@', part.config, *part.overrides])}, prime-rl at {part.ref}{beside}"

    def config_file(self, spec: RunSpec) -> str:
        return part_of(spec).config

    def commit(self, spec: RunSpec) -> str:
        return part_of(spec).ref

    def output_folders(self, spec: RunSpec) -> tuple[str, ...]:
        return (spec.checkpoints.folder, part_of(spec).folder)


def part_of(spec: RunSpec) -> PrimeRlSpec:
    """Return the part of the spec about prime-rl. Calling it for another kind of trainer is a bug."""
    assert spec.trainer.prime_rl is not None
    return spec.trainer.prime_rl


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
