"""Report a run on GitHub: in its deployment, and in the comment on its pull request."""

from collections.abc import Mapping

from prime_train.adapters.github import GitHubNotifier
from prime_train.control_plane.wiring.github_auth import client, speaks
from prime_train.ports import RunRecord, Store


def publish(environment: Mapping[str, str], store: Store, record: RunRecord, *, web_url: str) -> str:
    """Update the run's deployment and comment, and return the comment's URL, or "" if there is none. Nothing is updated if the run was not
    launched from a repository, or there is no access to GitHub. Raises ExternalError if GitHub refuses or does not answer."""
    origin = record.run.origin
    if origin is None or not speaks(environment):
        return ""
    comment = GitHubNotifier(client(environment), store.load, web_url=web_url).show(record, origin, store.now_s())
    return comment.html_url if comment is not None else ""
