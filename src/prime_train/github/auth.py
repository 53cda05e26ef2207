"""Access to GitHub as the environment configures it: with the job's token, a fine-grained one, or as an
App.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.errors import PermanentError, UsageError

if TYPE_CHECKING:
    from prime_train.github.api import GitHub
    from prime_train.github.oidc import GithubTokens

TOKEN = "PRIME_TRAIN_GITHUB_TOKEN"
APP_ID, APP_KEY = "PRIME_TRAIN_GITHUB_APP_ID", "PRIME_TRAIN_GITHUB_APP_KEY"


def speaks(environment: Mapping[str, str]) -> bool:
    """Return whether runs can be reported on GitHub from here."""
    return bool(environment.get(APP_ID) or _token(environment))


def speaks_only_of(environment: Mapping[str, str]) -> str:
    """Return the job's repository if the only access is the job's own token; empty: any repository."""
    return (
        "" if environment.get(APP_ID) or environment.get(TOKEN) else environment.get("GITHUB_REPOSITORY", "")
    )


def client(environment: Mapping[str, str]) -> "Callable[[str], GitHub]":
    """Return a function from a repository to its GitHub client. An App takes precedence over a fine-grained
    token, and a fine-grained token over the job's token. Raises UsageError if only half of an App's settings
    is set.
    """
    from prime_train.github.api import API_URL, ENV_API_URL, GitHub
    from prime_train.github.app import AppKey, AppToken

    url = environment.get(ENV_API_URL) or API_URL
    key = AppKey(environment[APP_ID], _pem(environment)) if environment.get(APP_ID) else None

    def for_repository(repository: str) -> GitHub:
        if key is None:
            return GitHub(repository, _token(environment), url=url)
        app = AppToken(key, repository, url=url)
        return GitHub(repository, app, url=url, login=app.login())

    return for_repository


def github_claims(environment: Mapping[str, str]) -> Callable[[str, str], Mapping[str, object]]:
    """Return a function that verifies a token of GitHub for an address, and returns what it says; see
    `GithubTokens.claims`.
    """
    verifier: list[GithubTokens] = []

    def claims(token: str, audience: str) -> Mapping[str, object]:
        from prime_train.github.oidc import ENV_ISSUER, ISSUER, GithubTokens

        if not verifier:
            verifier.append(GithubTokens(environment.get(ENV_ISSUER) or ISSUER))
        try:
            return verifier[0].claims(token, audience)
        except ImportError:
            raise PermanentError(
                "this control plane cannot verify tokens of GitHub: install prime-train[github] there"
            ) from None

    return claims


def _token(environment: Mapping[str, str]) -> str:
    """Return the token; the job's own only inside a job, because elsewhere GITHUB_TOKEN is set for other
    tools.
    """
    of_job = environment.get("GITHUB_TOKEN", "") if environment.get("GITHUB_ACTIONS") == "true" else ""
    return environment.get(TOKEN) or of_job


def _pem(environment: Mapping[str, str]) -> str:
    """Return the App's private key, given as text or as the path of its file. Raises UsageError if it is
    neither.
    """
    value = environment.get(APP_KEY, "")
    if "-----BEGIN" in value:
        return value
    try:
        return Path(value).read_text()
    except OSError:
        raise UsageError(
            f"{APP_KEY} is neither a private key nor a readable file",
            fix="set it to the App's private key in PEM format, or to the path of its file",
        ) from None
