"""`prime-train checkpoints RUN [COMMAND]`: list and manage the checkpoints in the bucket."""

from collections.abc import Collection, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

DEFAULT = "list"
_HELP = frozenset(("-h", "--help"))
_WITH_VALUE = ("--bucket", "--attempt", "--step", "--only")
"""Options with a value that may precede the command, so that their value is not taken for the run or the
command.
"""


def verb_first(args: Sequence[str], verbs: Collection[str]) -> list[str]:
    """Return the arguments with the command first: `RUN verb ...`, as users write it, becomes `verb RUN ...`.
    Without a command it is `list`.
    """
    places = [
        at for at, arg in enumerate(args) if _is_word(arg) and (at == 0 or args[at - 1] not in _WITH_VALUE)
    ][:2]
    words = [args[at] for at in places]
    rest = [arg for at, arg in enumerate(args) if at not in places]
    match words:
        case [run, verb] if verb in verbs or run not in verbs:
            return [verb, run, *rest]
        case [verb, run]:
            return [verb, run, *rest]
        case [verb] if verb in verbs and len(rest) == 1 and rest[0] in _HELP:
            return [verb, "--help"]
        case [run] if not _HELP & set(rest):
            return [DEFAULT, run, *rest]
    return ["--help"] if _HELP & set(args) else list(args)


def _is_word(arg: str) -> bool:
    return not arg.startswith("-") or arg == "-"


class RunFirst(TyperGroup):
    """A group whose command comes after the run. (Typer's context types differ between its versions, so they
    are not annotated.)
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ordered = verb_first(args, self.commands)
        if ordered and not _is_word(ordered[0]) and ordered != ["--help"]:
            ctx.fail("Missing argument 'RUN'.")
        return super().parse_args(ctx, ordered)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return f"RUN {name}", command, rest


class AfterRun(TyperCommand):
    """A command whose first argument precedes it."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece for piece in super().collect_usage_pieces(ctx) if piece.strip("{}")]


checkpoints = typer.Typer(
    add_completion=False,
    cls=RunFirst,
    no_args_is_help=True,
    subcommand_metavar="RUN [COMMAND] [ARGS]...",
    rich_markup_mode=None,
)


@checkpoints.callback()
def options() -> None:
    """List, verify, restore and prune a run's checkpoints.

    RUN is a run's id, or the start of one. With --bucket, RUN must be the complete id, and no control plane
    is needed. Without a command, the checkpoints are listed.
    """
