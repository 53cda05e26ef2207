"""The arguments: `@ file.toml`, then `--a.b value` and bare `--a.b`; unknown ones are refused."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REMOVED = (
    "wandb",
    "ckpt.resume-step",
    "ckpt.keep",
    "ckpt.weights",
    "max-async-level",
    "executor-backend",
    "orchestrator.env",
)
"""Settings of older versions."""


class Refused(Exception):
    """The configuration is invalid; the text gives the reason in prime-rl's words."""


@dataclass(frozen=True)
class Server:
    """The inference server: the port of its router, and the share of its GPU. The engine's port is 100
    above.
    """

    port: int
    share: float

    @property
    def engine(self) -> int:
        return self.port + 100


@dataclass(frozen=True)
class Options:
    """The options. `resume_step` is None without --resume, and 0 for a bare one, which resumes the newest
    step.
    """

    run_folder: Path
    max_steps: int
    interval: int | None
    keep_last: int | None
    resume_step: int | None
    clean: bool
    heartbeats: dict[str, str]
    broadcast: str
    server: "Server | None"
    """The server that the launcher starts."""
    client: dict[str, Any]
    """The orchestrator's addresses, as its resolved config has them."""
    dry_run: bool
    gpus: int
    """GPUs that the parts are given together."""


def read(arguments: Sequence[str]) -> Options:
    message = dict(_message(list(arguments)))
    has_server = any(name.split(".")[0] == "inference" for name in message) and "no-inference" not in message
    server = Server(
        int(message.get("inference.server.port", 8000)),
        float(message.get("inference.vllm.gpu-memory-utilization", 0.9)),
    )
    admin = message.get(
        "orchestrator.model.client.admin-base-url",
        f"http://localhost:{server.engine}/v1" if has_server else "",
    )
    gpus = int(message.get("deployment.num-train-gpus", 1)), int(message.get("deployment.num-infer-gpus", 1))
    if sum(gpus) > int(message.get("deployment.gpus-per-node", 8)):
        raise Refused(
            "1 validation error for RLConfig\ndeployment.single_node\n  Value error, Total GPU count "
            f"({sum(gpus)}) exceeds gpus_per_node"
        )
    for name in message:
        if any(name == removed or name.startswith(f"{removed}.") for removed in REMOVED):
            raise Refused(
                f"1 validation error for RLConfig\n{name}\n  Extra inputs are not permitted "
                "[type=extra_forbidden]"
            )
    name = str(message.get("run.name", "reverse-text--qwen3--0a1b2c3d"))
    resumes = "resume" in message or "resume.step" in message
    if resumes and "resume.step" in message and int(message["resume.step"]) < 1:
        raise Refused(
            "1 validation error for RLConfig\nresume.step\n  Input should be greater than or equal to 1"
        )
    return Options(
        run_folder=Path(str(message.get("output-dir", "outputs"))) / str(message.get("run.dir", name)),
        max_steps=int(message.get("max-steps", 20)),
        interval=int(message["ckpt.interval"]) if "ckpt.interval" in message else None,
        keep_last=int(message["ckpt.keep-last"]) if "ckpt.keep-last" in message else None,
        resume_step=int(message.get("resume.step", 0)) if resumes else None,
        clean="clean" in message,
        heartbeats={
            side: str(message[f"{side}.heartbeat.url"])
            for side in ("trainer", "orchestrator")
            if f"{side}.heartbeat.url" in message
        },
        broadcast=str(
            message.get("weight-broadcast.type", "filesystem" if "no-inference" in message else "nccl")
        ),
        server=server if has_server else None,
        client={
            "base_url": message.get(
                "orchestrator.model.client.base-url", f"http://localhost:{server.port}/v1"
            ),
            "admin_base_url": [admin] if admin else None,
        },
        dry_run="dry-run" in message,
        gpus=gpus[0] + (gpus[1] if has_server else 0),
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
