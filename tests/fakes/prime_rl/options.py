"""Its arguments: `@ file.toml`, then `--a.b value` and bare `--a.b`; what it does not know it refuses."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REMOVED = ("wandb", "ckpt.resume-step", "ckpt.keep", "ckpt.weights", "max-async-level", "executor-backend", "orchestrator.env")
"""Settings of older versions."""


class Refused(Exception):
    """The configuration is wrong; it says why in its own words."""


@dataclass(frozen=True)
class Options:
    """`resume_step` is None without --resume, and 0 for a bare one, which takes the newest there is."""

    run_folder: Path
    max_steps: int
    interval: int | None
    keep_last: int | None
    resume_step: int | None
    clean: bool
    heartbeats: dict[str, str]
    broadcast: str


def read(arguments: Sequence[str]) -> Options:
    said = dict(_said(list(arguments)))
    for name in said:
        if any(name == removed or name.startswith(f"{removed}.") for removed in REMOVED):
            raise Refused(f"1 validation error for RLConfig\n{name}\n  Extra inputs are not permitted [type=extra_forbidden]")
    name = str(said.get("run.name", "reverse-text--qwen3--0a1b2c3d"))
    resumes = "resume" in said or "resume.step" in said
    if resumes and "resume.step" in said and int(said["resume.step"]) < 1:
        raise Refused("1 validation error for RLConfig\nresume.step\n  Input should be greater than or equal to 1")
    return Options(
        run_folder=Path(str(said.get("output-dir", "outputs"))) / str(said.get("run.dir", name)),
        max_steps=int(said.get("max-steps", 20)),
        interval=int(said["ckpt.interval"]) if "ckpt.interval" in said else None,
        keep_last=int(said["ckpt.keep-last"]) if "ckpt.keep-last" in said else None,
        resume_step=int(said.get("resume.step", 0)) if resumes else None,
        clean="clean" in said,
        heartbeats={side: str(said[f"{side}.heartbeat.url"]) for side in ("trainer", "orchestrator") if f"{side}.heartbeat.url" in said},
        broadcast=str(said.get("weight-broadcast.type", "nccl")),
    )


def _said(arguments: list[str]) -> Iterator[tuple[str, Any]]:
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
