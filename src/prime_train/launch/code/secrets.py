"""Looks through the code that a launch would upload for secrets: tokens of a known form, private keys, files
of credentials.

The forms of tokens are those of detect-secrets, and those of the services that this tool works with, which it
lacks. Nothing is judged by its entropy: hashes in lock files, images in notebooks and ids of models look
random, too. A value is never part of what is found.

Measured in November 2026 on two busy cores: 64 MiB in 5,000 files take 1.5 s, and 12 MiB in 1,900 files 0.5
s.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import re2
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector

from prime_train.launch.code.variable_files import holds_variables

FILE_BYTES_MAX = 2**20
_ANY_OF_BYTES_MAX = 64 * 2**20
"""Bytes that RE2 may use to look for all forms at once. With its own limit of 8 MiB it runs out of them."""
"""Bytes of one file that are looked through. Code is shorter; what is longer are data, and notebooks with
images.
"""
BINARY_BYTES = 8192
"""A file with a zero byte among its first bytes is binary."""
DISTINCT_MIN = 5
"""Different characters of a value below which it is a placeholder, such as xxxx."""

_PLUGINS = (
    *(
        AWSKeyDetector,
        AzureStorageKeyDetector,
        DiscordBotTokenDetector,
        GitHubTokenDetector,
        GitLabTokenDetector,
        NpmDetector,
    ),
    *(
        OpenAIDetector,
        PypiTokenDetector,
        SendGridDetector,
        SlackDetector,
        SquareOAuthDetector,
        StripeDetector,
    ),
)
_OWN = (
    ("Hugging Face token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    (
        "Weights & Biases key",
        r"(?i)wandb(?:_api_key[\"']?\s{0,9}[:=]\s{0,9}[\"']?|\s+login\s+)[0-9a-f]{40}\b|\bwandb_v\d+_\w{16,}",
    ),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("OpenAI key", r"\bsk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{40,}"),
    ("Prime Intellect key", r"\bpit_[A-Za-z0-9]{32,}"),
    ("RunPod key", r"\brpa_[A-Za-z0-9]{30,}"),
    ("Lambda Cloud key", r"\bsecret_[A-Za-z0-9_-]{1,100}_[0-9a-f]{32}\.[A-Za-z0-9]{16,}"),
    ("Vast.ai key", r"(?i)vast_api_key[\"']?\s{0,9}[:=]\s{0,9}[\"']?[0-9a-f]{64}\b"),
    (
        "key of prime-train",
        r"\bpt_[a-z]{3,20}_[0-9a-f]{64}\b|PRIME_TRAIN_MASTER_KEY[\"']?\s{0,9}[:=]\s{0,9}[\"']?[0-9a-f]{64}\b",
    ),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    ("Groq key", r"\bgsk_[A-Za-z0-9]{50,}"),
    ("Replicate token", r"\br8_[A-Za-z0-9]{37}\b"),
    ("AWS secret key", r"(?i)aws_secret_access_key[\"']?\s{0,9}[:=]\s{0,9}[\"']?[A-Za-z0-9/+]{40}\b"),
    ("AWS session token", r"(?i)aws_session_token[\"']?\s{0,9}[:=]\s{0,9}[\"']?[A-Za-z0-9/+]{100,}"),
    (
        "private key",
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|\s){1,9}(?:[A-Za-z-]+: "
        r"[^\n]*\s+){0,9}[A-Za-z0-9+/=]{40,}",
    ),
    ("private key", r"PuTTY-User-Key-File-\d+: |\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
)
_NOT_FOLLOWED, _AT_MOST = re.compile(r"\(\?![^()]*\)"), re.compile(r"\{(\d+),\d+\}")
_CREDENTIALS = re.compile(
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)|master\.key|\.netrc|_netrc|\.pypirc|\.git-credentials|\.boto|"
    r"\.s3cfg|\.passwd-s3fs|kaggle\.json|rclone\.conf"
    r"|application_default_credentials\.json|\.aws/credentials|\.kube/config|kubeconfig|"
    r"\.docker/config\.json|\.config/gh/hosts\.yml"
    r"|\.?huggingface/token|[^/]+\.(?:ppk|p12|pfx|kdbx|jks|keystore))$"
)
"""Paths of files that exist to hold credentials."""
_SET = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASS|PAT|CREDENTIALS?|API_?KEY|ACCESS_KEY|SECRET_KEY|"
    r"PRIVATE_KEY|KEY)(?:_?\d+)?$",
    re.I,
)
_NO_VALUE = re.compile(
    r"[$<{/.~].*|.*(?:your|change|replace|example|placeholder|dummy|redacted|xxx).*|true|false|none|null|"
    r"[-0-9.]*",
    re.I,
)
CHARS_MIN = 6


@dataclass(frozen=True)
class FoundSecret:
    """A secret in a file: its line, from 1 on, and its kind."""

    path: str
    line: int
    kind: str


def secrets_in(folder: Path, names: Iterable[str], allowed: Collection[str] = ()) -> Iterator[FoundSecret]:
    """Yield the first secret of each file. `names`: paths inside the folder; `allowed`: those of files that
    are let through. Files that cannot be read are left to whoever packs them.
    """
    forms = _forms()
    for name in names:
        if name in allowed:
            continue
        found = _by_name(name) or _by_content(folder / name, name, forms)
        if found is not None:
            yield found


@dataclass(frozen=True)
class _Forms:
    """The forms of tokens. `any_of`: a pattern that finds any of them, and little else, in one pass; `each`:
    kind and finder of each.
    """

    any_of: Callable[[bytes], object]
    each: tuple[tuple[str, Callable[[str], Iterable[str]]], ...]


@cache
def _forms() -> _Forms:
    plugins = [plugin() for plugin in _PLUGINS]
    patterns = [pattern for _, pattern in _OWN]
    for pattern in (pattern for plugin in plugins for pattern in plugin.denylist):
        # What must not follow is left to the plugin: the first pass may find too much, and never too little.
        plain = _AT_MOST.sub(r"{\1,}", _NOT_FOLLOWED.sub("", pattern.pattern))
        patterns.append(f"(?i:{plain})" if pattern.flags & re.IGNORECASE else plain)
    options = re2.Options()
    # Where the automaton of all forms does not fit, RE2 goes on without it, and says so on stderr.
    options.max_mem, options.log_errors = _ANY_OF_BYTES_MAX, False
    any_of = re2.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode(), options)
    own = [(kind, _finder(pattern)) for kind, pattern in _OWN]
    # Not by the plugins' own search, which returns only the group of a form that has one: `ghp` of a token of
    # GitHub.
    theirs = [(plugin.secret_type, _all_of(pattern)) for plugin in plugins for pattern in plugin.denylist]
    return _Forms(any_of.search, (*own, *theirs))


def _all_of(pattern: re.Pattern[str]) -> Callable[[str], Iterable[str]]:
    return lambda text: (match.group(0) for match in pattern.finditer(text))


def _finder(pattern: str) -> Callable[[str], Iterable[str]]:
    compiled = re2.compile(pattern)
    return lambda text: (match.group(0) for match in compiled.finditer(text))


def _by_name(name: str) -> FoundSecret | None:
    return FoundSecret(name, 1, "file of credentials") if _CREDENTIALS.search(f"/{name}") else None


def _by_content(path: Path, name: str, forms: _Forms) -> FoundSecret | None:
    data = _content(path)
    if not holds_variables(name) and not forms.any_of(data):
        return None
    text = data.decode(errors="replace")
    values = ((kind, value) for kind, find in forms.each for value in find(text) if value)
    found = [(text.find(value), kind) for kind, value in values if not _is_placeholder(value)]
    if holds_variables(name):
        found += [
            (match.start(1), f"secret in {match[1]}")
            for match in _SET.finditer(text)
            if _is_set(match[1], match[2])
        ]
    at, kind = min(found, default=(-1, ""))
    return FoundSecret(name, text.count("\n", 0, max(at, 0)) + 1, kind) if kind else None


def _is_placeholder(value: str) -> bool:
    """Return whether the value is one that documentation uses, such as hf_xxxx or AWS's own example."""
    body = max(re.split(r"[_\-=:\s\"']", value), key=len)
    return "EXAMPLE" in value.upper() or len(set(body.lower())) < DISTINCT_MIN


def _is_set(name: str, value: str) -> bool:
    return (
        _SECRET_NAME.search(name) is not None
        and len(value) >= CHARS_MIN
        and _NO_VALUE.fullmatch(value) is None
    )


def _content(path: Path) -> bytes:
    """Return the beginning of a text file; empty for links, binary files, and files that cannot be read."""
    try:
        if path.is_symlink():
            return b""
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX)
    except OSError:
        return b""
    return b"" if b"\0" in data[:BINARY_BYTES] else data
