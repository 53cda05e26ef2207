"""Uploads a file to a URL that whoever has it may write to, as S3-compatible servers sign them."""

from pathlib import Path
from urllib.parse import urlsplit

import requests

from prime_train.answer_limits import LimitedAdapter
from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import is_safe

CONNECT_S, READ_S = 10.0, 300.0
TRIES_MAX = 3
ANSWER_BYTES_MAX = 2**20


def upload(url: str, path: Path) -> None:
    """Upload the file. The URL is a secret for as long as it is valid, so errors name its host only. Raises
    PermanentError if the server refuses, and TemporaryError if it does not answer.
    """
    host = urlsplit(url).hostname or ""
    if not is_safe(url):
        raise PermanentError(f"the bucket at {host} cannot be written to over http")
    for left in reversed(range(TRIES_MAX)):
        try:
            with path.open("rb") as file:
                session = requests.Session()
                for scheme in ("http://", "https://"):
                    session.mount(scheme, LimitedAdapter(READ_S, ANSWER_BYTES_MAX))
                answer = session.put(url, data=file, timeout=(CONNECT_S, READ_S), allow_redirects=False)
        except requests.RequestException as error:
            if left == 0:
                raise TemporaryError(
                    f"the bucket at {host} does not answer: {type(error).__name__}"
                ) from None
            continue
        if answer.status_code < 300:
            return
        if answer.status_code < 500 or left == 0:
            kind = PermanentError if answer.status_code < 500 else TemporaryError
            raise kind(f"the bucket at {host} answered the upload with {answer.status_code}")
