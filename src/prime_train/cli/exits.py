"""Exit codes, and how an error becomes one."""

import atexit
import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import NoReturn, ParamSpec

P = ParamSpec("P")

DEBUG = "PRIME_TRAIN_DEBUG"
EXTRAS = {
    "boto3": "aws",
    "botocore": "aws",
    "cryptography": "prime",
    "paramiko": "prime",
    "jwt": "github",
    "slack_sdk": "slack",
    "wandb": "wandb",
}
"""Where a library comes from that is not there; any other comes with what serves."""


class Exit(IntEnum):
    """What the process says when it leaves."""

    OK = 0
    FINDINGS = 1
    """The config has mistakes, or the run that was followed did not succeed."""
    USAGE = 2
    """A wrong option, a run that is not there, a wish that is not possible."""
    OUTSIDE_FAILED = 3
    """Something outside failed for now: try again."""
    OUTSIDE_REFUSED = 4
    """Something outside refused: trying again will not help."""
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class Refused(Exception):
    """The user's wish can not be met: what is wrong, and what to do about it."""

    def __init__(self, message: str, *, fix: str = "", code: Exit = Exit.USAGE) -> None:
        super().__init__(message)
        self.fix, self.code = fix, code


def guarded(verb: Callable[P, object]) -> Callable[P, None]:
    """The verb, leaving with an exit code and a line of text instead of a traceback. A verb returns its Exit; None is OK."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            done = verb(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            leave(Exit.INTERRUPTED, "interrupted")
        except BrokenPipeError:
            # Whoever read the output has left; Python must not complain about it at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(Exit.BROKEN_PIPE)
        except Exception as error:
            leave(*told(error))
        sys.exit(done if isinstance(done, Exit) else Exit.OK)

    return run


def told(error: Exception) -> tuple[Exit, str]:
    """The exit code of an error, and what the user is told."""
    # The port's errors are heavy to import, so only once something went wrong.
    from prime_train.core.run import IllegalMove
    from prime_train.ports import OutsideError, PermanentError

    if os.environ.get(DEBUG) == "1" and not isinstance(error, Refused):
        raise error
    match error:
        case Refused():
            return error.code, f"{error}\n  fix: {error.fix}" if error.fix else str(error)
        case PermanentError():
            return Exit.OUTSIDE_REFUSED, str(error)
        case OutsideError():
            return Exit.OUTSIDE_FAILED, f"{error} (it may work later)"
        case IllegalMove():
            return Exit.USAGE, str(error)
        case ModuleNotFoundError() if not (error.name or "").startswith("prime_"):
            extra = EXTRAS.get((error.name or "").partition(".")[0], "server,s3")
            return Exit.OUTSIDE_REFUSED, f"{error.name} is not installed\n  fix: install it as prime-train[{extra}]"
        case OSError() if error.filename is not None:
            return Exit.OUTSIDE_REFUSED, f"{error.filename}: {error.strerror}"
        case _:
            said = f"this is a bug in prime-train: {type(error).__name__}: {str(error)[:500]}"
            return Exit.BUG, f"{said}\n  {DEBUG}=1 shows where"


def end(said: SystemExit) -> None:
    """Ends the process here and now, where the library for object stores was used: what its threads let go of after an answer they do in
    Python, and a process in which Python is being taken down is aborted for it. Does nothing where it was not."""
    if "obstore" not in sys.modules or not isinstance(said.code, int | None):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(said.code or 0)


def leave(code: Exit, message: str) -> NoReturn:
    print(f"prime-train: {message}", file=sys.stderr)
    sys.exit(code)
