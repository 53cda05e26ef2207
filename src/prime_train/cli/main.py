"""The entry point of `prime-train`."""

import os

# Pydantic's search for plugins reads the metadata of every installed package at the start; no plugin is
# needed here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from prime_train.cli.verbs import app
from prime_train.terminal.exits import end
from prime_train.terminal.output import install_safe_streams


def main() -> None:
    """Run one command and exit with its exit code."""
    install_safe_streams()
    try:
        app()
    except SystemExit as error:
        end(error)
        raise


if __name__ == "__main__":
    main()
