"""Report a run on GitHub: in its deployment, and in the comment on its pull request."""

from collections.abc import Mapping

from prime_train.adapters.github import GitHubNotifier
from prime_train.control_plane.wiring.github_auth import client, speaks
from prime_train.control_plane.wiring.home import Home
from prime_train.control_plane.wiring.notifiers import results_reader
from prime_train.core.results.comparison import PullResults
from prime_train.ports import ExternalError, RunRecord


def publish(environment: Mapping[str, str], home: Home, record: RunRecord, *, web_url: str) -> str:
    """Update the run's deployment and comment, and return the comment's URL, or "" if there is none. Nothing is updated if the run was not
    launched from a repository, or there is no access to GitHub. Raises ExternalError if GitHub refuses or does not answer."""
    origin = record.run.origin
    if origin is None or not speaks(environment):
        return ""
    store = home.store()
    notifier = GitHubNotifier(client(environment), store.load, web_url=web_url, results=results_reader(store, home.bucket))
    comment = notifier.show(record, origin, store.now_s())
    return comment.html_url if comment is not None else ""


def found_results(home: Home, record: RunRecord) -> PullResults:
    """Return the results of the run, and how they compare with those of the base branch, as far as they can be read."""
    try:
        return results_reader(home.store(), home.bucket)(record.run)
    except ExternalError as error:
        return PullResults(unread=str(error))
