"""GitHub by its own tool `gh`, with which the user has logged in: the log-in's token never enters this
process.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from urllib.parse import urlencode

from prime_train.errors import TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.github.api import VERSION, GitHub
from prime_train.http import HttpResponse, Parameters
from prime_train.text.retry_after import retry_after_s

GH_S = 60
REASON_CHARS_MAX = 300
SECRET_BYTES_MAX = 48 * 1024
NOT_LOGGED_IN = 4
"""Exit code of gh."""
UNAUTHORIZED = 401
HERE = "repos/{owner}/{repo}"
"""What gh replaces by the repository of the current folder, or of the variable GH_REPO."""
LOG_IN = "gh auth login"
_STATUS = re.compile(rb"HTTP/\S+ (\d{3})\b")
_HEAD = re.compile(rb"\r?\n\r?\n")
_UNREACHABLE = re.compile(
    r"error connecting|dial tcp|i/o timeout|no such host|connection re|TLS handshake|unexpected EOF",
    re.IGNORECASE,
)


class GitHubByGh(GitHub):
    """A client of one repository that sends each request by `gh`. Raises UsageError if gh is missing or not
    logged in.
    """

    def __init__(self, repository: str) -> None:
        super().__init__(repository, "")

    def _sent(self, method: str, path: str, parameters: Parameters | None, body: object) -> HttpResponse:
        return call(method, path, parameters, body)


def call(method: str, path: str, parameters: Parameters | None = None, body: object = None) -> HttpResponse:
    """Send one request of GitHub's API by `gh`, and return the response of any status. Raises TemporaryError
    if there was none, and UsageError without a valid log-in.
    """
    query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
    words = [
        "api",
        "--include",
        "--method",
        method,
        "-H",
        "Accept: application/vnd.github+json",
        "-H",
        f"X-GitHub-Api-Version: {VERSION}",
    ]
    given = ["--input", "-"] if body is not None else []
    done = _run(
        [*words, *given, path.lstrip("/") + query], json.dumps(body).encode() if body is not None else b""
    )
    what = f"{method} {path}"
    status = _STATUS.match(done.stdout)
    if status is None:
        raise _unanswered(what, done)
    if int(status[1]) == UNAUTHORIZED:
        raise UsageError(
            "GitHub does not accept gh's log-in any more", fix=f"run {LOG_IN}", code=Exit.EXTERNAL_REFUSED
        )
    # The head of a response, the separator, and the body. gh ends the line of the status without a carriage
    # return.
    found = _HEAD.search(done.stdout)
    head, _, content = (
        (done.stdout[: found.start()], found[0], done.stdout[found.end() :])
        if found is not None
        else (done.stdout, b"", b"")
    )
    headers = dict(_header(line) for line in head.decode("utf-8", "replace").splitlines()[1:] if ":" in line)
    return HttpResponse(what, int(status[1]), content, retry_after_s(headers), headers)


def repository_here() -> str:
    """Return the repository on GitHub of the current folder, or that GH_REPO names. Raises UsageError if
    there is none.
    """
    answer = call("GET", HERE)
    content = answer.content()
    name = content.get("full_name") if isinstance(content, dict) else None
    if not answer.is_ok or not isinstance(name, str):
        raise UsageError(
            f"gh finds no repository for this folder: GitHub answered {answer.status}",
            fix="name it, as owner/name",
        )
    return name


def store_secret(name: str, value: str, *, environment: str = "", repository: str = "") -> None:
    """Store a secret in the environment, or without one in the repository; by default that of the current
    folder. Raises UsageError with what gh says; never with the value.
    """
    place = [
        *(["--env", environment] if environment else []),
        *(["--repo", repository] if repository else []),
    ]
    # By standard input: arguments of a process can be read by every user of the machine.
    gh("secret", "set", name, *place, given=value)


def gh(*words: str, given: str = "") -> str:
    """Call `gh` and return its output. Raises UsageError with what it says if it fails; never with
    `given`.
    """
    done = _run(words, given.encode())
    if done.returncode:
        raise UsageError(f"gh {' '.join(words[:2])} failed: {_said(done, given)}", code=Exit.EXTERNAL_REFUSED)
    return done.stdout.decode("utf-8", "replace")


def _run(words: Sequence[str], given: bytes) -> "subprocess.CompletedProcess[bytes]":
    program = shutil.which("gh")
    if program is None:
        raise UsageError(
            "GitHub's tool gh is not installed",
            fix=f"install it from https://cli.github.com, and run {LOG_IN}",
        )
    try:
        done = subprocess.run([program, *words], input=given, capture_output=True, timeout=GH_S, check=False)
    except subprocess.TimeoutExpired:
        raise TemporaryError(f"gh {words[0]} did not end within {GH_S} s") from None
    if done.returncode == NOT_LOGGED_IN:
        raise UsageError("gh is not logged in to GitHub", fix=f"run {LOG_IN}", code=Exit.EXTERNAL_REFUSED)
    return done


def _unanswered(what: str, done: "subprocess.CompletedProcess[bytes]") -> UsageError | TemporaryError:
    """Return the error for a call without a response: GitHub was not reached, or gh does not know whose
    repository is meant.
    """
    said = _said(done)
    if _UNREACHABLE.search(said):
        return TemporaryError(f"{what}: gh got no answer: {said}")
    return UsageError(
        f"gh api failed: {said}",
        fix="run it in a clone of the repository, or name the repository, as owner/name",
    )


def _said(done: "subprocess.CompletedProcess[bytes]", secret: str = "") -> str:
    """Return the reason that gh gives, in one line and cut short, without the secret."""
    text = (done.stderr or done.stdout).decode("utf-8", "replace")
    return " ".join((text.replace(secret, "***") if secret else text).split())[:REASON_CHARS_MAX]


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()
