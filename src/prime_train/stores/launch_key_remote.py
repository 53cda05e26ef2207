"""Exchanges a token that GitHub has signed for a job for a launch key of the control plane."""

from prime_train.errors import PermanentError
from prime_train.http import Http, failure, is_safe
from prime_train.runs.launch_key import LAUNCH_KEY_PATH
from prime_train.runs.wire import LaunchKeyGiven
from prime_train.stores.signed_http import reason_of


def launch_key_for(url: str, token: str) -> str:
    """Return the launch key that the control plane at `url` gives for the token. Raises PermanentError if it
    trusts no such job, and TemporaryError if it does not answer.
    """
    if not is_safe(url):
        raise PermanentError(f"{url!r}: over http, the token could be read on the way; use an https address")
    answer = Http(url.rstrip("/")).ask("POST", LAUNCH_KEY_PATH, body={"token": token})
    if not answer.is_ok:
        raise failure(answer, reason_of(answer))
    try:
        return LaunchKeyGiven.model_validate_json(answer.body).launch_key
    except ValueError:  # not chained: it would repeat what the server wrote
        raise PermanentError(
            f"{answer.what}: the answer cannot be parsed; it may be of another version"
        ) from None
