"""`prime-train validate PATHS...`: report all mistakes in configs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from prime_train.checks.report.formats import Format
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit

DEEP_TRUST = "--deep-trust"


class WithDeepTrust(TyperCommand):
    """Accepts `--deep=trust` as well, because Typer does not support an option with an optional value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        invalid = next((word for word in args if word.startswith("--deep=") and word != "--deep=trust"), None)
        if invalid is not None:
            raise typer.BadParameter(f"{invalid[:60]}: write --deep, or --deep=trust", ctx)
        return super().parse_args(ctx, [DEEP_TRUST if word == "--deep=trust" else word for word in args])


def validate(
    paths: Annotated[
        list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)
    ],
    form: Annotated[Format, typer.Option("--format", help="Format of the findings.")] = Format.TEXT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Same as --format json: a list of findings.")
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also run prime-rl's own validators, at the run's commit.")
    ] = False,
    deep_trust: Annotated[
        bool,
        typer.Option(
            DEEP_TRUST,
            help="Same as --deep=trust: run them without isolation, with access to all your files.",
            hidden=True,
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also list what was checked and is fine.")
    ] = False,
    prime_rl_ref: Annotated[
        str, typer.Option("--prime-rl-ref", help="With --deep: the commit for configs that do not name one.")
    ] = "",
) -> Exit:
    """Check configs and list all their errors.

    A trainer's own config is checked with the run that names it, or alone. --deep runs code of the config's
    prime-rl commit in a sandbox (bubblewrap). Where no sandbox is available, --deep is refused; --deep=trust
    runs that code without one, with access to all your files.
    """
    from prime_train.checks.report.check import check

    shape = Format.JSON if as_json else form
    if verbose and shape is not Format.TEXT:
        raise UsageError(
            "--verbose and another format than text cannot be combined", fix="leave out one of them"
        )
    if not (deep or deep_trust):
        if prime_rl_ref:
            raise UsageError("--prime-rl-ref needs --deep", fix="add --deep")
        return check(paths, shape, verbose=verbose)
    from prime_train.checks.deep_validation import DeepValidation

    validators = DeepValidation(os.environ, _print, prime_rl_ref, trusted=deep_trust)
    done = check(paths, shape, extend=validators.extend, verbose=verbose)
    return validators.code if done is Exit.OK else done


def _print(line: str) -> None:
    print(f"prime-train: {line}", file=sys.stderr, flush=True)
