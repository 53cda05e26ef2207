"""The environment variables that a run may receive, read from the caller's environment."""

from collections.abc import Mapping

from prime_train.core.access.run_secrets import VARIABLE, patterns
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit


def listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the operator's list of name patterns, or the default list. Raises UsageError if the variable does not hold a valid list."""
    try:
        return patterns(environment.get(VARIABLE, ""))
    except ValueError as error:
        raise UsageError(str(error), code=Exit.USAGE) from None
