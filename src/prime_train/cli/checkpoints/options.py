"""Options that several commands of `prime-train checkpoints` share."""

from pathlib import Path
from typing import Annotated

import typer

# It has no name in the usage line, where RUN precedes the command.
RunId = Annotated[str, typer.Argument(metavar="", hidden=True, show_default=False)]
BucketUrl = Annotated[
    str | None, typer.Option("--bucket", metavar="URL", help="Where the checkpoints are; else $PRIME_TRAIN_BUCKET.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Step = Annotated[int | None, typer.Option(min=0, metavar="N", help="This checkpoint, not the newest complete one.", show_default=False)]
PinnedStep = Annotated[int, typer.Argument(min=0, metavar="STEP", help="The checkpoint's step.", show_default=False)]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to put the checkpoint's own folder into.", show_default=False)]
Replace = Annotated[bool, typer.Option("--replace", help="What is there under the same name goes.")]
