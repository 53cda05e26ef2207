"""`prime-train deploy`: deploy the control plane to AWS, where it needs no machine that runs all the time."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.aws.stack import STACK, Region, StackName

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Plan, Stack, Target

SPARE_FUNCTIONS_MIN = 125
"""The fewest unreserved concurrent executions an account needs: the template reserves 25, and AWS requires that at least 100 stay
unreserved."""
ASIDE = ("WatchersMax", "WebhooksMax")


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
    other: Annotated[list[str] | None, typer.Option("--set", help="Another parameter, as UsdPerHourMax=40.", show_default=False)] = None,
    machine: Annotated[str | None, typer.Option("--architecture", help="arm64 or x86_64.", show_default="arm64")] = None,
    python: Annotated[str | None, typer.Option(help="Python of the functions.", show_default="3.12")] = None,
    code: Annotated[Path | None, typer.Option("--code", help="A zip made before, instead of a new one.", show_default=False)] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Only write template and code there.", show_default=False)] = None,
) -> None:
    """Bring the control plane to AWS, or what is new of it.

    Makes a stack: a table, a bucket, a secret, two functions. Shows the changes and asks first. The keys are found as AWS's tools find
    them. What is not said stays as it is.
    """
    from prime_train.cli.aws import settings as aws_wish
    from prime_train.cli.aws import stack as aws_place

    values = aws_wish.secrets(secret or [])
    wished = aws_wish.others(other or []) | aws_wish.parameters(Provider=provider, PublicUrl=public_url, AlarmEmail=alarm_email)
    wish = Wish(name, region, wished, machine, python, code)
    if save is not None:
        _save(save, wish, list(values))
        return
    account = aws_place.account(region)
    stack = aws_place.stack(account, name)
    typer.echo(f"account {account.number}, region {account.region}, stack {name}")
    plan, bring = _planned(account, stack, wish)
    if plan is not None:
        _settle(stack, plan, bring, _later(wish, values), dry_run=dry_run, yes=yes)
    if dry_run:
        typer.echo("nothing was changed: --dry-run")
        return
    outputs = stack.outputs()
    changed = account.change_secret(outputs["Secret"], lambda before: {**before, **values})
    _say(wish, outputs, changed, aws_place.remember(name, account.region, outputs))
    _say_withheld(aws_wish.for_nobody(values, stack.parameters()), wish)


@dataclass(frozen=True)
class Wish:
    """The user's options for the stack; None or an empty region: not given. `code`: an existing zip to deploy."""

    stack: str
    region: str
    parameters: Mapping[str, str]
    machine: str | None
    python: str | None
    code: Path | None

    @property
    def place(self) -> str:
        """The options with which other commands refer to this stack, with a leading space; empty if the defaults do."""
        from prime_train.cli.aws.stack import options

        return options(self.stack, self.region)


def _planned(account: "Account", stack: "Stack", wish: Wish) -> "tuple[Plan | None, Callable[[], None]]":
    """Show what would change. Return the plan, or None if nothing changes, and a function that uploads the code it refers to."""
    from prime_train.cli.aws import plan as aws_plan
    from prime_train.cli.aws import settings as aws_wish
    from prime_train.operations.aws import code as aws_code

    stack.changeable()  # fails early, before minutes are spent on building the code
    now = stack.parameters()
    target = aws_wish.target(wish.machine, wish.python, now)
    key, bring = _code(account, target, wish.code)
    runs_on = {"Runtime": f"{aws_wish.PYTHON}{target.python}", "Architecture": target.machine}
    aside = {} if now else _set_aside(account)
    parameters = {**dict.fromkeys(aws_code.parameter_names()), **aside, **wish.parameters, **runs_on}
    plan = stack.plan(aws_code.placed(account.code_bucket, key), parameters)
    aws_plan.show(plan)
    return plan, bring


def _code(account: "Account", target: "Target", given: Path | None) -> tuple[str, Callable[[], None]]:
    """Return the code's key in the code bucket, and a function that uploads the code if it is missing."""
    from prime_train.operations.aws import code as aws_code

    code = aws_code.code(target, given, typer.echo)
    if code.better and account.has(code.better):
        return code.better, lambda: None
    if code.lacks:
        typer.echo(code.lacks)

    def bring() -> None:
        if not account.has(code.name):
            account.bring(code.name, code.make())

    return code.name, bring


def _settle(stack: "Stack", plan: "Plan", bring: Callable[[], None], later: str, *, dry_run: bool, yes: bool) -> None:
    """Carry the plan out after confirmation; with `dry_run`, or if the user declines, delete it. `later`: the message to print if waiting
    ends while AWS still carries the plan out."""
    from prime_train.cli.confirm import confirm
    from prime_train.ports import TemporaryError

    try:
        if not dry_run:
            confirm("Carry these out?", yes=yes)
            bring()
    except BaseException:
        stack.drop(plan)
        raise
    if dry_run:
        stack.drop(plan)
        return
    try:
        stack.carry_out(plan, typer.echo)
    except (KeyboardInterrupt, TemporaryError):
        typer.echo(later, err=True)
        raise


def _later(wish: Wish, values: Mapping[str, str]) -> str:
    again = f"prime-train deploy{wish.place}{''.join(f' --secret {name}' for name in values)}"
    return f"not brought yet: {', '.join(values)}; when AWS is done: {again}" if values else f"when AWS is done: {again}"


def _save(folder: Path, wish: Wish, secrets: list[str]) -> None:
    """Write the template and the code beside it into `folder`, for deployment with other tools."""
    from prime_train.cli.aws import settings as aws_wish
    from prime_train.operations.aws import code as aws_code

    target = aws_wish.target(wish.machine, wish.python, {})
    code = aws_code.code(target, wish.code, typer.echo)
    if code.lacks:
        typer.echo(code.lacks)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / aws_code.CODE).write_bytes(code.make())
    (folder / "template.yaml").write_text(aws_code.template(), encoding="utf-8")
    given = {"Runtime": f"{aws_wish.PYTHON}{target.python}", "Architecture": target.machine, **wish.parameters}
    typer.echo(f"{folder / 'template.yaml'} and {aws_code.CODE} beside it; with sam, for one:")
    typer.echo(
        f"  sam deploy --template-file {folder / 'template.yaml'} --stack-name {wish.stack} --resolve-s3 --capabilities CAPABILITY_IAM "
        f"--parameter-overrides {' '.join(f'{name}={shlex.quote(value)}' for name, value in given.items())}"
    )
    if secrets:
        typer.echo(f"no secret is in it; afterwards: prime-train deploy{wish.place} --secret {' --secret '.join(secrets)}")


def _set_aside(account: "Account") -> dict[str, str]:
    """Return the parameters that set no concurrency aside if the account's limit is too low for it, as in new accounts; otherwise no
    parameters."""
    if account.functions_left() >= SPARE_FUNCTIONS_MIN:
        return {}
    typer.echo("this account may run few functions at once, so none are set aside for this stack")
    return dict.fromkeys(ASIDE, "0")


def _say_withheld(names: tuple[str, ...], wish: Wish) -> None:
    if names:
        typer.echo(
            f"no run gets {', '.join(names)} as long as the stack's list does not name it: "
            f"prime-train deploy{wish.place} --set RunSecrets=HF_TOKEN,WANDB_API_KEY,{','.join(names)}"
        )


def _say(wish: Wish, outputs: dict[str, str], changed: list[str], saved: Path) -> None:
    if changed:
        typer.echo(f"the secret has new values of {', '.join(changed)}; the functions see them within five minutes")
    typer.echo(f"\nPRIME_TRAIN_STORE={outputs['Url'].rstrip('/')}")
    typer.echo(f"PRIME_TRAIN_MASTER_KEY=$(prime-train doctor --show-key{wish.place})")
    typer.echo(f"bucket {outputs['Bucket']}, table {outputs['Table']}, secret {outputs['Secret']}")
    typer.echo(f"saved in {saved}; prime-train doctor{wish.place} says whether it works")
