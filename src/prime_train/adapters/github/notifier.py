"""People are told on GitHub how their run goes: its deployment's status, and one comment on the pull request it came from.

Every alert of such a run is a change of state, so each brings both up to date. What is shown is made of the run as it is when it is sent,
not of the alert: sent twice, or late, it says what is true now.
"""

import time
from collections.abc import Callable

from prime_train.adapters.github.api import GitHub, piece
from prime_train.adapters.github.comments import Comment, upsert_sticky
from prime_train.adapters.github.deployments import environment_of, set_status
from prime_train.core.run import SHOWN, Alert, Origin, Run, RunState
from prime_train.ports import PermanentError, RunRecord, TemporaryError
from prime_train.reports.pull_request import headline, run_page, stopped_as_asked

NAME = "run:{run}"
KNOWN_MAX = 1024
MUTE_S = 60.0
"""After a failure a repository is left alone for so long, so that a GitHub that is down does not hold up the watcher alert by alert."""

FRESH_S = 10.0
"""For so long what was shown of a run that has not changed since is not shown again."""
AGAIN_MAX = 3


class GitHubNotifier:
    """A `Notifier`. `client`: how to speak about a repository; `held`: the run as it is now. Runs from elsewhere are none of its business.

    TemporaryError, with the time to wait where GitHub named one. PermanentError: it may not write there. `clock`: this machine's time.
    `only`: the one repository that it may speak of; none: all.
    """

    def __init__(
        self,
        client: Callable[[str], GitHub],
        held: Callable[[str], RunRecord | None],
        *,
        web_url: str = "https://github.com",
        clock: Callable[[], float] = time.time,
        only: str = "",
    ) -> None:
        self._client, self._held, self._web_url, self._clock, self._only = client, held, web_url.rstrip("/"), clock, only
        self._clients: dict[str, GitHub] = {}
        self._muted: dict[str, float] = {}
        self._shown: dict[str, tuple[int, float]] = {}

    def send(self, alert: Alert, run: Run | None) -> None:
        held = self._held(alert.run_id) if run is not None and run.origin is not None else None
        if held is None or held.run.origin is None:
            return
        repository = held.run.origin.repository
        if self._only not in ("", repository):
            return
        left_s = self._muted.get(repository, 0.0) - self._clock()
        if left_s > 0:
            raise TemporaryError(f"{repository} on GitHub is left alone after a failure", delay_s=left_s)
        try:
            self._show_newest(held, held.run.origin, alert)
        except TemporaryError as error:
            self._muted[repository] = self._clock() + max(MUTE_S, error.delay_s)
            raise

    def _show_newest(self, held: RunRecord, origin: Origin, alert: Alert) -> None:
        """Once for all alerts of one moment; and again where the run has changed meanwhile: another watcher may have shown that already,
        and ours would be the last word.
        """
        for _ in range(AGAIN_MAX):
            version, at_s = self._shown.get(held.run.run_id, (0, 0.0))
            if held.run.version == version and self._clock() - at_s < FRESH_S:
                return
            self.show(held, origin, max(alert.at_s, int(self._clock())), status=alert.kind != SHOWN)
            self._shown[held.run.run_id] = (held.run.version, self._clock())
            held = self._held(held.run.run_id) or held

    def show(self, held: RunRecord, origin: Origin, now_s: int, *, status: bool = True) -> Comment | None:
        """Both are up to date; the comment, where there is a pull request. A status that is refused keeps no comment from being written.
        Without `status` only the comment: people are told of each status by mail or chat, of a comment that is edited they are not."""
        github = self._speaking(origin.repository)
        refusal: PermanentError | None = None
        try:
            if status:
                self._set_status(github, held, origin, now_s)
        except PermanentError as error:
            refusal = error
        comment = self._comment(github, held, origin, now_s) if origin.pull is not None else None
        if refusal is not None:
            raise refusal
        return comment

    def _set_status(self, github: GitHub, held: RunRecord, origin: Origin, now_s: int) -> None:
        if origin.deployment is None:
            return
        page = f"{self._web_url}/{origin.repository}/pull/{origin.pull}" if origin.pull is not None else ""
        said = headline(held.run, held.lease, now_s)
        # A stop that somebody asked for is no error.
        state = RunState.CANCELLED if stopped_as_asked(held.run) else held.run.state
        set_status(github, origin.deployment, state, said, log_url=origin.job_url, page_url=page)

    def _comment(self, github: GitHub, held: RunRecord, origin: Origin, now_s: int) -> Comment:
        assert origin.pull is not None
        text = run_page(held.run, held.lease, now_s, links=self._links(held.run, origin))
        return upsert_sticky(github, origin.pull, NAME.format(run=held.run.run_id), text)

    def _links(self, run: Run, origin: Origin) -> dict[str, str]:
        deployments = f"{self._web_url}/{origin.repository}/deployments/{piece(environment_of(run.run_id))}"
        return {"launched here": origin.job_url} | ({"deployment": deployments} if origin.deployment is not None else {})

    def _speaking(self, repository: str) -> GitHub:
        known = self._clients.get(repository)
        if known is None:
            if len(self._clients) >= KNOWN_MAX:
                raise PermanentError(f"runs of more than {KNOWN_MAX} repositories are told of here")
            known = self._clients[repository] = self._client(repository)
        return known
