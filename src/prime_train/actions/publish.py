"""Report a run on GitHub: in its deployment, its pull request comment and the job summary."""

import os
from typing import TYPE_CHECKING

from prime_train.control_plane.wiring.github_auth import client

if TYPE_CHECKING:
    from prime_train.actions.job import Job
    from prime_train.ports import RunRecord, Store


def show(job: "Job", store: "Store", held: "RunRecord") -> str:
    """Update the run's deployment and comment, and return the comment's URL, or "" if there is none. Errors from GitHub only cause a
    warning, because they do not affect the run."""
    from prime_train.adapters.github import GitHubNotifier
    from prime_train.ports import OutsideError

    origin = held.run.origin
    if origin is None or not job.token:
        return ""
    try:
        comment = GitHubNotifier(client(os.environ), store.load, web_url=job.web_url).show(held, origin, store.now_s())
    except OutsideError as error:
        job.warning(f"{held.run.run_id} is not shown on GitHub: {error}")
        return ""
    return comment.html_url if comment is not None else ""


def summarize(job: "Job", store: "Store", held: "RunRecord") -> None:
    from prime_train.reports.pull_request import run_page

    job.summary(run_page(held.run, held.lease, store.now_s()))
