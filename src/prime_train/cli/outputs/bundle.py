"""`prime-train bundle RUN`: write one archive that reproduces and explains a run, or verify one."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prime_train.cli.arguments import AsJson, print_json
from prime_train.cli.checkpoints.options import Replace
from prime_train.cli.checkpoints.progress_bar import bar
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.text.formatting import size
from prime_train.operations.bundle.verify import verify_bundle
from prime_train.operations.bundle.write import write_bundle
from prime_train.ports import Bucket

WRONG_FILES_SHOWN_MAX = 20


def bundle(
    run: Annotated[str | None, typer.Argument(help="A run's id, its start, or a config's name.", show_default=False)] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write; by default RUN.tar.gz in this folder.", show_default=False),
    ] = None,
    weights: Annotated[bool, typer.Option("--weights", help="Include the files of the newest complete checkpoint, verified.")] = False,
    weights_in_bucket: Annotated[
        bool,
        typer.Option(
            "--weights-in-bucket",
            help="Refer to these files in the bucket by hash, and pin the checkpoint; with --verify, compare them there.",
        ),
    ] = False,
    replace: Replace = False,
    verify: Annotated[
        Path | None, typer.Option("--verify", metavar="FILE", help="Verify this bundle instead of writing one.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write an archive that reproduces and explains a run.

    It contains a README, the config with all its values, the code, the run with its machines, money and history, the metrics, curves, the
    run's page, the manifest of the newest checkpoint and the hash of each file. Someone who has only this archive can launch the run again.
    With --verify, an archive is checked without being unpacked; if it is damaged, the exit code is 1.
    """
    if verify is not None:
        if run is not None or out is not None or weights or replace:
            raise UsageError("--verify cannot be combined with a run or with options for writing", fix="keep one")
        return _verify(verify, Home.of(os.environ).bucket() if weights_in_bucket else None, as_json=as_json)
    if run is None:
        raise UsageError("no run was named", fix="name a run, or a file with --verify FILE")
    written = write_bundle(
        Home.of(os.environ), run, out, with_weights=weights, weights_in_bucket=weights_in_bucket, replace=replace, progress=bar
    )
    for note in written.notes:
        typer.echo(f"left out: {note}", err=True)
    if as_json:
        print_json(asdict(written) | {"file": str(written.file)})
    else:
        typer.echo(f"{written.file}: {len(written.files)} files of {written.run}, {size(written.size_bytes)}")
    return Exit.OK


def _verify(file: Path, bucket: Bucket | None, *, as_json: bool) -> int:
    found = verify_bundle(file, bucket, progress=bar)
    if as_json:
        print_json(asdict(found) | {"file": str(file), "intact": found.intact})
    else:
        typer.echo(f"{file}: {'intact' if found.intact else 'DAMAGED'} ({found.files} files of {found.run}, {size(found.size_bytes)})")
        for wrong in found.wrong_files[:WRONG_FILES_SHOWN_MAX]:
            typer.echo(f"  {wrong.path} {wrong.what}")
        if len(found.wrong_files) > WRONG_FILES_SHOWN_MAX:
            typer.echo(f"  and {len(found.wrong_files) - WRONG_FILES_SHOWN_MAX} more; --json lists them")
        if found.bucket and not found.objects_checked:
            typer.echo(f"The checkpoint's files are in {found.bucket}, and were not compared; --weights-in-bucket does that.")
    return Exit.OK if found.intact else Exit.FINDINGS
