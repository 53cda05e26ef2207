"""`prime-train deploy`: the control plane on AWS, with no machine that stays up."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.aws_place import STACK, Region, StackName
from prime_train.cli.exits import Refused

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Plan, Stack, Target

CODE_BYTES_MAX = 250 * 2**20
SPARE_FUNCTIONS_MIN = 125
"""AWS lets no account set aside what would leave less than 100; the template sets aside 25."""


def deploy(
    name: StackName = STACK,
    region: Region = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    secret: Annotated[list[str] | None, typer.Option("--secret", help="Variable of yours that goes into the secret.")] = None,
    provider: Annotated[str | None, typer.Option(help="From whom to rent: prime.", show_default=False)] = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", help="What machines call, if not the function.", show_default=False)
    ] = None,
    alarm_email: Annotated[str | None, typer.Option("--alarm-email", help="Who is told of alarms.", show_default=False)] = None,
    machine: Annotated[str, typer.Option("--architecture", help="arm64 or x86_64.")] = "arm64",
    python: Annotated[str, typer.Option(help="Python of the functions.")] = "3.12",
    code: Annotated[Path | None, typer.Option("--code", help="A zip made before, instead of a new one.", show_default=False)] = None,
) -> None:
    """Bring the control plane to AWS, or what is new of it.

    Makes a stack: a table, a bucket, a secret, two functions. Shows the changes and asks first. The keys are found as AWS's tools find
    them. What is not said stays as it is.
    """
    from prime_train.adapters.aws_deploy.stack import NEW
    from prime_train.cli import aws_place
    from prime_train.cli.aws_code import template

    values, target = _named(secret or []), _target(machine, python)
    account = aws_place.account(region)
    stack = aws_place.stack(account, name)
    typer.echo(f"account {account.number}, region {account.region}, stack {name}")
    parameters = {
        "CodeBucket": account.code_bucket,
        "CodeKey": _code(account, target, code, dry_run=dry_run),
        "Runtime": f"python{python}",
        "Architecture": machine,
        "Provider": provider,
        "PublicUrl": public_url,
        "AlarmEmail": alarm_email,
        **dict.fromkeys(("UsdPerHourMax", "FencesAnHourMax")),
        **_set_aside(account, is_first=stack.state() in ("", NEW)),
    }
    plan = stack.plan(template(), parameters)
    _show(plan)
    if plan is not None:
        _settle(stack, plan, dry_run=dry_run, yes=yes)
    if not dry_run:
        outputs = stack.outputs()
        account.change_secret(outputs["Secret"], lambda before: before | values)
        _say(outputs, aws_place.remember(name, account.region, outputs))


def _settle(stack: "Stack", plan: "Plan", *, dry_run: bool, yes: bool) -> None:
    """Carries the plan out where it is wanted; else nothing of it is left."""
    from prime_train.cli.aws_place import agreed

    try:
        if not dry_run:
            agreed("Carry these out?", yes)
    except BaseException:
        stack.drop(plan)
        raise
    if dry_run:
        stack.drop(plan)
    else:
        stack.carry_out(plan, typer.echo)


def _target(machine: str, python: str) -> "Target":
    from prime_train.adapters.aws_deploy import Target
    from prime_train.ports import PermanentError

    try:
        return Target(machine, python)
    except PermanentError as error:
        raise Refused(str(error)) from None


def _named(names: list[str]) -> dict[str, str]:
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise Refused(f"--secret {missing[0]}: that variable is not set here", fix=f"export {missing[0]}, and deploy again")
    return {name: os.environ[name] for name in names}


def _code(account: "Account", target: "Target", code: Path | None, *, dry_run: bool) -> str:
    """Its key in the bucket for code, where it is when this returns, unless nothing shall change."""
    from prime_train.adapters.aws_deploy import digest_of, package
    from prime_train.cli.aws_code import own, pins

    if code is not None:
        if code.stat().st_size > CODE_BYTES_MAX:
            raise Refused(f"{code} is over {CODE_BYTES_MAX >> 20} MiB: Lambda does not take it")
        data = code.read_bytes()
        key = f"{hashlib.sha256(data).hexdigest()[:32]}.zip"
        if not dry_run and not account.has(key):
            account.bring(key, data)
        return key
    files, fixed = own(), pins()
    key = f"{digest_of(files, fixed, target)}.zip"
    if not dry_run and not account.has(key):
        made = package(files, fixed, target, typer.echo)
        typer.echo(f"code: {len(made.data) / 2**20:.1f} MiB, unpacked {made.unpacked_bytes / 2**20:.0f} MiB")
        account.bring(key, made.data)
    return key


def _set_aside(account: "Account", *, is_first: bool) -> dict[str, str | None]:
    """A new account may run so few functions at once that AWS lets it set none aside."""
    if not is_first or account.functions_left() >= SPARE_FUNCTIONS_MIN:
        return {"WatchersMax": None, "WebhooksMax": None}
    typer.echo("this account may run few functions at once, so none are set aside for this stack")
    return {"WatchersMax": "0", "WebhooksMax": "0"}


def _show(plan: "Plan | None") -> None:
    if plan is None:
        typer.echo("nothing changes")
        return
    for change in plan.changes:
        typer.echo(f"  {change.action.lower():7} {change.name} ({change.kind}){' by a new one' if change.replaces else ''}")


def _say(outputs: dict[str, str], saved: Path) -> None:
    typer.echo(f"\nPRIME_TRAIN_STORE={outputs['Url'].rstrip('/')}")
    typer.echo("PRIME_TRAIN_MASTER_KEY=(prime-train doctor --show-key prints it)")
    typer.echo(f"bucket {outputs['Bucket']}, table {outputs['Table']}, secret {outputs['Secret']}")
    typer.echo(f"saved in {saved}; prime-train doctor says whether it works")
