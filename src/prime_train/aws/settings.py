"""The user's settings for the control plane on AWS: stack parameters, secrets, and the runtime of its
functions.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.aws.code import parameter_names
from prime_train.aws.package import Target
from prime_train.configs import policy_place
from prime_train.configs.policy import read_policy
from prime_train.errors import PermanentError, UsageError
from prime_train.providers.kinds import PROVIDERS
from prime_train.spec.access_run_secrets import VARIABLE, is_reserved, refused
from prime_train.spec.run_secrets import listed
from prime_train.text.formatting import alternatives
from prime_train.text.nearest import nearest

SECRET_BYTES_MAX = 60 * 1024
"""Size limit in bytes of the values in the secret; AWS limits a secret to 64 KiB in total."""
IN_ENVIRONMENT = ("RunSecrets", "Policy")
"""Parameters of any length that are passed to the functions as environment variables."""
ENVIRONMENT_BYTES_MAX = 2500
"""The most bytes that these may have in total. AWS allows 4 KiB for all variables of a function with their
names; the rest is left for names and addresses of the stack's parts.
"""
NO_HOME = Path("/nonexistent")
"""A policy of a stack is a parameter, never a file."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
LOCAL = ("127.0.0.1", "::1", "localhost")
SETTINGS = frozenset({"AlarmEmail", "Architecture", "Provider", "PublicUrl", "Runtime"})
"""Stack parameters that have a setting of their own, by which they must be given."""
MASTER = "PRIME_TRAIN_MASTER_KEY"
PYTHON = "python"
"""The prefix of the version in the names of Lambda runtimes."""


@dataclass(frozen=True)
class Request:
    """What to deploy; None or an absent parameter: as it is deployed now, or else the default. `secrets`:
    values for the stack's secret, by name; `machine` and `python`: the functions' architecture and version of
    Python; `code`: an existing zip to deploy.
    """

    parameters: Mapping[str, str]
    secrets: Mapping[str, str]
    machine: str | None = None
    python: str | None = None
    code: Path | None = None


def parameters(**named: str | None) -> dict[str, str]:
    """Return the parameters that were given (not None), unchanged. Raises UsageError for an invalid URL or
    e-mail address, or a provider that rents out no machines.
    """
    given = {name: value for name, value in named.items() if value is not None}
    address, email, provider = given.get("PublicUrl"), given.get("AlarmEmail"), given.get("Provider")
    renting = [name for name, row in PROVIDERS.items() if row.is_rented]
    if provider is not None and provider not in renting:
        raise UsageError(
            f"{provider[:60]!r} is no provider that rents out machines", fix=f"use {alternatives(renting)}"
        )
    if address and not _is_address(address):
        raise UsageError(
            f"the public URL {address!r} is not an address that machines can call",
            fix="use an address such as https://train.example.com",
        )
    if email and not EMAIL.fullmatch(email):
        raise UsageError(f"the address for alarms, {email!r}, is not an e-mail address")
    return given


def others(pairs: list[str]) -> dict[str, str]:
    """Parse stack parameters of the form NAME=VALUE. Raises UsageError for a malformed pair or an unknown
    name.
    """
    known, found = [name for name in parameter_names() if name not in SETTINGS], dict[str, str]()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        similar = nearest(name, known)
        if equals and name not in known and similar:
            fix = Advice(Option(SettingAdvice.PARAMETER, f"{similar[0]}={value}"), ", if you meant that")
            raise UsageError(f"{pair!r}: there is no parameter {name}", fix=fix)
        if not equals or name not in known:
            raise UsageError(
                f"{pair!r} is not of the form NAME=VALUE",
                fix=f"write NAME=VALUE, with one of these names: {', '.join(known)}",
            )
        found[name] = value
    listed({VARIABLE: found.get("RunSecrets", "")})
    _check_policy(found.get("Policy", ""))
    return found


def check_environment(parameters: Mapping[str, str]) -> None:
    """Raise UsageError if a stack's parameters would not fit into the functions' environment, which AWS would
    tell only in the middle of the deployment.
    """
    sizes = {name: len(parameters[name].encode()) for name in IN_ENVIRONMENT if name in parameters}
    if sum(sizes.values()) > ENVIRONMENT_BYTES_MAX:
        named = " and ".join(f"{name} has {size:,} bytes" for name, size in sizes.items())
        raise UsageError(
            f"{named}; at most {ENVIRONMENT_BYTES_MAX:,} fit into a function's environment variables, for "
            "all of which AWS allows 4 KiB",
            fix="shorten them, for example by globs such as JUDGE_* instead of names",
        )


def _check_policy(text: str) -> None:
    """Raise UsageError if the stack's functions could not use this policy."""
    given = {policy_place.VARIABLE: text}
    if text and policy_place.policy_file(NO_HOME, given) is not None:
        fix = Advice(Option(SettingAdvice.PARAMETER, "Policy={usd_max: 300}"))
        raise UsageError(
            f"Policy={text[:60]!r} is not the text of a policy, and functions have no files of yours", fix=fix
        )
    read_policy(NO_HOME, given)


def secrets(names: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of these variables of the environment. Raises UsageError if one is not set, or cannot
    be in the stack's secret.
    """
    for name in names:
        if not NAME.fullmatch(name):
            # What follows the "=" may be a secret.
            shown = name.partition("=")[0]
            example = shown if NAME.fullmatch(shown) else "HF_TOKEN"
            fix = Advice(
                f"export {example}=..., ",
                Call(Operation.DEPLOY, options=(Option(SettingAdvice.SECRET, example),)),
            )
            raise UsageError(
                "a secret must be given as the name of an environment variable, not as its value", fix=fix
            )
    if VARIABLE in names:
        fix = Advice(
            Call(Operation.DEPLOY, options=(Option(SettingAdvice.PARAMETER, "RunSecrets=HF_TOKEN,JUDGE_*"),))
        )
        raise UsageError(f"{VARIABLE} is not a secret but a parameter of the stack", fix=fix)
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise UsageError(
            f"secret {missing[0]}: the environment variable is not set here",
            fix=f"export {missing[0]}, and deploy again",
        )
    found = {name: environment[name] for name in names}
    if MASTER in found and not is_masters(found[MASTER]):
        raise UsageError(
            f"secret {MASTER}: the value must be one key of 64 hex digits, or several such keys separated by "
            "commas"
        )
    refuse_too_large(found)
    return found


def refuse_too_large(values: Mapping[str, object]) -> None:
    """Raise UsageError if AWS would not take these values as one secret."""
    if len(json.dumps(values)) > SECRET_BYTES_MAX:
        raise UsageError(
            f"the values of the secret have more than {SECRET_BYTES_MAX >> 10} KiB, which is AWS's limit for "
            "a secret"
        )


def for_nobody(names: Iterable[str], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of `names` that would be in the stack's secret without any use: no run receives them by
    the stack's parameter `RunSecrets`, and the control plane does not need them.
    """
    given = [name for name in names if not is_reserved(name)]
    return refused(given, listed({VARIABLE: parameters.get("RunSecrets", "")}))


def run_secrets_with(names: Iterable[str], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the list of names and globs with which runs would receive `names` too: the list by the stack's
    parameter `RunSecrets`, or the default list, followed by `names`. Setting the parameter replaces the
    entire list.
    """
    return (*listed({VARIABLE: parameters.get("RunSecrets", "")}), *names)


def is_masters(text: str) -> bool:
    """Return whether the functions accept `text` as master keys: the newest first, then older keys that are
    still accepted, separated by commas.
    """
    return re.fullmatch(r"[0-9a-fA-F]{64}(,[0-9a-fA-F]{64})*", text) is not None


def target(machine: str | None, python: str | None, now: Mapping[str, str]) -> Target:
    """Return the architecture and Python version of the functions: as given; otherwise the stack's current
    parameters (`now`); otherwise the defaults. Raises UsageError for an unsupported value.
    """
    best = Target()
    machine = machine or now.get("Architecture") or best.machine
    python = python or now.get("Runtime", "").removeprefix(PYTHON) or best.python
    try:
        return Target(machine, python)
    except PermanentError as error:
        raise UsageError(str(error)) from None


def _is_address(text: str) -> bool:
    """Return whether `text` is an https URL without query, fragment or user, because what is sent there must
    stay confidential. For tests, http is accepted on this machine.
    """
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    plain = (
        text.isascii()
        and text.isprintable()
        and " " not in text
        and not (parts.query or parts.fragment or parts.username)
    )
    if parts.scheme == "http":
        return plain and host in LOCAL
    return plain and parts.scheme == "https" and ("." in host or ":" in host)
