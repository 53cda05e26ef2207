"""The compared tools: how each is called to copy one folder up and down, and how it is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.buckets import BUCKET, keys_for, url_of
from tests.fakes.s3_servers import S3Server

ROOT = Path(__file__).parents[3]
VENV = ROOT / "build" / "bench-venv"
PINNED = ROOT / "requirements" / "bench.txt"
INSTALL_S_MAX = 600
PEERS_PREFIX = "peer/"
OURS = "prime-train"

Command = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Tool:
    """A compared tool. `up` gets the folder that holds `tree/checkpoints/step_1`, `down` a folder that does
    not exist yet.
    """

    name: str
    up: Command
    down: Command
    env: Mapping[str, str]


def install_peers() -> None:
    """Install the tools into an environment of their own, because their requirements are not prime-train's.
    If it is up to date, nothing happens.
    """
    stamp = VENV / ".installed"
    if stamp.exists() and stamp.read_bytes() == PINNED.read_bytes():
        return
    pip = [
        str(VENV / "bin" / "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "-r",
        str(PINNED),
    ]
    for command in ([sys.executable, "-m", "venv", "--clear", str(VENV)], pip):
        subprocess.run(command, check=True, timeout=INSTALL_S_MAX)
    stamp.write_bytes(PINNED.read_bytes())


def source(disk: Path) -> Path:
    return disk / "tree" / "checkpoints" / "step_1"


def _env(server: S3Server, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **keys_for(server),
        "AWS_REGION": server.region,
        "BENCH_ENDPOINT": server.url,
    }


def _ours(server: S3Server, home: Path) -> Tool:
    command = [sys.executable, "-m", "tests.benchmarks.transfer.transfer_ours"]
    return Tool(
        OURS,
        lambda disk: [*command, "up", str(disk)],
        lambda into: [*command, "down", str(into)],
        _env(server, home) | {"PYTHONPATH": str(ROOT), "BENCH_BUCKET": url_of(server)},
    )


def _s5cmd(server: S3Server, home: Path) -> Tool:
    command = [str(VENV / "bin" / "s5cmd"), "--log", "error", "--endpoint-url", server.url, "cp"]
    return Tool(
        "s5cmd",
        lambda disk: [*command, f"{source(disk)}/", f"s3://{BUCKET}/{PEERS_PREFIX}"],
        lambda into: [*command, f"s3://{BUCKET}/{PEERS_PREFIX}*", f"{into}/"],
        _env(server, home),
    )


def _aws_cli(server: S3Server, home: Path) -> Tool:
    command = [
        str(VENV / "bin" / "aws"),
        "s3",
        "cp",
        "--recursive",
        "--only-show-errors",
        "--endpoint-url",
        server.url,
    ]
    return Tool(
        "aws-cli",
        lambda disk: [*command, str(source(disk)), f"s3://{BUCKET}/{PEERS_PREFIX}"],
        lambda into: [*command, f"s3://{BUCKET}/{PEERS_PREFIX}", str(into)],
        _env(server, home),
    )


def _boto3(server: S3Server, home: Path) -> Tool:
    command = [str(VENV / "bin" / "python"), str(Path(__file__).with_name("transfer_boto3.py"))]
    return Tool(
        "boto3 defaults",
        lambda disk: [*command, "up", BUCKET, PEERS_PREFIX, str(source(disk))],
        lambda into: [*command, "down", BUCKET, PEERS_PREFIX, str(into)],
        _env(server, home),
    )


def _rclone(server: S3Server, home: Path) -> Tool:
    config, env = home / "rclone.conf", _env(server, home)
    config.write_text(f"[bench]\ntype = s3\nprovider = Minio\nenv_auth = true\nendpoint = {server.url}\n")
    command = [
        "rclone",
        "--config",
        str(config),
        "--ca-cert",
        env["AWS_CA_BUNDLE"],
        "--s3-no-check-bucket",
        "copy",
    ]
    remote = f"bench:{BUCKET}/{PEERS_PREFIX.rstrip('/')}"
    return Tool(
        "rclone",
        lambda disk: [*command, str(source(disk)), remote],
        lambda into: [*command, remote, str(into)],
        # Its own way to trust an authority and AWS's exclude each other.
        {name: value for name, value in env.items() if name != "AWS_CA_BUNDLE"},
    )


TOOLS: Mapping[str, Callable[[S3Server, Path], Tool]] = {
    OURS: _ours,
    "s5cmd": _s5cmd,
    "aws-cli": _aws_cli,
    "boto3 defaults": _boto3,
    "rclone": _rclone,
}
"""Functions that make a tool for a server and for an empty folder that the tool may use as its home."""


def present() -> list[str]:
    """Return the names of the tools that are installed; rclone has to be installed by the user."""
    return [name for name in TOOLS if name != "rclone" or shutil.which("rclone")]
