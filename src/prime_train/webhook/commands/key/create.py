"""`prime-train key create`: make a launch key, or trust the jobs of a repository on GitHub."""

import os
from typing import Annotated

import typer

from prime_train.environment import PUBLIC_URL
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.launch_key import LAUNCH_KEY


def create(
    launch: Annotated[
        bool,
        typer.Option("--launch", help="A key that may only launch, read and stop runs of one repository."),
    ] = False,
    repository: Annotated[
        str, typer.Option("--repository", help="The repository, as owner/name.", show_default=False)
    ] = "",
    actor: Annotated[
        str, typer.Option("--actor", help="Only for this person's runs.", show_default=False)
    ] = "",
    usd_max: Annotated[
        float | None,
        typer.Option("--usd-max", help="The most dollars of one run's budget.", min=0.01, show_default=False),
    ] = None,
    expires: Annotated[
        str,
        typer.Option("--expires", help="When it ends, such as 90d, 12h, or 2027-01-31.", show_default=False),
    ] = "",
    github_oidc: Annotated[
        bool,
        typer.Option(
            "--github-oidc", help="Store no key at GitHub: jobs show a token that GitHub signs for them."
        ),
    ] = False,
    environment: Annotated[
        str,
        typer.Option(
            "--environment",
            help="Only jobs in this environment of GitHub (with --github-oidc).",
            show_default=False,
        ),
    ] = "",
    ref: Annotated[
        str,
        typer.Option(
            "--ref",
            help="Only jobs of this ref, such as refs/heads/main (with --github-oidc).",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Make a key that may only launch.

    The key launches runs of one repository, reads their state and stops them. It opens no other run, no
    secret, no key of the bucket and no call that changes anything else, and can be revoked at any time.

    With --github-oidc no key exists: the control plane trusts the tokens that GitHub signs for the jobs of
    the repository. Name an environment with reviewers, because otherwise everybody who can push a branch can
    spend money.
    """
    from prime_train.app.home import Home
    from prime_train.app.launch_keys import create_launch_key, expiry_of

    if not launch:
        raise UsageError("only launch keys can be made", fix="add --launch", code=Exit.USAGE)
    home = Home.of(os.environ)
    store = home.store()
    made = create_launch_key(
        store,
        home.master(),
        repository,
        actor=actor,
        usd_max=usd_max,
        expires_s=expiry_of(store, expires),
        is_github=github_oidc,
        environment=environment,
        ref=ref,
    )
    serving = home.served.last
    typer.echo(f"{PUBLIC_URL}={serving.public_url if serving is not None else ''}")
    if made.token:
        typer.echo(f"{LAUNCH_KEY}={made.token}")
        typer.echo("this is the only time that the key is shown", err=True)
    elif not environment and not ref:
        typer.echo(
            "any workflow of any branch of the repository may launch: give --environment, and let it require "
            "reviewers",
            err=True,
        )
    typer.echo(
        f"launch key {made.name} of {made.row.repository}; revoke it: prime-train key revoke {made.name}",
        err=True,
    )
