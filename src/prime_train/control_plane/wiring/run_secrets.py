"""Which variables runs may have, as the environment of whoever asks says."""

from collections.abc import Mapping

from prime_train.cli.exits import Exit, Refused
from prime_train.core.run_secrets import VARIABLE, patterns


def listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The operator's list, or the default one. Raises Refused where what is set is no list."""
    try:
        return patterns(environment.get(VARIABLE, ""))
    except ValueError as error:
        raise Refused(str(error), code=Exit.USAGE) from None
