"""Maps any error to an exit code and a message for the user."""

from collections.abc import Mapping

from prime_train.errors import ExternalError, PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.text.os_errors import EXHAUSTED, in_words

DEBUG = "PRIME_TRAIN_DEBUG"
EXTRAS = {"jwt": "github", "slack_sdk": "slack", "wandb": "wandb"}
"""The extra of prime-train that installs each optional library; every other library comes with prime-train."""


def is_debugging(environment: Mapping[str, str]) -> bool:
    return environment.get(DEBUG) == "1"


def explained(error: Exception, *, debug: bool = False) -> tuple[Exit, str]:
    """Return the exit code of an error and the message for the user. With `debug`, raises the error itself
    unless it is a UsageError.
    """
    # Imported only after an error, because it is slow to import.
    from prime_train.runs.run import IllegalMove

    if debug and not isinstance(error, UsageError):
        raise error
    match error:
        case UsageError():
            return error.code, _with_fix(error, "")
        case PermanentError():
            return Exit.EXTERNAL_REFUSED, _with_fix(error, "")
        case ExternalError():
            return Exit.EXTERNAL_FAILED, _with_fix(error, " (it may work later)")
        case IllegalMove():
            return Exit.USAGE, str(error)
        case ModuleNotFoundError() if not (error.name or "").startswith("prime_"):
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            fix = f"install it as prime-train[{extra}]" if extra else "install prime-train anew, as a whole"
            return Exit.EXTERNAL_REFUSED, f"{error.name} is not installed\n  fix: {fix}"
        case OSError() if error.filename is not None and error.errno not in EXHAUSTED:
            return Exit.EXTERNAL_REFUSED, in_words(error)
        case OSError():
            return Exit.EXTERNAL_FAILED, f"{in_words(error)} (it may work later)"
        case _:
            message = f"this is a bug in prime-train: {type(error).__name__}: {str(error)[:500]}"
            return Exit.BUG, f"{message}\n  {DEBUG}=1 shows the traceback"


def _with_fix(error: UsageError | ExternalError, note: str) -> str:
    if not error.fix:
        return f"{error}{note}"
    # Imported only if needed, because few errors come with advice of this kind.
    from prime_train.text.invocations import worded

    return f"{error}{note}\n  fix: {worded(error.fix)}"
