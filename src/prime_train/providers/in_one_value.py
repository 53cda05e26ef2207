"""All providers' credentials as one value, for places such as GitHub that hand a job each secret by its name:
a JSON object of the variables' names and values, in one line.
"""

import json
from collections.abc import Callable, Mapping

from prime_train.environment import CREDENTIALS
from prime_train.errors import UsageError
from prime_train.providers.kinds import PROVIDERS, credentials
from prime_train.providers.portable import carried
from prime_train.providers.stored_keys import has_value

EXAMPLE = '{"RUNPOD_API_KEY": "..."}'


def in_one_value(environment: Mapping[str, str]) -> str:
    """Return the value with the credentials of all providers that are set up in the environment, empty if
    there are none. Raises UsageError if some can only be used on this machine.
    """
    there = [
        row.credentials
        for row in PROVIDERS.values()
        if row.credentials and all(has_value(one, environment) for one in row.credentials)
    ]
    values = {name: environment[name].strip() for names in there for name in names}
    return json.dumps(dict(carried(values, environment).values)) if values else ""


def taken_apart(text: str, warn: Callable[[str], object], *, called: str = CREDENTIALS) -> dict[str, str]:
    """Return the credentials in the value by the names of their variables. `warn` is told of names that no
    provider has. Raises UsageError, which repeats nothing of the value that is called so, if it is no such
    value.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise UsageError(f"{called} is not a JSON object of names and texts", fix=f"write it as {EXAMPLE}")
    known = credentials()
    unknown = [name for name in content if name not in known]
    if unknown:
        warn(
            f"{called} has {len(unknown)} values that are no credentials of a provider; there are "
            f"{', '.join(sorted(known))}"
        )
    return {name: value for name, value in content.items() if name in known}


def with_credentials(environment: Mapping[str, str], warn: Callable[[str], object]) -> Mapping[str, str]:
    """Return the environment with the credentials in `PRIME_TRAIN_CREDENTIALS` that it does not set itself,
    as with those that a home keeps. Raises UsageError as `taken_apart` does.
    """
    if not has_value(CREDENTIALS, environment):
        return environment
    given = taken_apart(environment[CREDENTIALS], warn)
    return {
        **environment,
        **{name: value for name, value in given.items() if not has_value(name, environment)},
    }
