"""Deploy the control plane to AWS, or save what is needed to deploy it with other tools."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Advice, Operation, Option, SettingAdvice
from prime_train.aws import code as aws_code
from prime_train.aws.account import Account
from prime_train.aws.deployment import Deployment
from prime_train.aws.package import Target
from prime_train.aws.plan import StackChange
from prime_train.aws.settings import PYTHON, Request, check_environment, for_nobody, run_secrets_with, target
from prime_train.errors import TemporaryError

FREE_FUNCTIONS_MIN = 125
"""Minimum number of unreserved concurrent executions an account needs: the template reserves 25, and AWS
requires that at least 100 stay unreserved.
"""
RESERVED = ("WatchersMax", "WebhooksMax")

Approve = Callable[[StackChange | None], bool]
"""Called with the planned changes, or None if nothing would change; returns whether to continue. If it
raises, nothing has been changed.
"""
Progress = Callable[[str], object]


@dataclass(frozen=True)
class Deployed:
    """A deployed control plane. `url`: what machines and operators call; `bucket`, `table` and `secret`:
    names. `changed`: names of the secret's values that are new; `withheld`: names of values in the request
    that no run receives, and `run_secrets`: the list of names and globs with which runs would. `file`: where
    all of this except the secret's values is recorded.
    """

    url: str
    bucket: str
    table: str
    secret: str
    changed: tuple[str, ...]
    withheld: tuple[str, ...]
    run_secrets: tuple[str, ...]
    file: Path


@dataclass(frozen=True)
class Saved:
    """A template with the code beside it, and the parameters to deploy it with."""

    template: Path
    code: Path
    parameters: dict[str, str]


def deploy(
    to: Deployment,
    request: Request,
    *,
    approve: Approve,
    progress: Progress,
    warn: Callable[[Advice], object],
) -> Deployed | None:
    """Deploy if `approve` returns True, and write the request's values into the secret. Return None, with
    nothing changed, if it returns False.

    `progress` is called with each step; `warn` with what is left to do if waiting ends while AWS still works.
    Raises UsageError for a request that cannot be deployed, and ExternalError if AWS refuses or fails.
    """
    plan, upload = _planned(to, request, progress)
    with ExitStack() as undo:
        if plan is not None:
            undo.callback(to.stack.drop, plan)
        if not approve(plan):
            return None
        if plan is not None:
            upload()
        undo.pop_all()
    if plan is not None:
        _carry_out(to, plan, request, progress, warn)
    outputs = to.stack.outputs()
    changed = to.account.change_secret(outputs["Secret"], lambda before: {**before, **request.secrets})
    file = to.record(outputs)
    parameters = to.stack.parameters()
    withheld = for_nobody(request.secrets, parameters)
    wanted = run_secrets_with(withheld, parameters)
    places = outputs["Url"].rstrip("/"), outputs["Bucket"], outputs["Table"], outputs["Secret"]
    return Deployed(*places, tuple(changed), withheld, wanted, file)


def save(request: Request, folder: Path, progress: Progress) -> Saved:
    """Write the template and the code beside it into `folder`. Raises UsageError for a request that cannot be
    deployed.
    """
    check_environment(request.parameters)
    runs_on = target(request.machine, request.python, {})
    code = aws_code.code(runs_on, request.code, progress)
    if code.lacks:
        progress(code.lacks)
    folder.mkdir(parents=True, exist_ok=True)
    saved = Saved(
        folder / "template.yaml", folder / aws_code.CODE, {**_runtime(runs_on), **request.parameters}
    )
    saved.code.write_bytes(code.make())
    saved.template.write_text(aws_code.template(), encoding="utf-8")
    return saved


def _planned(
    to: Deployment, request: Request, progress: Progress
) -> tuple[StackChange | None, Callable[[], None]]:
    """Return the plan, or None if nothing changes, and a function that uploads the code it refers to."""
    to.stack.changeable()  # fails early, before minutes are spent on building the code
    now = to.stack.parameters()
    check_environment({**now, **request.parameters})
    runs_on = target(request.machine, request.python, now)
    key, upload = _code(to.account, runs_on, request.code, progress)
    reserved = {} if now else _reserved(to.account, progress)
    parameters = {
        **dict.fromkeys(aws_code.parameter_names()),
        **reserved,
        **request.parameters,
        **_runtime(runs_on),
    }
    return to.stack.plan(aws_code.placed(to.account.code_bucket, key), parameters), upload


def _runtime(runs_on: Target) -> dict[str, str]:
    return {"Runtime": f"{PYTHON}{runs_on.python}", "Architecture": runs_on.machine}


def _code(
    account: Account, runs_on: Target, given: Path | None, progress: Progress
) -> tuple[str, Callable[[], None]]:
    """Return the code's key in the code bucket, and a function that uploads the code if it is missing."""
    code = aws_code.code(runs_on, given, progress)
    if code.better and account.has(code.better):
        return code.better, lambda: None
    if code.lacks:
        progress(code.lacks)

    def upload() -> None:
        if not account.has(code.name):
            account.bring(code.name, code.make())

    return code.name, upload


def _reserved(account: Account, progress: Progress) -> dict[str, str]:
    """Return the parameters that reserve no concurrency if the account's limit is too low for it, as in new
    accounts; otherwise none.
    """
    if account.functions_left() >= FREE_FUNCTIONS_MIN:
        return {}
    progress(
        "the account's limit of concurrent Lambda executions is low, so no concurrency is reserved for this "
        "stack"
    )
    return dict.fromkeys(RESERVED, "0")


def _carry_out(
    to: Deployment, plan: StackChange, request: Request, progress: Progress, warn: Callable[[Advice], object]
) -> None:
    try:
        to.stack.carry_out(plan, progress)
    except (KeyboardInterrupt, TemporaryError):
        missing = f"not stored in the secret yet: {', '.join(request.secrets)}; " if request.secrets else ""
        again = to.call(Operation.DEPLOY, *(Option(SettingAdvice.SECRET, name) for name in request.secrets))
        warn(Advice(f"{missing}when AWS has finished, run: ", again))
        raise
