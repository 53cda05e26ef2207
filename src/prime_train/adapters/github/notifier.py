"""People are told on GitHub how their run goes: its deployment's status, and one comment on the pull request it came from.

Every alert of such a run is a change of state, so each brings both up to date. What is shown is made of the run as it is when it is sent,
not of the alert: sent twice, or late, it says what is true now.
"""

import time
from collections.abc import Callable

from prime_train.adapters.github.api import GitHub
from prime_train.adapters.github.comments import ACTIONS, Comment, login_of, upsert_sticky
from prime_train.adapters.github.deployments import environment_of, set_status
from prime_train.core.run import Alert, Origin, Run
from prime_train.ports import Held, PermanentError
from prime_train.told import headline, run_page

NAME = "run:{run}"
KNOWN_MAX = 1024


class GitHubNotifier:
    """A `Notifier`. `client`: how to speak about a repository; `held`: the run as it is now. Runs from elsewhere are none of its business.

    TemporaryError, with the time to wait where GitHub named one. PermanentError: it may not write there.
    """

    def __init__(self, client: Callable[[str], GitHub], held: Callable[[str], Held | None], *, web_url: str = "https://github.com") -> None:
        self._client, self._held, self._web_url = client, held, web_url.rstrip("/")
        self._clients: dict[str, tuple[GitHub, frozenset[str]]] = {}

    def send(self, alert: Alert, run: Run | None) -> None:
        held = self._held(alert.run_id) if run is not None and run.origin is not None else None
        if held is not None and held.run.origin is not None:
            self.show(held, held.run.origin, max(alert.at_s, int(time.time())))

    def show(self, held: Held, origin: Origin, now_s: int) -> Comment | None:
        """Brings status and comment up to date; the comment, where there is a pull request."""
        github, authors = self._speaking(origin.repository)
        run = held.run
        if origin.deployment is not None:
            page = f"{self._web_url}/{origin.repository}/pull/{origin.pull}" if origin.pull is not None else ""
            set_status(github, origin.deployment, run.state, headline(run, held.lease, now_s), log_url=origin.job_url, page_url=page)
        if origin.pull is None:
            return None
        text = run_page(run, held.lease, now_s, links=self._links(run, origin))
        return upsert_sticky(github, origin.pull, NAME.format(run=run.run_id), text, authors=authors)

    def _links(self, run: Run, origin: Origin) -> dict[str, str]:
        deployments = f"{self._web_url}/{origin.repository}/deployments/{environment_of(run.run_id)}"
        return {"launched here": origin.job_url} | ({"deployment": deployments} if origin.deployment is not None else {})

    def _speaking(self, repository: str) -> tuple[GitHub, frozenset[str]]:
        known = self._clients.get(repository)
        if known is None:
            if len(self._clients) >= KNOWN_MAX:
                raise PermanentError(f"runs of more than {KNOWN_MAX} repositories are told of here")
            github = self._client(repository)
            known = self._clients[repository] = (github, frozenset({login_of(github), ACTIONS}))
        return known
