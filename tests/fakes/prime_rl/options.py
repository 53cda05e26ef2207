"""The arguments: `@ file.toml`, then `--a.b value` and bare `--a.b`; unknown ones are refused."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REMOVED = ("wandb", "ckpt.resume-step", "ckpt.keep", "ckpt.weights", "max-async-level", "executor-backend", "orchestrator.env")
"""Settings of older versions."""


class Refused(Exception):
    """The configuration is invalid; the text gives the reason in prime-rl's words."""


@dataclass(frozen=True)
class Options:
    """The options. `resume_step` is None without --resume, and 0 for a bare one, which resumes the newest step."""

    run_folder: Path
    max_steps: int
    interval: int | None
    keep_last: int | None
    resume_step: int | None
    clean: bool
    heartbeats: dict[str, str]
    broadcast: str


def read(arguments: Sequence[str]) -> Options:
    message = dict(_message(list(arguments)))
    for name in message:
        if any(name == removed or name.startswith(f"{removed}.") for removed in REMOVED):
            raise Refused(f"1 validation error for RLConfig\n{name}\n  Extra inputs are not permitted [type=extra_forbidden]")
    name = str(message.get("run.name", "reverse-text--qwen3--0a1b2c3d"))
    resumes = "resume" in message or "resume.step" in message
    if resumes and "resume.step" in message and int(message["resume.step"]) < 1:
        raise Refused("1 validation error for RLConfig\nresume.step\n  Input should be greater than or equal to 1")
    return Options(
        run_folder=Path(str(message.get("output-dir", "outputs"))) / str(message.get("run.dir", name)),
        max_steps=int(message.get("max-steps", 20)),
        interval=int(message["ckpt.interval"]) if "ckpt.interval" in message else None,
        keep_last=int(message["ckpt.keep-last"]) if "ckpt.keep-last" in message else None,
        resume_step=int(message.get("resume.step", 0)) if resumes else None,
        clean="clean" in message,
        heartbeats={
            side: str(message[f"{side}.heartbeat.url"]) for side in ("trainer", "orchestrator") if f"{side}.heartbeat.url" in message
        },
        broadcast=str(message.get("weight-broadcast.type", "nccl")),
    )


def _message(arguments: list[str]) -> Iterator[tuple[str, Any]]:
    while arguments:
        word = arguments.pop(0)
        if word == "@":
            yield from _flat(tomllib.loads(Path(arguments.pop(0)).read_text()))
        elif word.startswith("--"):
            bare = not arguments or arguments[0].startswith(("--", "@"))
            yield word.removeprefix("--").replace("_", "-"), "" if bare else arguments.pop(0)
        else:
            raise Refused(f"Unrecognized arguments: {word}")


def _flat(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = f"{before}{key.replace('_', '-')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value
