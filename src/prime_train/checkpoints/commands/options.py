"""Arguments that several commands of `prime-train checkpoints` share, and the run that they name."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from prime_train.checkpoints.lookup import Found


# It has no name in the usage line, where RUN precedes the command.
RunId = Annotated[str, typer.Argument(metavar="", hidden=True, show_default=False)]
BucketUrl = Annotated[
    str | None,
    typer.Option(
        "--bucket",
        metavar="URL",
        help="URL of the bucket; by default $PRIME_TRAIN_BUCKET.",
        show_default=False,
    ),
]
Step = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Use the checkpoint of this step instead of the newest complete one.",
        show_default=False,
    ),
]
PinnedStep = Annotated[
    int, typer.Argument(min=0, metavar="STEP", help="The checkpoint's step.", show_default=False)
]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder in which the checkpoint's own folder is created.", show_default=False
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace existing files of the same name.")]


def found_run(run: str, bucket: str | None) -> "Found":
    from prime_train.app.home import Home
    from prime_train.checkpoints.lookup import look

    return look(Home.of(os.environ).stored_runs(bucket), run)
