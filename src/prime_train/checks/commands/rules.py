"""`prime-train rules`: list the rules for configs, and explain them."""

from typing import Annotated

import typer

from prime_train.errors import UsageError
from prime_train.terminal.arguments import AsJson, print_json


def rules(
    code: Annotated[
        str | None,
        typer.Argument(help="Code of a rule, such as PT020; by default all rules.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page docs/rules.md.")] = False,
) -> None:
    """List the rules that configs are checked by, and why."""
    from prime_train.checks import documentation

    if as_json and not markdown:
        found = [row for row in documentation.records() if code is None or row["code"] == code.upper()]
        if not found:
            raise UsageError(f"{code} is not the code of a finding", fix="prime-train rules lists them")
        print_json(found if code is None else found[0])
    elif markdown:
        typer.echo(documentation.markdown(), nl=False)
    elif code is None:
        typer.echo("\n".join(documentation.lines()))
    else:
        text = documentation.explained(code.upper())
        if text is None:
            raise UsageError(f"{code} is not the code of a finding", fix="prime-train rules lists them")
        typer.echo(text)
