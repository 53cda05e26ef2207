"""Which variables runs may have, as the environment of whoever asks says."""

from collections.abc import Mapping

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.run_secrets import VARIABLE, patterns


def listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The operator's list, or the default one. Raises UsageError where what is set is no list."""
    try:
        return patterns(environment.get(VARIABLE, ""))
    except ValueError as error:
        raise UsageError(str(error), code=Exit.USAGE) from None
