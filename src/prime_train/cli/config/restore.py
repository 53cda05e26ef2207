"""`prime-train config restore CONFIG VERSION`: replace a config by a saved version."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.operations.config_versions import Version


def restore(
    config: Annotated[Path, typer.Argument(help="The config, such as configs/demo.yaml.", show_default=False)],
    version: Annotated[int, typer.Argument(help="Its number.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Even if what is there now is in no version.")] = False,
) -> Exit:
    """Write a version back, and the trainer's file with it."""
    from prime_train.operations.config_versions import trainer_file, versions_of

    versions = versions_of(config)
    wanted = versions.get(version)
    beside = trainer_file(wanted.texts.config) if wanted.texts.trainer is not None else None
    files = {config: wanted.texts.config} | ({beside: wanted.texts.trainer or ""} if beside is not None else {})
    lost = [path for path, text in files.items() if not force and _is_lost(path, text, versions.all())]
    if lost:
        raise UsageError(f"{lost[0]} is in no version: it would be lost", fix=f"prime-train config save {config}, or add --force")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}-restored")
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(path)
    typer.echo(f"{', '.join(map(str, files))}: {wanted.title}")
    return Exit.OK


def _is_lost(path: Path, text: str, saved: "tuple[Version, ...]") -> bool:
    """Return whether overwriting the file with `text` would lose contents that no version has."""
    if not path.is_file():
        return False
    there = path.read_bytes().decode("utf-8", "replace")
    kept = {one for version in saved for one in (version.texts.config, version.texts.trainer)}
    return there != text and there not in kept
