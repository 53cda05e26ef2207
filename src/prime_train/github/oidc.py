"""GitHub's tokens for jobs: verifies them by the keys that GitHub publishes, and requests one inside a job.

A token says which repository, ref, environment and person a job belongs to, and for which address it was
made. Nothing else vouches for it, so its signature, issuer, audience and times are all required.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import Http, failure, is_safe

ISSUER = "https://token.actions.githubusercontent.com"
ENV_ISSUER = "PRIME_TRAIN_GITHUB_OIDC_ISSUER"
"""Variable with another issuer, such as that of a GitHub Enterprise Server."""
JWKS_PATH = "/.well-known/jwks"
KEYS_READ_S = 5.0
KEYS_S = 3600
"""Seconds for which GitHub's keys are kept."""
AGAIN_S = 60
"""Least seconds between two readings of the keys, because strangers can send tokens of unknown keys."""
WAIT_S_MAX, PAUSE_S = 1.0, 10.0
"""How long a token waits while the keys are being read, and the pause after an attempt to read them: few
threads verify tokens.
"""
LEEWAY_S = 30
REQUIRED = ("exp", "iat", "iss", "aud", "repository", "actor")
URL_VARIABLE, TOKEN_VARIABLE = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"


class GithubTokens:
    """Verifies tokens of one issuer. Thread-safe. `clock`: monotonic seconds."""

    def __init__(self, issuer: str = ISSUER, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._clock, self._lock = issuer.rstrip("/"), clock, threading.Lock()
        self._http = Http(self._issuer)
        self._keys: dict[str, Any] = {}
        self._read_s: float | None = None
        self._tried_s: float | None = None

    def claims(self, token: str, audience: str) -> Mapping[str, object]:
        """Return what the token says, if GitHub has signed it for this audience and it is valid now. Raises
        PermanentError if not, and TemporaryError if GitHub's keys cannot be read now.
        """
        import jwt

        try:
            key_id = str(jwt.get_unverified_header(token).get("kid", ""))
        except jwt.PyJWTError:
            raise PermanentError("this is not a token of GitHub") from None
        key = self._key(key_id)
        try:
            claims: Mapping[str, object] = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                audience=audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": list(REQUIRED), "strict_aud": True},
            )
        except jwt.InvalidAudienceError:
            raise PermanentError(f"the token was made for another address than {audience}") from None
        except jwt.PyJWTError as error:
            raise PermanentError(f"the token is not valid: {type(error).__name__}") from None
        return claims

    def _key(self, key_id: str) -> Any:
        if not self._lock.acquire(timeout=WAIT_S_MAX):
            raise TemporaryError("GitHub's keys are being read")
        try:
            age_s = self._clock() - self._read_s if self._read_s is not None else None
            if age_s is None or age_s > KEYS_S or (key_id not in self._keys and age_s > AGAIN_S):
                self._read()
            if key_id not in self._keys:
                raise PermanentError("the token was not signed with a key of GitHub")
            return self._keys[key_id]
        finally:
            self._lock.release()

    def _read(self) -> None:
        import jwt

        if self._tried_s is not None and self._clock() - self._tried_s < PAUSE_S:
            raise TemporaryError("GitHub's keys could not be read a moment ago")
        self._tried_s = self._clock()
        answer = self._http.ask("GET", JWKS_PATH, read_s=KEYS_READ_S)
        if not answer.is_ok:
            raise failure(answer)
        try:
            read = jwt.PyJWKSet.from_json(answer.body.decode())
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError):
            raise TemporaryError(f"{answer.what}: the keys cannot be parsed") from None
        self._keys = {key.key_id: key for key in read.keys if key.key_id}
        self._read_s = self._clock()


def token_of_job(environment: Mapping[str, str], audience: str) -> str:
    """Return a token that GitHub signs for this job and this audience; empty outside a job with the
    permission `id-token: write`. Raises ExternalError if GitHub refuses or does not answer.
    """
    url, key = environment.get(URL_VARIABLE, ""), environment.get(TOKEN_VARIABLE, "")
    if not url or not key:
        return ""
    parts = urlsplit(url)
    if not is_safe(url):
        raise PermanentError(f"{URL_VARIABLE} is not an https address")
    path = f"{parts.path}?{parts.query}{'&' if parts.query else ''}audience={quote(audience, safe='')}"
    answer = Http(f"{parts.scheme}://{parts.netloc}", key=key).ask("GET", path)
    if not answer.is_ok:
        raise failure(answer)
    content = answer.content()
    token = content.get("value") if isinstance(content, dict) else None
    if not isinstance(token, str) or not token:
        raise PermanentError("GitHub's answer has no token")
    return token
