"""The config of a run that a command starts: the user's own script, or a program of one of the libraries that
a kind of trainer knows.
"""

import json
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.trainers.conventions.command_settings import is_script
from prime_train.trainers.conventions.own_scripts import SCRIPT_BYTES_MAX, resume_arguments, scripts_of
from prime_train.trainers.registry import TRAINERS

NAME_CHARS_MAX = 32
SAVE_EVERY = 50
LINE_CHARS_MAX = 100


@dataclass(frozen=True)
class Own:
    """The user's choices for a run of a command. `kind` is one of `TEMPLATES`; `gpu` is a kind such as
    H100_80GB, or empty if no GPU is requested.
    """

    kind: str
    command: str
    steps: int
    usd: float
    gpu: str = ""
    gpus: int = 1
    name: str = ""


@dataclass(frozen=True)
class Template:
    """What the config of a kind of trainer says beyond what all configs say. `needs`: what must be true of
    the command or its script, or a run starts over where it should resume, a sentence each.
    """

    command: str
    """A command to begin with; {steps} is the last step, {every} the number of steps between two
    checkpoints.
    """
    needs: tuple[str, ...]
    saves: str = ""
    """Where the command says how often it saves, which `checkpoints.every_steps` repeats; empty if it does
    not count steps.
    """
    checkpoints: str = ""
    """Further lines of `checkpoints`."""
    setup: str = ""
    """What gets the library's own programs, for kinds whose command is one of them: `setup`, and what must
    then be there.
    """
    spot: str = "prefer"
    no_steps: str = ""
    """Why the config does not name the last step; empty: it does."""


_STEP_DIRECTORIES = """\
  folder: checkpoints       # where the script saves, relative to the working tree
  pattern: step_{step}      # the name of a checkpoint, a folder or a file: docs/checkpoints.md has a table
"""
_OWN_FORMAT = (
    'The script reports its step by printing a line of JSON, such as {"step": 10, "loss": 2.1}. If it '
    "appends such lines to a file instead, add: progress: {file: progress.jsonl}",
    "It must resume from the checkpoint that is restored in its folder. An empty resume says that it finds "
    "it by itself; if it does not, write the arguments of a resume, such as: resume: --resume {checkpoint}. "
    "{checkpoint} is its folder or file, {step} its number.",
)
_AREAL_SETUP = """\
setup:
  - test -d areal/.git || git clone -q https://github.com/areal-project/AReaL.git areal
  - git -C areal checkout -q --detach cbff54d645d
  - python3 -m pip install -q uv && cd areal && uv sync -q --extra cuda
"""
_TRM_SETUP = """\
setup:
  - test -d trm/.git || git clone -q https://github.com/SamsungSAILMontreal/TinyRecursiveModels.git trm
  - git -C trm checkout -q --detach e7b68717f0a
  - python3 -m pip install -q -r trm/requirements.txt
  - python3 -m pip install -q --no-cache-dir --no-build-isolation adam-atan2
  - >-
    cd trm && python3 -m dataset.build_arc_dataset --input-file-prefix kaggle/combined/arc-agi
    --output-dir ../data/arc2concept-aug-1000 --subsets training2 evaluation2 concept --test-set-name evaluation2

# Training begins only when the dataset is whole.
verification:
  - {path: "data/**/dataset.json", exactly: 2, size_min: 50}
  - {path: "data/arc2concept-aug-1000/*/*.npy", at_least: 10, size_min: 100}
"""
TEMPLATES: dict[str, Template] = {
    "command": Template("python train.py", _OWN_FORMAT, saves="the script", checkpoints=_STEP_DIRECTORIES),
    "torchrun": Template("train.py", _OWN_FORMAT, saves="the script", checkpoints=_STEP_DIRECTORIES),
    "hf": Template(
        "train.py --output_dir {checkpoints} --max_steps {steps} --save_steps {every} --save_total_limit 3",
        (
            "Save in the folder of checkpoints: {checkpoints} is its path.",
            "On a resume, --resume_from_checkpoint and the checkpoint's folder are appended (axolotl and "
            "LLaMA-Factory: what they call it). The Trainer does not read this argument itself: the script "
            "must call trainer.train(resume_from_checkpoint=args.resume_from_checkpoint).",
            "Save the optimizer, too: with save_only_model no checkpoint is complete. Keep the progress bar, "
            "from which the step is read.",
        ),
        saves="--save_steps",
    ),
    "lightning": Template(
        "train.py --out {checkpoints} --max_steps {steps} --save_every {every}",
        (
            "Save in the folder of checkpoints, with the step in the file's name: "
            "ModelCheckpoint(dirpath=args.out, every_n_train_steps=args.save_every).",
            "On a resume, --ckpt_path and the checkpoint's file are appended: call trainer.fit(model, "
            "ckpt_path=args.ckpt_path). "
            'ckpt_path="last" finds nothing on a new machine.',
            'Log with CSVLogger(".", flush_logs_every_n_steps=50), from whose file steps and loss are read.',
        ),
        saves="every_n_train_steps",
    ),
    "torchtitan": Template(
        "-m torchtitan.train --module llama3 --config llama3_8b --training.steps {steps} "
        "--checkpoint.interval {every} --checkpoint.keep_latest_k 3",
        (
            "Checkpoints are switched on, and their folder and --checkpoint.load_step are set at each "
            "launch: leave them out.",
            "torchtitan deletes old checkpoints while it trains; keep at least three, so that one can be "
            "uploaded meanwhile.",
        ),
        saves="--checkpoint.interval",
    ),
    "verl": Template(
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=data/train.parquet "
        "data.val_files=data/test.parquet actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct "
        "trainer.n_gpus_per_node=1 'trainer.logger=[console]' trainer.total_training_steps={steps} "
        "trainer.save_freq={every} trainer.max_actor_ckpt_to_keep=3",
        (
            "The folder of checkpoints and trainer.resume_mode are set at each launch: leave them out.",
            "Without trainer.save_freq verl saves nothing at all; what is saved must include the optimizer, "
            "as it does by default.",
            "Keep console among the loggers, from which the step is read.",
        ),
        saves="trainer.save_freq",
    ),
    "areal": Template(
        "cd areal && .venv/bin/python examples/math/gsm8k_rl.py --config examples/math/gsm8k_grpo.yaml "
        "scheduler.type=local total_train_steps={steps} recover.freq_steps={every} recover.freq_epochs=null "
        "recover.freq_secs=null actor.optimizer.lr_scheduler_type=constant",
        (
            "experiment_name, trial_name, cluster.fileroot, the folder of name_resolve and recover.mode are "
            "set at each launch: leave them out.",
            "AReaL overwrites its only state at each save, so each one is copied to a folder of its own: the "
            "disk needs room for three.",
            "It does not restore the schedule of the learning rate with FSDP; a constant one needs no "
            "restoring.",
        ),
        saves="recover.freq_steps",
        setup=_AREAL_SETUP,
    ),
    "trm": Template(
        "trm/pretrain.py arch=trm data_paths='[data/arc2concept-aug-1000]' arch.L_layers=2 arch.H_cycles=3 "
        "arch.L_cycles=4 ema=True",
        (
            "run_name, checkpoint_path and checkpoint_every_eval are set at each launch, and load_checkpoint "
            "on a resume: leave them out.",
            "The published code restores weights only: step, optimizer and schedule begin anew. So it is not "
            "for machines that may be taken away; to use them, patch it to save all of its state, and use "
            "kind torchrun.",
        ),
        setup=_TRM_SETUP,
        spot="never",
        no_steps="No last step: training ends with its epochs, and begins to count anew when it resumes.",
    ),
}
"""The kinds of trainers that a command starts."""

_OUTPUT_DIR = re.compile(r"(?:^|\s)--output[_-]dir(?:=|\s+)([\w./-]+)(?=\s|$)")
_TEXT = """\
# {title}
name: {name}

trainer:
  kind: {kind}
{needs}
  command: {command}
{workers}{resume}{steps}

checkpoints:
{checkpoints}  keep: 3  # so many of the newest stay in the bucket

# Run on each machine before the command:
{setup}
hardware:
{hardware}
budget:
  usd: {usd:g}
"""


def default_command(kind: str, steps: int) -> str:
    """Return a command to begin with."""
    words = {"{steps}": str(steps), "{every}": str(_every(steps))}
    return re.sub(r"\{(?:steps|every)\}", lambda found: words[found[0]], TEMPLATES[kind].command)


def checked_command(text: str) -> str:
    """Return the command without surrounding spaces. Raises UsageError if it is empty or not printable."""
    if not text.strip() or not text.isprintable():
        raise UsageError(
            f"{text[:60]!r} is not a command",
            fix="write it as you would in a shell, such as python train.py --lr 1e-4",
        )
    return text.strip()


def checked_kind(text: str) -> str:
    """Return the kind of trainer that the text names. Raises UsageError if it is not a known one."""
    kind = text.strip().lower().replace("-", "_")
    if kind not in TRAINERS:
        raise UsageError(f"{text[:60]!r} is not a known trainer", fix=f"write one of {', '.join(TRAINERS)}")
    return kind


def name_of(own: Own) -> str:
    """Return the given name, or one made from the script's file name; from the current folder's name if the
    script has a generic name such as train.py, or no script is named.
    """
    if own.name:
        return own.name
    script = next((word for word in own.command.split() if word.endswith((".py", ".sh"))), "")
    stem = Path(script).stem
    if stem not in ("", "train", "main", "run"):
        return _plain(stem, NAME_CHARS_MAX) or "train"
    end = stem or "train"
    return f"{_plain(Path.cwd().name, NAME_CHARS_MAX - len(end) - 1)}-{end}".strip("-")


def name_of_file(path: Path) -> str:
    """Return the name of a run whose config is written to this file; "" if its name has no letter or digit."""
    return _plain(path.stem, NAME_CHARS_MAX)


def _plain(text: str, chars_max: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:chars_max].strip("-")


def config(own: Own) -> str:
    """Return the YAML config; the run is launched from the folder that the script's path is relative to."""
    template = TEMPLATES[own.kind]
    return _TEXT.format(
        title=f"{own.command[:80]}, run in the folder that it is launched from",
        name=name_of(own),
        kind=own.kind,
        needs="\n".join(line for sentence in template.needs for line in _comment(sentence)),
        command=json.dumps(own.command, ensure_ascii=False),
        workers=_workers(own),
        resume=_resume(own),
        steps=f"  # {template.no_steps}"
        if template.no_steps
        else f"  steps: {own.steps}  # the last step; reaching it means success",
        checkpoints=_checkpoints(own, template),
        setup=_setup(own, template),
        hardware=_hardware(own, template),
        usd=own.usd,
    )


def _comment(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence, LINE_CHARS_MAX, initial_indent="  # ", subsequent_indent="  #   ", break_long_words=False
    )


def _workers(own: Own) -> str:
    """Return the line with the number of processes, for a command that the kind starts in them."""
    if not TRAINERS[own.kind].starts_workers or not (own.kind == "torchrun" or is_script(own.command)):
        return ""
    return f"  workers: {own.gpus}  # processes, one per GPU\n"


def _resume(own: Own) -> str:
    """Return the line with the arguments of a resume, as the script's text shows them, for kinds that do not
    know them.
    """
    if TRAINERS[own.kind].layout is not None:
        return ""
    found = next(filter(None, map(resume_arguments, map(_text, scripts_of(own.command)))), "")
    return f"  resume: {json.dumps(found)}  # appended when a checkpoint was restored\n"


def _text(script: str) -> str:
    try:
        with Path(script).open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _checkpoints(own: Own, template: Template) -> str:
    folders = _OUTPUT_DIR.findall(own.command) if own.kind == "hf" else []
    folder = f"  folder: {json.dumps(folders[-1])}  # as --output_dir\n" if folders else ""
    every = f"  every_steps: {_every(own.steps)}  # as {template.saves} says\n" if template.saves else ""
    return folder + template.checkpoints + every


def _setup(own: Own, template: Template) -> str:
    """Return what the kind's own command needs on a machine, or an example."""
    if not template.setup or own.command != default_command(own.kind, own.steps):
        return "# setup: [pip install -r requirements.txt]\n"
    return template.setup


def _every(steps: int) -> int:
    return min(SAVE_EVERY, steps)


def _hardware(own: Own, template: Template) -> str:
    spot = f"  spot: {template.spot}\n"
    if not own.gpu:
        return f"{spot}  disk_gib: 20  # to rent a machine, write gpus: [H100_80GB] and count: 1\n"
    return f"  gpus: [{own.gpu}]\n  count: {own.gpus}\n{spot}  disk_gib: 100\n"
