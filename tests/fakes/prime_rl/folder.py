"""The folder of a run: how the fake interprets names in it, what it refuses, and what it deletes."""

import json
import os
import shutil
from pathlib import Path

from tests.fakes.prime_rl.options import Options

NOT_A_RUN = {"configs", "rl.sbatch", "sft.sbatch"}


def steps(folder: Path) -> list[int]:
    """Return the steps as prime-rl reads them: whatever follows the last underscore of any name that begins
    with `step_`, complete or not.
    """
    return sorted(int(path.name.rpartition("_")[2]) for path in folder.glob("step_*"))


def open_run(options: Options) -> int:
    """Prepare the folder, and return the step to continue from, 0 for none. Raises FileExistsError,
    ValueError.
    """
    run = options.run_folder
    if options.resume_step is None:
        _refuse_or_clean(run, clean=options.clean)
    resume = _resume_step(options)
    for folder in (run / "rollouts", run / "broadcasts"):
        for step in steps(folder):
            if step > resume:
                shutil.rmtree(folder / f"step_{step}")
    (run / "configs").mkdir(parents=True, exist_ok=True)
    return resume


def write_configs(options: Options) -> None:
    """Write the resolved config of each part, as far as anybody here reads it. What an earlier launch wrote
    stays.
    """
    configs = options.run_folder / "configs"
    (configs / "trainer.json").write_text(json.dumps({"max_steps": options.max_steps}))
    (configs / "orchestrator.json").write_text(json.dumps({"model": {"client": options.client}}))
    if options.server is not None:
        server = {
            "server": {"port": options.server.port},
            "vllm": {"gpu_memory_utilization": options.server.share},
        }
        (configs / "inference.json").write_text(
            json.dumps(server | {"weight_broadcast": {"type": options.broadcast}})
        )


def open_logs(run: Path) -> Path:
    """Create a folder of logs for each launch; `latest` links to it."""
    logs = run / "logs"
    logs.mkdir(exist_ok=True)
    made = logs / f"attempt_{1 + len(list(logs.glob('attempt_*')))}"
    made.mkdir()
    link = logs / f".{made.name}"
    link.symlink_to(made.name)
    link.replace(logs / "latest")
    return made


def _refuse_or_clean(run: Path, *, clean: bool) -> None:
    if clean and not os.environ.get("NEVER_CLEAN") and run.exists():
        shutil.rmtree(run)
    if run.exists() and any(path.name not in NOT_A_RUN for path in run.iterdir()):
        raise FileExistsError(f"Run directory '{run}' already contains artifacts from a previous run.")


def _resume_step(options: Options) -> int:
    if options.resume_step != 0:
        return options.resume_step or 0
    found = steps(options.run_folder / "checkpoints")
    if not found:
        print(
            f"WARNING No checkpoints found in {options.run_folder}/checkpoints. Starting from scratch.",
            flush=True,
        )
    return found[-1] if found else 0
