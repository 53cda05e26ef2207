"""`prime-train validate PATHS...`: report all mistakes in configs."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from prime_train.cli.findings.formats import Format
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

DEEP_TRUST = "--deep-trust"


class WithDeepTrust(TyperCommand):
    """Accepts `--deep=trust` as well, because Typer does not support an option with an optional value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        odd = next((word for word in args if word.startswith("--deep=") and word != "--deep=trust"), None)
        if odd is not None:
            raise typer.BadParameter(f"{odd[:60]}: write --deep, or --deep=trust", ctx)
        return super().parse_args(ctx, [DEEP_TRUST if word == "--deep=trust" else word for word in args])


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Configs, or folders of them, such as configs.", show_default=False)],
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json: a list of findings.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Ask prime-rl's own validators too, at the run's commit.")] = False,
    deep_trust: Annotated[bool, typer.Option(DEEP_TRUST, help="As --deep=trust: run them with all that is yours.", hidden=True)] = False,
    prime_rl_ref: Annotated[str, typer.Option("--prime-rl-ref", help="With --deep: the commit for configs that no run names.")] = "",
) -> Exit:
    """Check configs: all mistakes at once.

    A trainer's own config is checked with the run that names it, or by itself. --deep runs code of the commit behind walls (bubblewrap);
    where these cannot be had, it is refused, unless you trust the commit with all that is yours: --deep=trust.
    """
    from prime_train.cli.findings.check import check

    shape = Format.JSON if as_json else form
    if not (deep or deep_trust):
        if prime_rl_ref:
            raise UsageError("--prime-rl-ref is about --deep alone", fix="add --deep")
        return check(paths, shape)
    from prime_train.cli.validation.deep import Asking

    asking = Asking(prime_rl_ref, trusted=deep_trust)
    done = check(paths, shape, ask=asking.about)
    return asking.code if done is Exit.OK else done
