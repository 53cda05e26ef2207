"""`prime-train provider list`: which providers are set up, and where their credentials come from."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from prime_train.terminal.arguments import AsJson, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from prime_train.providers.setup import ProviderSetup


def list_(as_json: AsJson = False) -> None:
    """List the providers, and where their credentials come from.

    No provider is asked, and no credential is shown.
    """
    from prime_train.app.home import Home
    from prime_train.providers.setup import rows
    from prime_train.providers.stored_keys import exposed
    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.console import console

    home = Home.of(os.environ)
    found = rows(home.root, home.environment, os.environ)
    if as_json:
        print_json(
            [
                {
                    "provider": row.name,
                    "title": row.kind.title,
                    "is_set_up": row.is_set_up,
                    "credentials": {name: source.value for name, source in row.sources.items()},
                }
                for row in found
            ]
        )
        return
    console().print(
        Fitting(
            (
                Column("provider", _texts([row.name for row in found])),
                Column("set up", _texts(["yes" if row.is_set_up else "no" for row in found])),
                Column("credentials", _texts([_credentials(row) for row in found])),
                Column(
                    "what to do",
                    _texts(
                        ["" if row.is_set_up else f"prime-train provider add {row.name}" for row in found]
                    ),
                    1,
                ),
            )
        )
    )
    for row in found:
        for path in row.overridden:
            typer.echo(f"{path} is not used, because the environment sets {path.name}, which wins", err=True)
    for path in exposed(home.root):
        typer.echo(f"others on this machine may read {path}; to mend it: chmod 600 {path}", err=True)


def _credentials(row: "ProviderSetup") -> str:
    from prime_train.providers.setup import CredentialOrigin

    if row.is_set_up and not row.has_credentials:
        return "log-in of its own tool"
    words = {
        CredentialOrigin.ENVIRONMENT: "{} (environment)",
        CredentialOrigin.STORED: "{} (stored)",
        CredentialOrigin.MISSING: "{} is not set",
    }
    return ", ".join(words[source].format(name) for name, source in row.sources.items()) or "needs none"


def _texts(cells: Sequence[str]) -> "tuple[Text, ...]":
    from rich.text import Text

    return tuple(map(Text, cells))
