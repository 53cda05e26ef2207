"""`prime-train github init`: set a repository on GitHub up for training, and open its first pull request."""

import getpass
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.environment import CREDENTIALS, OFFERS
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.setup.steps import Propose, SetupPlan, Trust
from prime_train.terminal.confirm import Yes, confirm
from prime_train.terminal.output import print_coloured
from prime_train.version import __version__

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.github.api import GitHub
    from prime_train.github.setup.carry_out import Done
    from prime_train.github.setup.files import WorkflowsRef
    from prime_train.github.setup.state import Found, Wishes

PRESET, NO_PRESET = "hf-sft", "none"
IN_ONE_VALUE = (CREDENTIALS, OFFERS)
"""Secrets that have credentials of several providers."""


def init(
    repository: Annotated[
        str,
        typer.Option(metavar="OWNER/NAME", help="By default that of the current folder.", show_default=False),
    ] = "",
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Public address of your control plane; by default the one used here.",
            show_default=False,
        ),
    ] = "",
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Store this secret, from the environment or as entered; can be repeated.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Config that is proposed if there is none, or none.")
    ] = PRESET,
    actions: Annotated[
        str,
        typer.Option(
            metavar="OWNER/NAME[@REF]",
            help="Repository of prime-train's workflows; by default the one installed from.",
            show_default=False,
        ),
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also replace workflow files that were changed, and secrets.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done, with the files.")
    ] = False,
    yes: Yes = False,
) -> Exit:
    """Set a repository on GitHub up for training.

    Makes the environments gpu, whose jobs you approve, and gpu-watch, sets the variable PRIME_TRAIN_URL, has
    the control plane trust the jobs if it can be reached from here, and opens a pull request with the
    workflows, and a config if there is none. Shows everything first. What is there already stays, so it can
    be repeated. Needs GitHub's tool gh, logged in.
    """
    from prime_train.app.home import Home
    from prime_train.github.gh import GitHubByGh, repository_here
    from prime_train.github.setup.control_plane import address_here, checked_address, trusted_here
    from prime_train.github.setup.plan import plan
    from prime_train.github.setup.state import Wishes, look, places_of, resolved

    names = list(dict.fromkeys(secret or ()))
    for name in names:
        places_of(name)
    address = checked_address(url) if url else ""
    home, source, asks = (
        Home.of(os.environ),
        _source(actions),
        not yes and not dry_run and sys.stdin.isatty() and sys.stdout.isatty(),
    )
    github = GitHubByGh(repository or repository_here())
    pin = resolved(GitHubByGh(source.repository), source)
    address = address or address_here(home) or (_asked_address(github) if asks else "")
    values = {} if dry_run else _values(names, home)
    wishes = Wishes(
        pin,
        address,
        bool(url),
        "" if preset == NO_PRESET else preset,
        values or dict.fromkeys(names, ""),
        force,
    )
    found = look(github, wishes, trusted_here(home, address, github.repository))
    planned = plan(wishes, found)
    typer.echo(f"{found.repository}: workflows of {pin.repository} at {pin.label} ({pin.commit[:12]})")
    _show(planned, wishes, complete=dry_run)
    if dry_run:
        return Exit.OK
    if not planned.steps:
        typer.echo("nothing to do: everything is there, and nothing was changed")
        _next(found, wishes, ())
        return Exit.OK
    confirm(f"Set {found.repository} up like this?", yes=yes)
    done = _carried_out(github, planned, wishes, found, home)
    _next(found, wishes, done)
    return Exit.EXTERNAL_REFUSED if any(one.wrong for one in done) else Exit.OK


def _asked_address(github: "GitHub") -> str:
    """Ask for the control plane's address, unless the repository has one."""
    from prime_train.github.environments import variable
    from prime_train.github.setup.control_plane import checked_address
    from prime_train.github.setup.state import URL

    if variable(github, URL):
        return ""
    typer.echo(
        "Runs belong to a control plane, which is always there: functions on AWS, or a server. Checks need "
        "none."
    )
    try:
        text = str(
            typer.prompt("Address of your control plane (empty: none yet)", default="", show_default=False)
        )
    except typer.Abort:
        raise KeyboardInterrupt from None
    return checked_address(text) if text.strip() else ""


def _source(actions: str) -> "WorkflowsRef":
    """Return where prime-train's workflows are. Raises UsageError if neither an option nor the installation
    says it.
    """
    from prime_train.github.setup.files import given_source, source_of

    if actions:
        return given_source(actions, __version__)
    try:
        found = source_of(distribution("prime-train").read_text("direct_url.json"), __version__)
    except PackageNotFoundError:
        found = None
    if found is None:
        message = (
            "this prime-train was not installed from a repository on GitHub, so it is unknown where its "
            "workflows are"
        )
        raise UsageError(
            message, fix=f"add --actions OWNER/prime-train, or --actions OWNER/prime-train@v{__version__}"
        )
    return found


def _values(names: Sequence[str], home: "Home") -> dict[str, str]:
    """Return the secrets: those of the environment, the credentials of all providers that are set up here,
    and the others as the user enters them.
    """
    from prime_train.github.gh import SECRET_BYTES_MAX
    from prime_train.providers.in_one_value import in_one_value, taken_apart

    values = {}
    for name in names:
        value = os.environ.get(name, "").strip() or (
            in_one_value(home.environment) if name == CREDENTIALS else ""
        )
        if not value and sys.stdin.isatty():
            try:
                value = getpass.getpass(f"{name} (not shown): ").strip()
            except EOFError:
                value = ""
        if not value:
            raise UsageError(
                f"{name} is not in the environment, and was not entered; nothing was changed",
                fix=f"set {name}",
            )
        if len(value.encode()) > SECRET_BYTES_MAX:
            raise UsageError(
                f"{name} has more than {SECRET_BYTES_MAX >> 10} KiB, GitHub's limit for a secret; nothing "
                "was changed"
            )
        if name in IN_ONE_VALUE:
            typer.echo(f"{name} has {', '.join(taken_apart(value, typer.echo, called=name))}")
        values[name] = value
    return values


def _show(planned: SetupPlan, wishes: "Wishes", *, complete: bool) -> None:
    """Print what is there, what would be done, and what is left; `complete`: with the text of the files."""
    for text in planned.kept:
        typer.echo(f"  there  {text}")
    for step in planned.steps:
        typer.echo(f"  to do  {step.text}")
    for text in planned.left:
        typer.echo(f"  left   {text}")
    for text in planned.differences:
        typer.echo(f"\n{text}\n")
    if planned.differences:
        typer.echo("to replace what was changed: --force")
    for step in planned.steps if complete else ():
        if isinstance(step, Propose):
            for path, text in step.files.items():
                print_coloured(typer.style(f"\n--- {path}", bold=True))
                typer.echo(text)


def _carried_out(
    github: "GitHub", planned: SetupPlan, wishes: "Wishes", found: "Found", home: "Home"
) -> "list[Done]":
    from prime_train.github.setup.carry_out import carry_out
    from prime_train.github.setup.control_plane import trust_environment

    done = []
    for one in carry_out(github, planned, wishes, found, partial(trust_environment, home, found.repository)):
        done.append(one)
        page = f": {one.url}" if one.url else ""
        typer.echo(
            f"  failed {one.step.text}: {one.wrong}" if one.wrong else f"  done   {one.step.text}{page}"
        )
    return done


def _next(found: "Found", wishes: "Wishes", done: "Sequence[Done]") -> None:
    """Print what is left to do by hand."""
    from prime_train.github.setup.state import ENVIRONMENT_WORKFLOWS, REPOSITORY
    from prime_train.stores.market_remote import MARKET_KEY

    lines = []
    untrusted = {one.step.environment for one in done if one.wrong and isinstance(one.step, Trust)}
    if not (wishes.url or found.url):
        lines.append("to launch, a control plane is needed: prime-train github init --url https://...")
    elif found.trusted is None:
        key = f"prime-train key create --launch --github-oidc --repository {found.repository} --environment"
        lines += [
            "once, where the control plane's key is, so that it trusts the jobs:",
            *(f"  {key} {name}" for name in ENVIRONMENT_WORKFLOWS),
        ]
    elif untrusted:
        lines.append(
            f"jobs in {' and '.join(sorted(untrusted))} cannot launch or stop until the environment has its "
            "rule"
        )
    if MARKET_KEY not in found.secrets[REPOSITORY] | set(wishes.secrets):
        lines.append(
            f"prices of your control plane in the comment: --secret {MARKET_KEY}, which prime-train key "
            "--market --show prints"
        )
    pages = [one.url for one in done if one.url]
    lines += [f"the checks of the pull request: gh pr checks --watch {page}" for page in pages]
    typer.echo("next:\n" + "\n".join(f"  {line}" for line in lines))
