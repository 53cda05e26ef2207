"""Options that select a stack, and the local record of deployed stacks."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Stack

StackName = Annotated[str, typer.Option("--stack", help="Name of the stack.")]
Region = Annotated[str, typer.Option("--region", help="Region of AWS; otherwise what AWS's tools would take.", show_default=False)]
STACK = "prime-train"


def account(region: str) -> "Account":
    from prime_train.adapters.aws_deploy import Account

    return Account(os.environ, region)


def stack(of: "Account", name: str) -> "Stack":
    from prime_train.adapters.aws_deploy import Stack

    if not (name.isascii() and name.replace("-", "").isalnum() and name[0].isalpha() and len(name) <= 56):
        raise UsageError(
            f"--stack {name!r} is no name for a stack", fix="letters, digits and hyphens, a letter first, 56 characters at most"
        )
    return Stack(of.client("cloudformation"), name)


def options(name: str, region: str) -> str:
    """Return the options with which another command refers to this stack, with a leading space; empty if the defaults do. `region`: as the
    user gave it."""
    return (f" --stack {name}" if name != STACK else "") + (f" --region {region}" if region else "")


def remember(name: str, region: str, outputs: dict[str, str]) -> Path:
    """Save the stack's region and outputs, none of which is secret, and return the file's path."""
    path = _remembered(name)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    draft.write_text(json.dumps({"stack": name, "region": region, **outputs}, indent=2) + "\n")
    draft.replace(path)
    return path


def forget(name: str) -> None:
    _remembered(name).unlink(missing_ok=True)


def _remembered(name: str) -> Path:
    from prime_train.control_plane.wiring.home import Home

    return Home.of(os.environ).root / f"aws-{name}.json"
