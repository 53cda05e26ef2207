"""`prime-train bundle RUN`: write one archive that reproduces and explains a run, or verify one."""

import getpass
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.commands.options import Replace
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.text.formatting import size

if TYPE_CHECKING:
    from prime_train.interop.bundle.verify import VerifiedBundle

WRONG_FILES_SHOWN_MAX = 20


def bundle(
    run: Annotated[
        str | None, typer.Argument(help="A run's id, its start, or a config's name.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="File to write; by default RUN.tar.gz in this folder.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights", help="Include the files of the newest complete checkpoint, verified.")
    ] = False,
    weights_in_bucket: Annotated[
        bool,
        typer.Option(
            "--weights-in-bucket",
            help="Refer to these files in the bucket by hash, and pin the checkpoint; with --verify, compare "
            "them there.",
        ),
    ] = False,
    replace: Replace = False,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify", metavar="FILE", help="Verify this bundle instead of writing one.", show_default=False
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            metavar="KEY",
            help="Sign it with this SSH key, such as ~/.ssh/id_ed25519.",
            show_default=False,
        ),
    ] = None,
    signer: Annotated[
        str | None,
        typer.Option(
            "--signer",
            metavar="PUBKEY",
            help="With --verify: the SSH public key that must have signed it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write an archive that reproduces and explains a run.

    It contains a README, the config with all its values, the code, the run with its machines, money and
    history, the metrics, curves, the run's page, the manifest of the newest checkpoint and the hash of each
    file. Someone who has only this archive can launch the run again. With --verify, an archive is checked
    without being unpacked; if it is damaged or not safe to unpack, the exit code is 1. What its config and
    code ask for is listed. No verification proves that code is harmless.
    """
    from prime_train.app.home import Home
    from prime_train.checkpoints.commands.progress_bar import bar
    from prime_train.interop.bundle.ssh_signature import signing_key
    from prime_train.interop.bundle.write import write_bundle

    if verify is not None:
        if run is not None or out is not None or weights or replace or sign is not None:
            raise UsageError(
                "--verify cannot be combined with a run or with options for writing", fix="keep one"
            )
        return _verify(
            verify, Home.of(os.environ).bucket() if weights_in_bucket else None, signer, as_json=as_json
        )
    if signer is not None:
        raise UsageError(
            "--signer says who must have signed a bundle that is verified",
            fix="add --verify FILE, or sign one with --sign KEY",
        )
    if run is None:
        raise UsageError("no run was named", fix="name a run, or a file with --verify FILE")
    key = signing_key(sign.expanduser(), _passphrase) if sign is not None else None
    written = write_bundle(
        Home.of(os.environ),
        run,
        out,
        with_weights=weights,
        weights_in_bucket=weights_in_bucket,
        sign_with=key,
        replace=replace,
        progress=bar,
    )
    for note in written.notes:
        typer.echo(f"left out: {note}", err=True)
    if as_json:
        print_json(asdict(written) | {"file": str(written.file)})
    else:
        signed = f", signed by {key.fingerprint}" if key is not None else ""
        typer.echo(
            f"{written.file}: {len(written.files)} files of {written.run}, {size(written.size_bytes)}{signed}"
        )
    return Exit.OK


def _passphrase() -> str:
    if not sys.stdin.isatty():
        raise UsageError(
            "the key has a passphrase, and nobody can be asked for it", fix="run the command in a terminal"
        )
    return getpass.getpass("passphrase of the key: ")


def _verify(file: Path, bucket: Bucket | None, signer: str | None, *, as_json: bool) -> int:
    from prime_train.checkpoints.commands.progress_bar import bar
    from prime_train.interop.bundle.ssh_signature import public_key
    from prime_train.interop.bundle.verify import verify_bundle

    key = (
        public_key(str(Path(signer).expanduser()) if not signer.startswith("ssh-") else signer)
        if signer is not None
        else None
    )
    found = verify_bundle(file, bucket, signer=key, progress=bar)
    if as_json:
        print_json(asdict(found) | {"file": str(file), "intact": found.intact, "verdict": found.verdict})
    else:
        typer.echo(f"{file}: {found.verdict} ({found.files} files of {found.run}, {size(found.size_bytes)})")
        for wrong in found.wrong_files[:WRONG_FILES_SHOWN_MAX]:
            typer.echo(f"  {wrong.path} {wrong.what}")
        if len(found.wrong_files) > WRONG_FILES_SHOWN_MAX:
            typer.echo(f"  and {len(found.wrong_files) - WRONG_FILES_SHOWN_MAX} more; --json lists them")
        _print_more(found)
        if found.bucket and not found.objects_checked:
            typer.echo(
                f"The checkpoint's files are in {found.bucket}, and were not compared; --weights-in-bucket "
                "does that."
            )
    return Exit.OK if found.intact else Exit.FINDINGS


def _print_more(found: "VerifiedBundle") -> None:
    if found.signed_by and not found.signer_checked:
        typer.echo(f"signed by {found.signed_by}: whose key that is, --signer PUBKEY checks")
    if found.risks:
        typer.echo("before you launch it:")
    for risk in found.risks:
        typer.echo(f"  {risk}")
    typer.echo(found.not_proven)
