"""Settings that are several lines of text: a variable has the path of a file with them, or the text itself, as in a secret."""


def is_text(given: str) -> bool:
    """Return whether this is the text itself, and not the path of a file."""
    return "\n" in given or given.startswith("{")
