"""Reports the progress of runs on GitHub: the status of a run's deployment, and one comment on the pull
request that launched it.

Every alert of such a run is a change of state, so each one updates both. They show the run as it is when the
update is sent, not the alert, so a repeated or late alert still shows the current state.
"""

import time
from collections.abc import Callable

from prime_train.errors import ExternalError, NotHere, PermanentError, TemporaryError
from prime_train.github.api import GitHub, piece
from prime_train.github.comments import Comment, upsert_sticky
from prime_train.github.commit_statuses import requirements_context, set_commit_status
from prime_train.github.deployments import environment_of, set_status
from prime_train.github.pull_request import run_comment
from prime_train.outputs.results.comparison import PullResults
from prime_train.outputs.results.comparison_texts import check_of
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.headline import headline, stopped_by_user
from prime_train.runs.run import Alert, Origin, Run, RunState
from prime_train.runs.store import RunRecord
from prime_train.text.markdown import one_line

NAME = "run:{run}"
KNOWN_MAX = 1024
MUTE_S = 60.0
"""Seconds for which a repository is skipped after a failure, so that an outage of GitHub does not delay the
watcher at every alert.
"""

FRESH_S = 10.0
"""Seconds for which a run that has not changed is not sent to GitHub again."""
AGAIN_MAX = 3
NO_RESULTS = PullResults(unread="the bucket is not known here")


class GitHubNotifier:
    """A `Notifier`. `client` returns the client of a repository; `record` returns the run as it is now. Runs
    that do not come from GitHub are ignored.

    Raises TemporaryError, with the seconds to wait if GitHub named them; PermanentError if it may not write
    there. `clock` returns this machine's time. `only`: the one repository that it may write to; empty for
    all. `results` returns the results of a run, and how they compare with those of the base branch; what it
    raises only delays them.
    """

    def __init__(
        self,
        client: Callable[[str], GitHub],
        record: Callable[[str], RunRecord | None],
        *,
        web_url: str = "https://github.com",
        clock: Callable[[], float] = time.time,
        only: str = "",
        results: Callable[[Run], PullResults] = lambda run: NO_RESULTS,
    ) -> None:
        self._client, self._record_of, self._web_url, self._clock, self._only = (
            client,
            record,
            web_url.rstrip("/"),
            clock,
            only,
        )
        self._results = results
        self._clients: dict[str, GitHub] = {}
        self._muted: dict[str, float] = {}
        self._shown: dict[str, tuple[int, float]] = {}

    def send(self, alert: Alert, run: Run | None) -> None:
        record = self._record_of(alert.run_id) if run is not None and run.origin is not None else None
        if record is None or record.run.origin is None:
            return
        repository = record.run.origin.repository
        if self._only not in ("", repository):
            raise NotHere(f"this watcher's token is for {self._only}, and the run is of {repository}")
        left_s = self._muted.get(repository, 0.0) - self._clock()
        if left_s > 0:
            raise TemporaryError(
                f"no calls are sent to {repository} on GitHub for a while after a failure", delay_s=left_s
            )
        try:
            self._show_newest(record, record.run.origin, alert)
        except TemporaryError as error:
            self._muted[repository] = self._clock() + max(MUTE_S, error.delay_s)
            raise

    def _show_newest(self, record: RunRecord, origin: Origin, alert: Alert) -> None:
        """Update GitHub once for all alerts of one moment, and again if the run has changed meanwhile:
        another watcher may have shown the newer state already, and this update would overwrite it.
        """
        for _ in range(AGAIN_MAX):
            version, at_s = self._shown.get(record.run.run_id, (0, 0.0))
            if record.run.version == version and self._clock() - at_s < FRESH_S:
                return
            self.show(
                record, origin, max(alert.at_s, int(self._clock())), status=alert.kind != AlertKind.SHOWN
            )
            self._shown[record.run.run_id] = (record.run.version, self._clock())
            record = self._record_of(record.run.run_id) or record

    def show(self, record: RunRecord, origin: Origin, now_s: int, *, status: bool = True) -> Comment | None:
        """Update the status, and the comment if there is a pull request. A refused status does not prevent
        the comment. Without `status` only the comment is updated: GitHub notifies people of each status by
        mail or chat, but not of an edited comment.
        """
        github = self._signed_in(origin.repository)
        found, failure = self._found(record.run)
        sets: list[Callable[[], object]] = [lambda: self._set_check(github, record.run, origin, found)]
        if status:
            sets.insert(0, lambda: self._set_status(github, record, origin, now_s))
        for set_one in sets:
            try:
                set_one()
            except PermanentError as error:
                failure = failure or error
        comment = self._comment(github, record, origin, now_s, found) if origin.pull is not None else None
        if failure is not None:
            raise failure
        return comment

    def _found(self, run: Run) -> tuple[PullResults, ExternalError | None]:
        """Return the results as far as they can be read, and the failure if they cannot."""
        try:
            return self._results(run), None
        except ExternalError as error:
            return PullResults(unread=str(error)), error

    def _set_check(self, github: GitHub, run: Run, origin: Origin, found: PullResults) -> None:
        check = check_of(run, found)
        if check is not None:
            page = f"{self._web_url}/{origin.repository}/pull/{origin.pull}"
            set_commit_status(
                github,
                origin.commit,
                requirements_context(origin.config),
                check.state,
                one_line(check.text),
                url=page,
            )

    def _set_status(self, github: GitHub, record: RunRecord, origin: Origin, now_s: int) -> None:
        if origin.deployment is None:
            return
        page = f"{self._web_url}/{origin.repository}/pull/{origin.pull}" if origin.pull is not None else ""
        title = headline(record.run, record.lease, now_s)
        # A stop that was requested is no error.
        state = RunState.CANCELLED if stopped_by_user(record.run) else record.run.state
        set_status(github, origin.deployment, state, title, log_url=origin.job_url, page_url=page)

    def _comment(
        self, github: GitHub, record: RunRecord, origin: Origin, now_s: int, found: PullResults
    ) -> Comment:
        assert origin.pull is not None
        text = run_comment(
            record.run, record.lease, now_s, found=found, links=self._links(record.run, origin)
        )
        return upsert_sticky(github, origin.pull, NAME.format(run=record.run.run_id), text)

    def _links(self, run: Run, origin: Origin) -> dict[str, str]:
        deployments = f"{self._web_url}/{origin.repository}/deployments/{piece(environment_of(run.run_id))}"
        return {"launched here": origin.job_url} | (
            {"deployment": deployments} if origin.deployment is not None else {}
        )

    def _signed_in(self, repository: str) -> GitHub:
        known = self._clients.get(repository)
        if known is None:
            if len(self._clients) >= KNOWN_MAX:
                raise PermanentError(f"runs of more than {KNOWN_MAX} repositories are reported here")
            known = self._clients[repository] = self._client(repository)
        return known
