"""The config of a run whose trainer is the user's own script."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from prime_train.core.errors import UsageError

NAME_CHARS_MAX = 32
SAVE_EVERY = 50


class ScriptKind(StrEnum):
    """The kind of training program: prime-rl, or a script started directly, with torchrun, or with a Hugging Face Trainer."""

    PRIME_RL = "prime_rl"
    COMMAND = "command"
    TORCHRUN = "torchrun"
    HF = "hf"


@dataclass(frozen=True)
class Own:
    """The user's choices for a run with a script. `gpu` is a kind such as H100_80GB, or empty if no GPU is requested."""

    kind: ScriptKind
    command: str
    steps: int
    usd: float
    gpu: str = ""
    gpus: int = 1
    name: str = ""


DEFAULT_COMMANDS = {
    ScriptKind.COMMAND: "python train.py",
    ScriptKind.TORCHRUN: "train.py",
    ScriptKind.HF: f"python train.py --output_dir output --save_strategy steps --save_steps {SAVE_EVERY}",
}

_RESUMES = {
    ScriptKind.COMMAND: ("--resume-step {step}", "appended when a checkpoint was restored; {checkpoint} is its folder"),
    ScriptKind.TORCHRUN: ("--resume-step {step}", "appended when a checkpoint was restored; {checkpoint} is its folder"),
    ScriptKind.HF: ("--resume_from_checkpoint {checkpoint}", "the script must pass it to trainer.train(resume_from_checkpoint=...)"),
}
_CHECKPOINTS = {
    ScriptKind.COMMAND: """\
  folder: checkpoints       # where the script saves, relative to the working tree
  pattern: step_{step}      # one folder per checkpoint; {step} is its step number""",
    ScriptKind.HF: """\
  folder: {folder}  # as --output_dir
  pattern: checkpoint-{step}
  marker: trainer_state.json""",
}
_OUTPUT_DIR = re.compile(r"(?:^|\s)--output[_-]dir(?:=|\s+)([\w./-]+)(?=\s|$)")
_CHECKPOINTS[ScriptKind.TORCHRUN] = _CHECKPOINTS[ScriptKind.COMMAND]
_TEXT = """\
# {title}
name: {name}

trainer:
  kind: {kind}
  command: {command}{workers}
  steps: {steps}  # the last step; reaching it means success
  resume: {resume}  # {resumed}
  # The script reports its step by printing a line of JSON, such as {{"step": 10, "loss": 2.1}}, or by appending it to a file:
  # progress: {{file: progress.jsonl}}

checkpoints:
{checkpoints}
  every_steps: {every}
  keep: 3

# Run on each machine before the script:
# setup: [pip install -r requirements.txt]

hardware:
{hardware}
budget:
  usd: {usd:g}
"""


def checked_command(text: str) -> str:
    """Return the command without surrounding spaces. Raises UsageError if it is empty or not printable."""
    if not text.strip() or not text.isprintable():
        raise UsageError(f"{text[:60]!r} is not a command", fix="write it as you would in a shell, such as python train.py --lr 1e-4")
    return text.strip()


def checked_kind(text: str) -> ScriptKind:
    """Return the kind of trainer that the text names. Raises UsageError if it is not a known one."""
    try:
        return ScriptKind(text.strip().lower().replace("-", "_"))
    except ValueError:
        raise UsageError(f"{text[:60]!r} is not a known trainer", fix=f"write one of {', '.join(ScriptKind)}") from None


def name_of(own: Own) -> str:
    """Return the given name, or one made from the script's file name; from the current folder's name if the script has a generic name such
    as train.py, or no script is named."""
    if own.name:
        return own.name
    script = next((word for word in own.command.split() if word.endswith((".py", ".sh"))), "")
    stem = Path(script).stem
    if stem not in ("", "train", "main", "run"):
        return _plain(stem, NAME_CHARS_MAX) or "train"
    end = stem or "train"
    return f"{_plain(Path.cwd().name, NAME_CHARS_MAX - len(end) - 1)}-{end}".strip("-")


def _plain(text: str, chars_max: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:chars_max].strip("-")


def config(own: Own) -> str:
    """Return the YAML config; the run is launched from the folder that the script's path is relative to."""
    resume, resumed = _RESUMES[own.kind]
    workers = f"\n  workers: {own.gpus}  # processes, one per GPU" if own.kind is ScriptKind.TORCHRUN else ""
    return _TEXT.format(
        title=f"{own.command[:80]}, run in the folder that it is launched from",
        name=name_of(own),
        kind="torchrun" if own.kind is ScriptKind.TORCHRUN else "command",
        command=json.dumps(own.command, ensure_ascii=False),
        workers=workers,
        steps=own.steps,
        resume=json.dumps(resume),
        resumed=resumed,
        checkpoints=_CHECKPOINTS[own.kind].replace("{folder}", _output(own.command)),
        every=min(SAVE_EVERY, own.steps),
        hardware=_hardware(own),
        usd=own.usd,
    )


def _output(command: str) -> str:
    """Return the output folder from the command's --output_dir as a YAML value. A Hugging Face Trainer has no reliable default of its
    own."""
    folders = _OUTPUT_DIR.findall(command)
    return json.dumps(folders[-1]) if folders else "output"


def _hardware(own: Own) -> str:
    if not own.gpu:
        return "  disk_gib: 20  # to rent a machine, write gpus: [H100_80GB] and count: 1\n"
    return f"  gpus: [{own.gpu}]\n  count: {own.gpus}\n  spot: prefer\n  disk_gib: 100\n"
