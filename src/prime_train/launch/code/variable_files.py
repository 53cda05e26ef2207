"""Files from which programs read variables, such as `.env`: by their names."""

import re
from pathlib import PurePosixPath

_VARIABLES = re.compile(r"\.env(?:\.[\w.-]+)?|\.envrc|[\w.-]+\.env")
_SAMPLE = re.compile(r"example|sample|template|dist|defaults?|schema", re.IGNORECASE)


def holds_variables(path: str) -> bool:
    """Return whether the file holds lines such as NAME=value, and is no sample of such a file."""
    name = PurePosixPath(path).name
    return _VARIABLES.fullmatch(name) is not None and not _SAMPLE.search(name)


def is_dotenv(path: str) -> bool:
    """Return whether the file is `.env` or `.env.NAME`, where secrets are usually kept, and no sample of
    one.
    """
    return (
        holds_variables(path)
        and PurePosixPath(path).name.startswith((".env.", ".env"))
        and PurePosixPath(path).name != ".envrc"
    )
