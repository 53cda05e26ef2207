"""`prime-train doctor`: whether the control plane on AWS is well."""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.aws_place import STACK, Region, StackName
from prime_train.cli.exits import Exit

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Stack

MASTER = "PRIME_TRAIN_MASTER_KEY"
WATCHED_S_MAX = 300
WANTED = ("PRIME_API_KEY", "PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY")
"""What no run can do without: a machine to rent, and a way for it into the bucket."""
Check = tuple[str, Callable[[], str]]
"""Its name, and what says what is wrong; empty: nothing."""


def doctor(
    name: StackName = STACK,
    region: Region = "",
    show_key: Annotated[bool, typer.Option("--show-key", help="Print the master key, and nothing else.")] = False,
) -> Exit:
    """Say whether the control plane on AWS works.

    Looks at the stack, the secret, the webhook's answer, the table, the watcher and the alarms; changes nothing.
    """
    from prime_train.cli import aws_place

    account = aws_place.account(region)
    stack = aws_place.stack(account, name)
    if show_key:
        typer.echo(account.secret(stack.outputs()["Secret"]).get(MASTER, "").split(",")[0])
        return Exit.OK
    wrong = 0
    for what, check in _checks(account, stack):
        said = _asked(check)
        wrong += bool(said)
        typer.echo(f"{'wrong' if said else 'well '}  {what}{f': {said}' if said else ''}")
    return Exit.FINDINGS if wrong else Exit.OK


def _asked(check: Callable[[], str]) -> str:
    from prime_train.ports import OutsideError

    try:
        return check()
    except OutsideError as error:
        return str(error)


def _checks(account: "Account", stack: "Stack") -> Iterator[Check]:
    """The rest can not be asked where there is no stack."""
    state = stack.state()
    yield "stack", lambda: "" if state in ("CREATE_COMPLETE", "UPDATE_COMPLETE") else state or "there is none; prime-train deploy makes one"
    if not state.endswith("_COMPLETE") or "Url" not in stack.outputs():
        return
    outputs = stack.outputs()
    yield "secret", lambda: _secret(account.secret(outputs["Secret"]))
    yield "webhook", lambda: _webhook(outputs["Url"], account.secret(outputs["Secret"]).get(MASTER, ""))
    yield "watcher", lambda: _watcher(f"dynamodb://{outputs['Table']}?region={account.region}")
    yield "alarms", lambda: ", ".join(account.alarms(f"{stack.name}-"))


def _secret(values: dict[str, str]) -> str:
    if not values.get(MASTER):
        return f"{MASTER} is not in it; deploy again under another name of stack"
    lacks = [name for name in WANTED if name not in values]
    return f"it lacks {', '.join(lacks)}; export and prime-train deploy --secret {' --secret '.join(lacks)}" if lacks else ""


def _webhook(url: str, master: str) -> str:
    """By a signed call that goes through the table and back."""
    from prime_train.adapters.canary_http import CanaryHttp
    from prime_train.cli.home import wall_s

    newest = bytes.fromhex(master.split(",", maxsplit=1)[0])
    return "" if CanaryHttp(url, newest).sings(wall_s()) else f"{url} does not answer a signed call; see the function's log"


def _watcher(table_url: str) -> str:
    from prime_train.adapters.store_dynamo.opening import open_dynamo
    from prime_train.cli.home import wall_s

    swept_s = open_dynamo(table_url, os.environ).watch().swept_s
    if swept_s is None:
        return "it has not swept yet; it is called once a minute"
    ago_s = wall_s() - swept_s
    return "" if ago_s <= WATCHED_S_MAX else f"its last sweep was {ago_s} s ago; see the function's log"
