"""`prime-train validate PATHS...`: every mistake in the configs."""

from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.exits import Exit, Refused
from prime_train.cli.formats import Format


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json: a list of findings.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Ask prime-rl's own validators too, at the run's commit: fetched once.")] = False,
    prime_rl_ref: Annotated[str, typer.Option("--prime-rl-ref", help="With --deep: the commit for configs that no run names.")] = "",
) -> Exit:
    """Check configs: all mistakes at once.

    A trainer's own config is checked with the run that names it, or by itself.
    """
    from prime_train.cli.check import check

    shape = Format.JSON if as_json else form
    if not deep:
        if prime_rl_ref:
            raise Refused("--prime-rl-ref is about --deep alone", fix="add --deep")
        return check(paths, shape)
    from prime_train.cli.deep import Asking

    asking = Asking(prime_rl_ref)
    done = check(paths, shape, ask=asking.about)
    return asking.code if done is Exit.OK else done
