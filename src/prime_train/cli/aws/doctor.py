"""`prime-train doctor`: check whether the control plane on AWS works."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json
from prime_train.cli.aws.stack import STACK, Region, StackName
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Account, Stack

MASTER = "PRIME_TRAIN_MASTER_KEY"
WATCHED_S_MAX = 300
CALLS_MAX = 2
"""The most calls to the webhook before it counts as down; the first one may time out during a cold start."""
ALARM = "AWS::CloudWatch::Alarm"
POD_KEYS = ("PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY")


class Off(str):
    """A message on an optional part that is not set up."""


Check = tuple[str, Callable[[], str]]
"""The name of a check, and a function that returns what is wrong; empty: nothing."""


def doctor(
    name: StackName = STACK,
    region: Region = "",
    show_key: Annotated[bool, typer.Option("--show-key", help="Print the master key, and nothing else.")] = False,
    as_json: AsJson = False,
) -> Exit:
    """Say whether the control plane on AWS works.

    Looks at the stack, the secret, the webhook's answer, the table, the watcher, W&B and the alarms; changes nothing.
    """
    from prime_train.cli.aws import stack as aws_place

    account = aws_place.account(region)
    stack = aws_place.stack(account, name)
    if show_key:
        typer.echo(_texts(account, stack.outputs()).get(MASTER, "").split(",")[0])
        return Exit.OK
    if not as_json:
        typer.echo(f"account {account.number}, region {account.region}, stack {name}")
    rows = []
    for what, check in _checks(account, stack, aws_place.options(name, region)):
        said = _asked(check)
        rows.append({"name": what, "status": "off" if isinstance(said, Off) else "wrong" if said else "well", "text": str(said)})
        if not as_json:
            typer.echo(f"{rows[-1]['status']:<5}  {what}{f': {said}' if said else ''}")
    if as_json:
        print_json({"account": account.number, "region": account.region, "stack": name, "checks": rows})
    return Exit.FINDINGS if any(row["status"] == "wrong" for row in rows) else Exit.OK


def _asked(check: Callable[[], str]) -> str:
    from prime_train.ports import OutsideError

    try:
        return check()
    except OutsideError as error:
        return str(error)


def _checks(account: "Account", stack: "Stack", place: str) -> Iterator[Check]:
    """Yield the checks; only the first one if there is no complete stack. `place`: the options that refer to this stack."""
    state = stack.state()
    yield "stack", lambda: _stack(state, account.region, place)
    if not state.endswith("_COMPLETE") or "Url" not in stack.outputs():
        return
    outputs = stack.outputs()
    yield "secret", lambda: wrong_secret(account.secret(outputs["Secret"]), place)
    yield "webhook", lambda: _webhook(outputs["Url"], _texts(account, outputs).get(MASTER, ""))
    yield pods_check(account, outputs, place)
    yield "watcher", lambda: _watcher(f"dynamodb://{outputs['Table']}?region={account.region}")
    yield "W&B", lambda: _wandb(_texts(account, outputs), place)
    yield "alarms", lambda: ", ".join(account.alarms(stack.parts(ALARM)))


def _texts(account: "Account", outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the stack's secret that are strings; the check of the secret reports others."""
    from prime_train.adapters.aws_deploy import texts

    return texts(account.secret(outputs["Secret"]))


def _stack(state: str, region: str, place: str) -> str:
    from prime_train.adapters.aws_deploy.plan import REMEDIES

    if state in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return ""
    if state:
        return f"{state}: {REMEDIES.get(state, 'look again when it is done')}"
    elsewhere = "is it in another (--region), or under another name (--stack)?"
    return f"there is none in region {region}; {elsewhere} prime-train deploy{place} makes one"


def wrong_secret(values: Mapping[str, object], place: str) -> str:
    """Return what is wrong with the values of the stack's secret; empty: nothing. `place`: the options that refer to the stack."""
    from prime_train.adapters.aws_deploy import texts
    from prime_train.cli.aws.settings import is_masters
    from prime_train.control_plane.wiring.providers import lacking

    known = texts(values)
    others = sorted(values.keys() - known.keys())
    if others:
        return f"not a text in it: {', '.join(others)}; the functions can read none of it. {_given(others, place)}"
    if not known.get(MASTER):
        return f"{MASTER} is not in it; deploy again under another name of stack"
    if not is_masters(known[MASTER]):
        return f"{MASTER} in it is not 64 hex digits, or several such keys with a comma between them; nobody is believed"
    lacks = lacking(known)  # credentials for the bucket are checked separately
    return f"it lacks {', '.join(lacks)}; {_given(lacks, place)}" if lacks else ""


def _given(names: Sequence[str], place: str) -> str:
    """Return the commands that add the named values to the secret."""
    return f"export and prime-train deploy{place} --secret {' --secret '.join(names)}"


def _webhook(url: str, master: str) -> str:
    """Check the webhook with a signed call that reads and writes the table."""
    from prime_train.adapters.canary_http import CanaryHttp
    from prime_train.cli.aws.settings import is_masters
    from prime_train.control_plane.wiring.home import wall_s

    if not is_masters(master):
        return f"it is not asked: the secret has no {MASTER} that could sign a call"
    newest = bytes.fromhex(master.split(",", maxsplit=1)[0])
    canary = CanaryHttp(url, newest)
    sings = any(canary.sings(wall_s()) for _ in range(CALLS_MAX))
    return "" if sings else f"{url} does not answer a signed call; see the function's log"


def _wandb(values: Mapping[str, str], place: str) -> str:
    """Check W&B with the watcher's credentials, though called from this machine."""
    from prime_train.adapters.tracker_wandb import ENTITY, KEY, URL
    from prime_train.adapters.tracker_wandb.plain import PlainWandb

    if not values.get(KEY):
        return Off(f"a run that is silent has no second witness; export {KEY} and prime-train deploy{place} --secret {KEY}")
    PlainWandb(values[KEY], url=values.get(URL, ""), entity=values.get(ENTITY, "")).account_entity()
    return ""


def pods_check(account: "Account", outputs: Mapping[str, str], place: str = "") -> Check:
    """Return the check of how machines access the bucket: with keys in the secret, or with those of the role, which the webhook must be
    able to assume."""
    from prime_train.ports import OutsideError

    try:
        values = _texts(account, outputs)
    except OutsideError:
        values = {}  # the check of the secret reports the error
    lacks = [name for name in POD_KEYS if not values.get(name)]
    fix = f"it lacks {', '.join(lacks)}; {_given(lacks, place)}"
    if lacks and "PodRole" in outputs:
        half = f"the other half of the pair is in the secret, but {fix}" if len(lacks) < len(POD_KEYS) else ""
        return "pods, by the role's keys", lambda: half or _taken(account, outputs["Webhook"])
    return "pods, by the secret's keys", lambda: fix if lacks else ""


def _taken(account: "Account", webhook: str) -> str:
    """Check whether the webhook can assume the role, as it does for each machine."""
    wrong = account.call(webhook, {"check": True}).get("wrong", "")
    return f"the webhook cannot take it: {wrong}; see the function's log, and deploy again" if wrong else ""


def _watcher(table_url: str) -> str:
    from prime_train.adapters.store_dynamo.opening import open_dynamo

    store = open_dynamo(table_url, os.environ)
    swept_s = store.watch().swept_s
    if swept_s is None:
        return "it has not swept yet; it is called once a minute"
    ago_s = store.now_s() - swept_s
    return "" if ago_s <= WATCHED_S_MAX else f"its last sweep was {ago_s} s ago; see the function's log"
