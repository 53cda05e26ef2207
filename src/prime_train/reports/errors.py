"""Maps any error to an exit code and a message for the user."""

import os

from prime_train.core.errors import OutsideError, PermanentError, UsageError
from prime_train.core.exit_codes import Exit

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
"""The extra of prime-train that installs each optional library; any other library is part of the extras `server` and `s3`."""


def explained(error: Exception) -> tuple[Exit, str]:
    """Return the exit code of an error and the message for the user. Raises the error itself if PRIME_TRAIN_DEBUG is 1 and it is not a
    UsageError."""
    # Imported only after an error, because it is slow to import.
    from prime_train.core.run import IllegalMove

    if os.environ.get(DEBUG) == "1" and not isinstance(error, UsageError):
        raise error
    match error:
        case UsageError():
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
