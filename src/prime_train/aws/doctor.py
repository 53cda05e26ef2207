"""Check whether a control plane on AWS works."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.aws.account import texts
from prime_train.aws.deployment import Deployment
from prime_train.aws.plan import REMEDIES
from prime_train.aws.settings import is_masters
from prime_train.clock import wall_s
from prime_train.environment import MASTER
from prime_train.errors import ExternalError
from prime_train.exit_codes import Exit
from prime_train.providers.configured import lacking
from prime_train.providers.health import health_of
from prime_train.providers.portable import only_here
from prime_train.providers.words import in_words
from prime_train.spec.spec import HardwareSpec
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.tracker.wandb_client import KEY, wandb_from
from prime_train.watch.canary_http import CanaryHttp

SWEEP_AGE_S_MAX = 300
CALLS_MAX = 2
"""Maximum number of calls to the webhook before it counts as down; the first one may time out during a cold
start.
"""
ALARM = "AWS::CloudWatch::Alarm"
POD_KEYS = ("PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY")


class CheckStatus(StrEnum):
    """The result of a check. OFF: an optional part is not set up."""

    WELL = "well"
    WRONG = "wrong"
    OFF = "off"


@dataclass(frozen=True)
class DoctorCheck:
    """A part of the deployment that was checked. `text`: the problem and its remedy; empty if there is no
    problem.
    """

    name: str
    status: CheckStatus
    text: Advice


class Off(Advice):
    """Advice on an optional part that is not set up."""


Examined = Callable[[], Advice]
"""A function that checks one part and returns its problem; empty if there is none."""


def examine(deployed: Deployment) -> Iterator[DoctorCheck]:
    """Check one part after the other: the stack, the secret, the providers in it, the webhook's answer, the
    machines' keys, the bucket, the watcher, W&B and the alarms.

    Changes nothing. Yields only the result for the stack if that is missing or incomplete. Raises
    ExternalError if AWS cannot be queried about the stack.
    """
    for name, check in _checks(deployed):
        found = _result(check)
        yield DoctorCheck(
            name,
            CheckStatus.OFF if isinstance(found, Off) else CheckStatus.WRONG if found else CheckStatus.WELL,
            found,
        )


def exit_for(statuses: Container[CheckStatus]) -> Exit:
    """Return the exit code for the results of all checks."""
    return Exit.FINDINGS if CheckStatus.WRONG in statuses else Exit.OK


def master_key(deployed: Deployment) -> str:
    """Return the newest master key in the stack's secret, in hex; empty if there is none. Raises
    ExternalError if it cannot be read.
    """
    return _texts(deployed, deployed.stack.outputs()).get(MASTER, "").split(",")[0]


def _result(check: Examined) -> Advice:
    try:
        return check()
    except ExternalError as error:
        fix = error.fix.parts if isinstance(error.fix, Advice) else (error.fix,)
        return Advice(f"{error}; ", *fix) if error.fix else Advice(str(error))


def _checks(deployed: Deployment) -> Iterator[tuple[str, Examined]]:
    account, stack = deployed.account, deployed.stack
    state = stack.state()
    yield "stack", lambda: _stack(deployed, state)
    if not state.endswith("_COMPLETE") or "Url" not in stack.outputs():
        return
    outputs = stack.outputs()
    yield "secret", lambda: wrong_secret(account.secret(outputs["Secret"]), deployed.call)
    yield from _providers(deployed, outputs)
    yield "webhook", lambda: _webhook(outputs["Url"], _texts(deployed, outputs).get(MASTER, ""))
    yield pods_check(deployed, outputs)
    yield "bucket", lambda: _bucket(deployed, outputs["Bucket"])
    yield "watcher", lambda: _watcher(deployed, f"dynamodb://{outputs['Table']}?region={account.region}")
    yield "W&B", lambda: _wandb(_texts(deployed, outputs), deployed.call)
    yield "alarms", lambda: _advice(", ".join(account.alarms(stack.parts(ALARM))))


def _providers(deployed: Deployment, outputs: Mapping[str, str]) -> Iterator[tuple[str, Examined]]:
    """Return a check of each provider whose credentials are in the secret. They are asked from this
    machine.
    """
    try:
        values = _texts(deployed, outputs)
    except ExternalError:
        return  # the check of the secret reports the error
    for one in health_of(values, HardwareSpec(disk_gib=1)):
        found = in_words(one) if one.is_wrong else only_here(one.name, values)
        yield f"provider {one.name}, by the secret's key", partial(_advice, found)


def _advice(text: str) -> Advice:
    return Advice(text) if text else Advice()


def _texts(deployed: Deployment, outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the stack's secret that are strings; the check of the secret reports others."""
    return texts(deployed.account.secret(outputs["Secret"]))


def _stack(deployed: Deployment, state: str) -> Advice:
    if state in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return Advice()
    if state:
        return Advice(f"{state}: ", *REMEDIES.get(state, Advice("check again when it is complete")).parts)
    return Advice(
        f"there is no stack of this name in region {deployed.account.region}; check whether it is in another "
        "region (",
        Option(SettingAdvice.REGION),
        ") or has another name (",
        Option(SettingAdvice.STACK),
        "); or create it with ",
        deployed.call(Operation.DEPLOY),
    )


CallOf = Callable[..., Call]
"""A function like `Deployment.call`, for the stack that is checked."""


def wrong_secret(values: Mapping[str, object], call: CallOf) -> Advice:
    """Return what is wrong with the values of the stack's secret; empty: nothing."""
    known = texts(values)
    others = sorted(values.keys() - known.keys())
    if others:
        return Advice(
            f"the values of {', '.join(others)} are not strings, so the functions cannot read the secret. ",
            *_given(others, call),
        )
    if not known.get(MASTER):
        return Advice(f"the secret lacks {MASTER}; deploy again with another stack name")
    if not is_masters(known[MASTER]):
        return Advice(
            f"{MASTER} in the secret is not one key of 64 hex digits or several such keys separated by "
            "commas, so no request is accepted"
        )
    lacks = lacking(known)  # credentials for the bucket are checked separately
    return _lacking(lacks, call) if lacks else Advice()


def _lacking(names: Sequence[str], call: CallOf, before: str = "") -> Advice:
    return Advice(f"{before}the secret lacks {', '.join(names)}; ", *_given(names, call))


def _given(names: Sequence[str], call: CallOf) -> tuple[str, Call]:
    """Return how to add the named values to the secret."""
    return "export and ", call(Operation.DEPLOY, *(Option(SettingAdvice.SECRET, name) for name in names))


def _webhook(url: str, master: str) -> Advice:
    """Check the webhook with a signed call that reads and writes the table."""
    if not is_masters(master):
        return Advice(f"not checked: the secret has no {MASTER} that could sign a request")
    newest = bytes.fromhex(master.split(",", maxsplit=1)[0])
    canary = CanaryHttp(url, newest)
    is_answering = any(canary.is_answering(wall_s()) for _ in range(CALLS_MAX))
    return (
        Advice()
        if is_answering
        else Advice(f"{url} does not answer a signed request; see the function's log")
    )


def _wandb(values: Mapping[str, str], call: CallOf) -> Advice:
    """Check W&B with the watcher's credentials, though called from this machine."""
    wandb = wandb_from(values)
    if wandb is None:
        deploy = call(Operation.DEPLOY, Option(SettingAdvice.SECRET, KEY))
        return Off(f"without W&B, a silent run has no second sign of life; export {KEY} and ", deploy)
    wandb.account_entity()
    return Advice()


def pods_check(deployed: Deployment, outputs: Mapping[str, str]) -> tuple[str, Examined]:
    """Return the check of how machines access the bucket: with keys in the secret, or with those of the role,
    which the webhook must be able to assume.
    """
    try:
        values = _texts(deployed, outputs)
    except ExternalError:
        values = {}  # the check of the secret reports the error
    lacks = [name for name in POD_KEYS if not values.get(name)]
    if not lacks or "PodRole" not in outputs:
        return "pods, by the secret's keys", lambda: _lacking(lacks, deployed.call) if lacks else Advice()
    if len(lacks) < len(POD_KEYS):
        half = _lacking(lacks, deployed.call, "the other half of the pair is in the secret, but ")
        return "pods, by the role's keys", lambda: half
    return "pods, by the role's keys", lambda: _assumed(deployed, outputs["Webhook"])


def _assumed(deployed: Deployment, webhook: str) -> Advice:
    """Check whether the webhook can assume the role, as it does for each machine."""
    wrong = deployed.account.call(webhook, {"check": True}).get("wrong", "")
    return _advice(
        f"the webhook cannot assume the role: {wrong}; see the function's log, and deploy again"
        if wrong
        else ""
    )


def _bucket(deployed: Deployment, name: str) -> Advice:
    """Check whether the stack's bucket keeps what machines delete from it."""
    if deployed.account.keeps_versions(name):
        return Advice()
    return Advice(
        f"the bucket {name} keeps no versions, so a machine can delete the checkpoints of its own run for "
        "good; ",
        deployed.call(Operation.DEPLOY),
        " changes that",
    )


def _watcher(deployed: Deployment, table_url: str) -> Advice:
    store = open_dynamo(table_url, deployed.home.environment)
    last_sweep_s = store.watch().last_sweep_s
    if last_sweep_s is None:
        return Advice("it has not completed a sweep yet; it is invoked once a minute")
    ago_s = store.now_s() - last_sweep_s
    return _advice(
        "" if ago_s <= SWEEP_AGE_S_MAX else f"its last sweep was {ago_s} s ago; see the function's log"
    )
