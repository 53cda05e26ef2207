"""A deployment to AWS: its stack, the options that select it, and the record of it in the home folder."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.app.home import Home
from prime_train.aws.account import Account
from prime_train.aws.plan import STACK
from prime_train.aws.stack import Stack
from prime_train.errors import UsageError

NAME_CHARS_MAX = 56


@dataclass(frozen=True)
class Deployment:
    """A stack in an account and a region, whether it exists or not. `options`: the settings that select it;
    empty if the defaults do.
    """

    home: Home
    account: Account
    stack: Stack
    options: tuple[Option, ...]

    def call(self, operation: Operation, *options: Option) -> Call:
        """Return the call of an operation for this stack."""
        return Call(operation, options=(*self.options, *options))

    @property
    def record_file(self) -> Path:
        return self.home.root / f"aws-{self.stack.name}.json"

    def record(self, outputs: Mapping[str, str]) -> Path:
        """Save the stack's region and outputs, none of which is secret, and return the file's path."""
        path = self.record_file
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        draft.write_text(
            json.dumps({"stack": self.stack.name, "region": self.account.region, **outputs}, indent=2) + "\n"
        )
        draft.replace(path)
        return path


def deployment(home: Home, name: str = STACK, region: str = "") -> Deployment:
    """Return the deployment with the stack `name`, without a request to AWS. `region`: by default the one
    that AWS's own tools use. Raises UsageError if the name is not valid, and PermanentError if no region is
    set.
    """
    if not (
        name.isascii()
        and name.replace("-", "").isalnum()
        and name[0].isalpha()
        and len(name) <= NAME_CHARS_MAX
    ):
        fix = f"use at most {NAME_CHARS_MAX} letters, digits and hyphens, starting with a letter"
        raise UsageError(f"{name!r} is not a valid stack name", fix=fix)
    account = Account(home.environment, region)
    return Deployment(home, account, Stack(account.client("cloudformation"), name), selecting(name, region))


def was_deployed(home: Home) -> bool:
    """Return whether a deployment was made from this home."""
    return any(home.root.glob("aws-*.json"))


def selecting(name: str, region: str) -> tuple[Option, ...]:
    """Return the options that select this stack; empty if the defaults do."""
    options = (
        Option(SettingAdvice.STACK, name if name != STACK else ""),
        Option(SettingAdvice.REGION, region),
    )
    return tuple(option for option in options if option.value)
