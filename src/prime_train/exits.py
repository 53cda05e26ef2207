"""Exit codes, and how an error becomes one."""

import atexit
import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, ParamSpec

from prime_train.core.exit_codes import Exit
from prime_train.reports.errors import explained

P = ParamSpec("P")


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
            leave(*explained(error))
        sys.exit(done if isinstance(done, Exit) else Exit.OK)

    return run


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
