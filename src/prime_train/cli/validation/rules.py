"""`prime-train rules`: list the rules for configs, and explain them."""

from typing import Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json
from prime_train.core.errors import UsageError


def rules(
    code: Annotated[str | None, typer.Argument(help="A code, such as PT020; without it, all of them.", show_default=False)] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
) -> None:
    """Say what is looked for in a config, and why."""
    from prime_train.rules import page

    if as_json and not markdown:
        found = [row for row in page.records() if code is None or row["code"] == code.upper()]
        if not found:
            raise UsageError(f"{code} is no code of a finding", fix="prime-train rules lists them")
        print_json(found if code is None else found[0])
    elif markdown:
        typer.echo(page.markdown(), nl=False)
    elif code is None:
        typer.echo("\n".join(page.lines()))
    else:
        said = page.explained(code.upper())
        if said is None:
            raise UsageError(f"{code} is no code of a finding", fix="prime-train rules lists them")
        typer.echo(said)
