"""The agent of one attempt on this machine, started by a person."""

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from prime_train.errors import UsageError
from prime_train.runs.wire import Ticket

TICKET_BYTES_MAX = 64 * 1024


def agent_command(source: Path | Callable[[int], bytes], disk: Path | None) -> list[str]:
    """Return the program that is the agent of the ticket's attempt, with its arguments. The ticket is copied
    into the folder that the agent works in, where only its owner can read it. `source`: the ticket's file, or
    a function that reads it; `disk`: the folder.

    Raises UsageError if there is no ticket. No message contains any of it.
    """
    ticket = _parsed(source)
    folder = (
        disk if disk is not None else Path.home() / "prime-train" / f"{ticket.run}-e{ticket.attempt}"
    ).absolute()
    path = folder / "ticket.json"
    draft = path.with_name(f".ticket-{secrets.token_hex(4)}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w"
        ) as file:
            file.write(ticket.model_dump_json())
        draft.replace(path)
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror or error}", fix="name a folder that can be written to"
        ) from error
    return [sys.executable, "-I", "-m", "prime_agent.main", "--ticket", str(path), "--disk", str(folder)]


def _parsed(source: Path | Callable[[int], bytes]) -> Ticket:
    what = source if isinstance(source, Path) else "standard input"
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                data = file.read(TICKET_BYTES_MAX)
        else:
            data = source(TICKET_BYTES_MAX)
        return Ticket.model_validate_json(data)
    except OSError as error:
        raise UsageError(
            f"{what}: {error.strerror or error}",
            fix="give the attempt's ticket.json, or - for standard input",
        ) from error
    except ValueError:
        # Not chained: the error holds the content, which includes a key.
        raise UsageError(
            f"{what} is not a ticket",
            fix="give the attempt's ticket.json, as it is in ~/.prime-train/RUN-eN/",
        ) from None
