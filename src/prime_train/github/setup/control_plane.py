"""The control plane that a repository's jobs call, as far as it can be reached and changed from this
machine.
"""

from prime_train.app.home import Home
from prime_train.app.launch_keys import create_launch_key, launch_keys
from prime_train.environment import PUBLIC_URL
from prime_train.errors import UsageError
from prime_train.github.setup.state import ENVIRONMENT_WORKFLOWS
from prime_train.http import is_loopback, is_safe

URL_CHARS_MAX = 300


def address_here(home: Home) -> str:
    """Return the address of the control plane that this machine uses or is; empty if there is none that
    GitHub's machines could reach.
    """
    serving = home.last_serving() if not home.elsewhere else None
    named = (
        home.environment.get(PUBLIC_URL, "").strip()
        or home.elsewhere
        or (serving.public_url if serving is not None else "")
    )
    url = named.rstrip("/")
    return url if url.startswith("https://") and not is_loopback(url) else ""


def checked_address(text: str) -> str:
    """Return the address without a slash at its end. Raises UsageError for one to which no key may be
    sent.
    """
    url = text.strip().rstrip("/")
    if (
        not url.isprintable()
        or len(url) > URL_CHARS_MAX
        or any(sign in url for sign in " @?#")
        or not is_safe(url)
    ):
        raise UsageError(
            f"{text[:100]!r} is not the address of a control plane",
            fix="write it as https://plane.example.org",
        )
    return url


def trusted_here(home: Home, url: str, repository: str) -> frozenset[str] | None:
    """Return the environments whose jobs the control plane at `url` trusts; None if it cannot be changed from
    here. Raises ExternalError if it does not answer.
    """
    serving = home.last_serving() if not home.elsewhere else None
    if (
        not url
        or home.launch_key is not None
        or url != (home.elsewhere or (serving.public_url.rstrip("/") if serving is not None else ""))
    ):
        return None
    now_s = home.store().now_s()
    rows = [
        row
        for row in launch_keys(home.store()).values()
        if row.is_github and row.repository.lower() == repository.lower()
    ]
    alive = [
        row
        for row in rows
        if (row.expires_s is None or row.expires_s > now_s) and not row.actor and not row.ref
    ]
    return frozenset(row.environment for row in alive) & frozenset(ENVIRONMENT_WORKFLOWS)


def trust_environment(home: Home, repository: str, environment: str) -> None:
    """Have the control plane trust the repository's jobs in the environment."""
    create_launch_key(home.store(), home.master(), repository, is_github=True, environment=environment)
