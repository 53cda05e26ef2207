"""Command lines as a shell takes them."""

import re

_COMPOUND = re.compile(r"[;&|(){}`\n]")
_SHELL_WORD = re.compile(
    r"\s*(\w+\+?=|(\.|!|\[|alias|bg|break|case|cd|command|continue|eval|exec|exit|export|fg|for|function|"
    r"getopts|hash|if|"
    r"jobs|local|read|readonly|return|set|shift|source|time|times|trap|type|ulimit|umask|unalias|unset|until|"
    r"wait|while)(\s|$))"
)


def replacing_the_shell(command: str) -> str:
    """Return the command line, prefixed with `exec` if it is one simple command.

    Otherwise a shell would wait for the command, be terminated at once by SIGTERM, and lose the command's
    exit code.
    """
    plain = command.strip() and not _COMPOUND.search(command.strip()) and not _SHELL_WORD.match(command)
    return f"exec {command.strip()}" if plain else command
