"""`prime-train config`: keep versions of a config, compare them, and show which runs used them."""

import typer

from prime_train.cli.config.diff import diff
from prime_train.cli.config.listing import list_
from prime_train.cli.config.restore import restore
from prime_train.cli.config.save import save
from prime_train.cli.help.examples import epilog
from prime_train.exits import guarded

config = typer.Typer(name="config", no_args_is_help=True, rich_markup_mode=None)
config.command("save", epilog=epilog("config save"))(guarded(save))
config.command("list", epilog=epilog("config list"))(guarded(list_))
config.command("diff", epilog=epilog("config diff"))(guarded(diff))
config.command("restore", epilog=epilog("config restore"))(guarded(restore))


@config.callback()
def options() -> None:
    """Keep, compare and restore versions of a config.

    They lie in PRIME_TRAIN_HOME (~/.prime-train), under configs/ and the name of the file.
    """
