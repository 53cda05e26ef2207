"""The user's settings for the control plane on AWS: stack parameters, secrets, and the runtime of its functions."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prime_train.configs.run_secrets import listed
from prime_train.core.access.run_secrets import NEVER, VARIABLE, refused
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from prime_train.adapters.aws_deploy import Target

SECRET_BYTES_MAX = 60 * 1024
"""AWS limits a secret to 64 KiB in total."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
LOCAL = ("127.0.0.1", "::1", "localhost")
OPTIONS = frozenset({"AlarmEmail", "Architecture", "Provider", "PublicUrl", "Runtime"})
"""Parameters with command-line options of their own."""
MASTER = "PRIME_TRAIN_MASTER_KEY"
PYTHON = "python"
"""The prefix of the version in the names of Lambda runtimes."""


def parameters(**named: str | None) -> dict[str, str]:
    """Return the parameters that were given (not None), unchanged. Raises UsageError for an invalid URL or e-mail address."""
    said = {name: value for name, value in named.items() if value is not None}
    address, email = said.get("PublicUrl"), said.get("AlarmEmail")
    if address and not _is_address(address):
        raise UsageError(f"--public-url {address!r} is no address that machines could call", fix="one such as https://train.example.com")
    if email and not EMAIL.fullmatch(email):
        raise UsageError(f"--alarm-email {email!r} is no address of mail")
    return said


def others(pairs: list[str]) -> dict[str, str]:
    """Parse stack parameters of the form NAME=VALUE. Raises UsageError for a malformed pair or an unknown name."""
    from prime_train.operations.aws.code import parameter_names

    known, found = [name for name in parameter_names() if name not in OPTIONS], dict[str, str]()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        near = get_close_matches(name, known, n=1)
        if equals and name not in known and near:
            raise UsageError(f"--set {pair!r}: there is no parameter {name}", fix=f"--set {near[0]}={value}, if that is meant")
        if not equals or name not in known:
            raise UsageError(f"--set {pair!r} is no parameter and its value", fix=f"NAME=VALUE, with one of {', '.join(known)}")
        found[name] = value
    listed({VARIABLE: found.get("RunSecrets", "")})
    return found


def secrets(names: list[str]) -> dict[str, str]:
    for name in names:
        if not NAME.fullmatch(name):
            # What follows the "=" may be a secret.
            shown = name.partition("=")[0]
            example = shown if NAME.fullmatch(shown) else "HF_TOKEN"
            fix = f"export {example}=..., prime-train deploy --secret {example}"
            raise UsageError("--secret takes the name of a variable, and not its value", fix=fix)
    if VARIABLE in names:
        raise UsageError(
            f"{VARIABLE} is no secret, and a parameter of the stack", fix="prime-train deploy --set RunSecrets=HF_TOKEN,JUDGE_*"
        )
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise UsageError(f"--secret {missing[0]}: that variable is not set here", fix=f"export {missing[0]}, and deploy again")
    found = {name: os.environ[name] for name in names}
    if MASTER in found and not is_masters(found[MASTER]):
        raise UsageError(f"--secret {MASTER}: that is not 64 hex digits, or several such keys with a comma between them")
    if len(json.dumps(found)) > SECRET_BYTES_MAX:
        raise UsageError(f"--secret: the values come to more than {SECRET_BYTES_MAX >> 10} KiB, which no secret of AWS holds")
    return found


def for_nobody(names: Iterable[str], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that go into the stack's secret but that no run receives by its `RunSecrets` parameter, although the control plane
    does not need them either."""
    given = [name for name in names if not name.startswith(NEVER)]
    return refused(given, listed({VARIABLE: parameters.get("RunSecrets", "")}))


def is_masters(text: str) -> bool:
    """Return whether the functions accept `text` as master keys: the newest first, then older keys that are still accepted, separated by
    commas."""
    return re.fullmatch(r"[0-9a-fA-F]{64}(,[0-9a-fA-F]{64})*", text) is not None


def target(machine: str | None, python: str | None, now: Mapping[str, str]) -> "Target":
    """Return the architecture and Python version of the functions: as given; otherwise the stack's current parameters (`now`); otherwise
    the defaults. Raises UsageError for an unsupported value."""
    from prime_train.adapters.aws_deploy import Target
    from prime_train.ports import PermanentError

    best = Target()
    machine = machine or now.get("Architecture") or best.machine
    python = python or now.get("Runtime", "").removeprefix(PYTHON) or best.python
    try:
        return Target(machine, python)
    except PermanentError as error:
        raise UsageError(str(error)) from None


def _is_address(text: str) -> bool:
    """Return whether `text` is an https URL without query, fragment or user, because what is sent there must stay confidential. For tests,
    http is accepted on this machine."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text and not (parts.query or parts.fragment or parts.username)
    if parts.scheme == "http":
        return plain and host in LOCAL
    return plain and parts.scheme == "https" and ("." in host or ":" in host)
