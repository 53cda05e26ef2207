"""The environment variables that a run may receive, read from the caller's environment."""

from collections.abc import Mapping

from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.spec.access_run_secrets import VARIABLE, patterns


def listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the operator's list of name patterns, or the default list. Raises UsageError if the variable
    does not hold a valid list.
    """
    try:
        return patterns(environment.get(VARIABLE, ""))
    except ValueError as error:
        raise UsageError(str(error), code=Exit.USAGE) from None
