"""`prime-train rules`: list the rules for configs, and explain them."""

from typing import Annotated

import typer

from prime_train.core.errors import UsageError


def rules(
    code: Annotated[str | None, typer.Argument(help="A code, such as PT020; without it, all of them.", show_default=False)] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The page docs/rules.md.")] = False,
) -> None:
    """Say what is looked for in a config, and why."""
    from prime_train.rules import page

    if markdown:
        typer.echo(page.markdown(), nl=False)
    elif code is None:
        typer.echo("\n".join(page.lines()))
    else:
        said = page.explained(code.upper())
        if said is None:
            raise UsageError(f"{code} is no code of a finding", fix="prime-train rules lists them")
        typer.echo(said)
