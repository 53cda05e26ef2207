"""Exit codes, and the conversion of errors to them."""

import atexit
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, ParamSpec

from prime_train.exit_codes import Exit
from prime_train.text.explained_errors import explained, is_debugging

P = ParamSpec("P")


@contextmanager
def reported() -> Iterator[None]:
    """Let an error in the block end the process with an exit code and one line of text instead of a
    traceback.
    """
    try:
        yield
    except KeyboardInterrupt:
        leave(Exit.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        # The reader of the output has closed the pipe; without this, Python reports an error when it flushes
        # stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.BROKEN_PIPE)
    except Exception as error:
        leave(*explained(error, debug=is_debugging(os.environ)))


def guarded(verb: Callable[P, object]) -> Callable[P, None]:
    """Return the command with its errors `reported`. A command returns its Exit; None means OK."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with reported():
            done = verb(*args, **kwargs)
            sys.stdout.flush()
        sys.exit(done if isinstance(done, Exit) else Exit.OK)

    return run


def end(leaving: SystemExit) -> None:
    """End the process at once if the object-store library (obstore) is loaded, else return. Threads of that
    library run Python code when they release a response, and the process is aborted if the interpreter is
    shutting down at that moment.
    """
    if "obstore" not in sys.modules or not isinstance(leaving.code, int | None):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    atexit._run_exitfuncs()
    os._exit(leaving.code or 0)


def leave(code: Exit, message: str) -> NoReturn:
    with suppress(OSError):  # it may be a file on a full disk; the exit code still says how it ended
        print(f"prime-train: {message}", file=sys.stderr, flush=True)
    sys.exit(code)
