"""Secrets that are written into a config, found by the look of a value or by the name in front of it. A value is never repeated."""

import re
from collections.abc import Iterator

from prime_train.adapters.config_yaml.nodes import Entry, Mapping, Scalar, Trouble, scalars

NAMED_CHARS_MIN = 8

_LOOKS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
    r"|gh[opsu]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}"  # GitHub
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r")"
    r"|(?<=://)[^/\s:@]+:[^/\s@]{3,}(?=@)"  # user:password@host
)
_NAMES = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY)(_?\d+)?$", re.IGNORECASE)
_SHORT = re.compile(r"(^|_)(PASSWORD|PASSWD)", re.IGNORECASE)
_NO_SECRET = re.compile(r"[<${/.~].*|true|false|yes|no|on|off|none|[-+0-9.]*", re.IGNORECASE)
"""Special tokens such as <pad>, references, paths and switches."""

HIDDEN = "(hidden)"


def masked(text: str) -> str:
    """The text with what looks like a secret taken out."""
    return _LOOKS.sub(HIDDEN, text)


def spelled_out(root: Mapping) -> Iterator[Trouble]:
    """Each value that looks like a secret, and each variable whose name says that it is one."""
    environment = root.entry("environment")
    variables = environment.value.entries if environment is not None and isinstance(environment.value, Mapping) else ()
    named = [entry for entry in variables if _names_a_secret(entry)]
    yield from (_trouble(entry.value, entry.key) for entry in named if isinstance(entry.value, Scalar))
    told = {id(entry.value) for entry in named}
    yield from (_trouble(value, None) for value in scalars(root) if _LOOKS.search(value.text) and id(value) not in told)


def _names_a_secret(entry: Entry) -> bool:
    if not isinstance(entry.value, Scalar) or not _NAMES.search(entry.key):
        return False
    text = entry.value.text
    if _LOOKS.search(text):
        return True
    enough = bool(text) if _SHORT.search(entry.key) else len(text) >= NAMED_CHARS_MIN
    return enough and " " not in text and not _NO_SECRET.fullmatch(text)


def _trouble(value: Scalar, name: str | None) -> Trouble:
    what = f"environment.{name} holds a secret" if name else "a value that looks like a secret"
    listed = f"write secrets: [{name}]" if name else "put the name of its variable under secrets"
    fix = f"{listed} and set it where the control plane runs; the value that was here must be replaced"
    return Trouble("PT020", value.place, what, fix=fix)
