"""Tells by the output of a command whether a network or a server made it fail, or what it was told to do.

Tools print much about connections that were lost and tried again, so only their last errors count. Two of
them say at their end that a package does not exist although they could not ask: pip after its last retry, and
apt without its lists.
"""

import re

_OUTAGE = re.compile(
    r"Temporary failure (in name resolution|resolving)|Name or service not known|Could ?n[o']t resolve (host|"
    r"proxy)|Network is unreachable"
    r"|unable to resolve host|NewConnectionError|ConnectTimeoutError|ReadTimeoutError|Read timed out"
    r"|Connection (reset by peer|refused|timed out)|RemoteDisconnected|IncompleteRead|\b(429|50[0234]) "
    r"(Client|Server) Error\b"
    r"|HTTP error (429|50[0234])\b|error: (429|50[0234])\b|Too Many Requests|Failed to connect to \S+ port|"
    r"unexpected disconnect|early EOF"
    r"|Unable to connect to \S+:(http|https|\d+)",
    re.IGNORECASE,
)
"""What tools print when a network or a server is at fault: curl, git, apt, pip, uv, requests."""

_ERROR = re.compile(
    r"\W*(error|fatal|err|e|curl|wget)\b\s*:|\W*(npm )?err(or)?\b|\s*(\w+\.)*\w*(Error|Exception|Timeout)\b"
    r"|\S+: (error|\*\*\*)|\W*Failed to ",
    re.IGNORECASE,
)
_PASSING = re.compile(r"\W*(warning|warn|w|notice|note|info|debug)\b", re.IGNORECASE)
ERRORS_MAX = 3
"""Number of last errors of an output that may say why it ended: a tool that calls another one states its own
after that of the other.
"""
LINES_AFTER_MAX = 20

_SETUP_END = re.compile(r"`.*` ended with code -?\d+|cloning .* took longer than ", re.DOTALL)
_LAST_RETRY = re.compile(r"Retry\(total=0,")
_KNOWN_VERSIONS = re.compile(r"\(from versions: (?!none\))")
_NO_LISTS = re.compile(r"W: Failed to fetch|Some index files failed to download")
_NO_PACKAGE = re.compile(r"E: Unable to locate package|has no installation candidate")


def names_outage(text: str) -> bool:
    """Return whether these words say that a network or a server is at fault."""
    return _OUTAGE.search(text) is not None


def ended_by_outage(tail: str) -> bool:
    """Return whether a command with this end of its output failed because of a network or a server, as far as
    its last errors tell.
    """
    errors = _last_errors(tail)
    if any(map(names_outage, errors)):
        return True
    if _LAST_RETRY.search(tail) and not any(map(_KNOWN_VERSIONS.search, errors)):
        return True
    return _NO_LISTS.search(tail) is not None and any(map(_NO_PACKAGE.search, errors))


def _last_errors(tail: str) -> list[str]:
    """Return the lines of the last errors, and those that follow the last one; the last lines of all if none
    is an error.
    """
    lines = [line for line in tail.splitlines() if line.strip() and not _PASSING.match(line)]
    places = [at for at, line in enumerate(lines) if _ERROR.match(line)]
    if not places:
        return lines[-ERRORS_MAX:]
    return [*(lines[at] for at in places[-ERRORS_MAX:]), *lines[places[-1] + 1 :][-LINES_AFTER_MAX:]]


def set_up_failed(command: str, code: int, last_line: str) -> str:
    """Return how a set-up command failed, in words; `last_line`: of its output, "" if there is none."""
    return f"`{command}` ended with code {code}{f': {last_line}' if last_line else ''}"


def is_end_of_setup(detail: str) -> bool:
    """Return whether these are the words for the end of a set-up command, or of a clone that took too
    long.
    """
    return _SETUP_END.match(detail) is not None
