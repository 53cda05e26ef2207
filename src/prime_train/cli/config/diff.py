"""`prime-train config diff CONFIG [FROM] [TO]`: show two versions side by side, the meaning of each change, and the runs that used them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.cli.config.side_by_side import Side
    from prime_train.core.run import Run
    from prime_train.operations.config_versions import Versions

NOW = "now"


def diff(
    config: Annotated[Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)],
    before: Annotated[str, typer.Argument(metavar="[FROM]", help="A version; without it, the newest.", show_default=False)] = "",
    after: Annotated[str, typer.Argument(metavar="[TO]", help="A version, or now: the file as it is.", show_default=False)] = NOW,
) -> Exit:
    """Show two versions side by side, and what each change means."""
    from prime_train.cli.config.side_by_side import picture
    from prime_train.operations.config_runs import runs_of, users
    from prime_train.operations.config_versions import versions_of
    from prime_train.output import console

    versions = versions_of(config)
    saved = versions.all()
    if not saved:
        raise UsageError(f"{config.stem} has no versions yet", fix=f"keep one: prime-train config save {config}")
    used = users(saved, runs_of(versions.home))
    sides = [_side(versions, text or str(saved[-1].number), used) for text in (before, after)]
    if sides[0].texts == sides[1].texts:
        typer.echo(f"{sides[0].title} and {sides[1].title} are the same")
        return Exit.OK
    console().print(picture(config.name, *sides))
    return Exit.OK


def _side(versions: "Versions", text: str, used: "dict[int, tuple[Run, ...]]") -> "Side":
    from prime_train.cli.config.side_by_side import Side

    if text == NOW:
        return Side(NOW, versions.now())
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"{text} is no version", fix=f"write its number, or {NOW}")
    version = versions.get(int(text))
    return Side(version.title, version.texts, used[version.number])
