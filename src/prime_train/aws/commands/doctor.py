"""`prime-train doctor`: check whether the providers of machines, and the control plane on AWS, work."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.advice import Advice, Call, Operation
from prime_train.aws.commands.stack import Region, StackName, selected
from prime_train.aws.plan import STACK
from prime_train.errors import ExternalError, PermanentError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.text.invocations import worded

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.aws.deployment import Deployment
    from prime_train.aws.doctor import DoctorCheck


def doctor(
    name: StackName = STACK,
    region: Region = "",
    show_key: Annotated[bool, typer.Option("--show-key", help="Print only the master key.")] = False,
    as_json: AsJson = False,
) -> Exit:
    """Check providers, bucket, and the control plane on AWS.

    Asks each provider that is set up here for its offers, and whether the bucket keeps what machines delete.
    Looks at the stack, its secret and the providers in it, the webhook, the table, the bucket, the watcher,
    W&B and the alarms. With GH_TOKEN and GH_REPO (owner/name), looks at the rules of the repository's
    environments, whether its schedule is on, and whom the role that deploys lets in. Rents and changes
    nothing.
    """
    from prime_train.app.home import Home
    from prime_train.aws.doctor import master_key

    if show_key:
        typer.echo(master_key(selected(name, region)))
        return Exit.OK
    home = Home.of(os.environ)
    deployed = _deployed(home, name, region)
    return _as_json(home, deployed) if as_json else _as_text(home, deployed)


def _as_text(home: "Home", deployed: "Deployment | None") -> Exit:
    from prime_train.aws.doctor import DoctorCheck, examine, exit_for

    statuses = set()

    def show(check: DoctorCheck) -> None:
        statuses.add(check.status)
        typer.echo(f"{check.status.value:<5}  {check.name}{f': {worded(check.text)}' if check.text else ''}")

    # The providers come first: they can be asked even if AWS does not answer.
    for check in _here(home, deployed):
        show(check)
    if deployed is not None:
        typer.echo(
            f"account {deployed.account.number}, region {deployed.account.region}, stack "
            f"{deployed.stack.name}"
        )
        for check in examine(deployed):
            show(check)
    return exit_for(statuses)


def _as_json(home: "Home", deployed: "Deployment | None") -> Exit:
    from prime_train.aws.doctor import examine, exit_for

    checks = [*_here(home, deployed), *(examine(deployed) if deployed is not None else ())]
    rows = [
        {"name": check.name, "status": check.status.value, "text": worded(check.text)} for check in checks
    ]
    account, stack = (deployed.account, deployed.stack.name) if deployed is not None else (None, None)
    place = {"account": account and account.number, "region": account and account.region, "stack": stack}
    print_json({**place, "checks": rows})
    return exit_for({check.status for check in checks})


def _deployed(home: "Home", name: str, region: str) -> "Deployment | None":
    """Return the deployment, or None if nothing says that there is one: no option names it, none was made
    from this home, and AWS's own tools have no region to look in.
    """
    from prime_train.aws.deployment import was_deployed

    try:
        return selected(name, region)
    except PermanentError:
        if name != STACK or region or was_deployed(home):
            raise
        return None


def _here(home: "Home", deployed: "Deployment | None") -> "Iterator[DoctorCheck]":
    """Check the providers that are set up on this machine. Those of a deployment are in its secret."""
    from prime_train.aws.doctor import CheckStatus, DoctorCheck
    from prime_train.configs.loader import hardware_of
    from prime_train.providers.down import down
    from prime_train.providers.health import health
    from prime_train.providers.words import in_words
    from prime_train.runs.unreadable import FIX

    found = health(home.root, home.environment, os.environ, hardware_of(None, os.environ))
    for one in found:
        yield DoctorCheck(
            f"provider {one.name}",
            CheckStatus.WRONG if one.is_wrong else CheckStatus.WELL,
            Advice(in_words(one)),
        )
    store = home.known_store()
    for name, text in (down(store) if store is not None else {}).items():
        yield DoctorCheck(f"watching {name}", CheckStatus.WRONG, Advice(text))
    yield from _bucket(home)
    yield from _github(home, deployed)
    for unreadable in store.unreadable() if store is not None else ():
        yield DoctorCheck("store", CheckStatus.WRONG, Advice(f"{unreadable}; {FIX}"))
    if deployed is None:
        if not found:
            add = Call(Operation.ADD_PROVIDER, "NAME")
            yield DoctorCheck(
                "providers", CheckStatus.OFF, Advice("none is set up here; ", add, " checks and stores a key")
            )
        yield DoctorCheck(
            "AWS", CheckStatus.OFF, Advice("no region is set, and nothing was deployed from here")
        )


def _github(home: "Home", deployed: "Deployment | None") -> "Iterator[DoctorCheck]":
    """Check the rules of the repository on GitHub, if the environment has a token and names the
    repository.
    """
    from prime_train.aws.doctor import CheckStatus, DoctorCheck
    from prime_train.github.environment_rules import repository_checks

    trust_of = deployed.account.trust_of if deployed is not None else None
    try:
        for one in repository_checks(home.environment, trust_of):
            status = (
                CheckStatus.WELL
                if not one.wrong
                else CheckStatus.OFF
                if one.is_optional
                else CheckStatus.WRONG
            )
            yield DoctorCheck(one.name, status, Advice(one.wrong) if one.wrong else Advice())
    except ExternalError as error:
        yield DoctorCheck("GitHub", CheckStatus.WRONG, Advice(str(error)))


def _bucket(home: "Home") -> "Iterator[DoctorCheck]":
    """Check the bucket of this home if it is on S3. One that keeps no versions works, so that this is
    optional.
    """
    from prime_train.aws.doctor import CheckStatus, DoctorCheck
    from prime_train.checkpoints.deletable import what_machines_may_destroy

    try:
        wrong = what_machines_may_destroy(home.environment, elsewhere=home.served.elsewhere)
    except ExternalError as error:
        yield DoctorCheck("bucket", CheckStatus.WRONG, Advice(str(error)))
        return
    if wrong is not None:
        yield DoctorCheck(
            "bucket", CheckStatus.OFF if wrong else CheckStatus.WELL, Advice(wrong) if wrong else Advice()
        )
