"""Report a run in its deployment, its pull request comment and the job summary."""

import os

from prime_train.app.home import Home
from prime_train.errors import ExternalError
from prime_train.github.auth import client, speaks
from prime_train.github.commands.job import Job
from prime_train.github.notifier import GitHubNotifier
from prime_train.github.pull_request import run_comment
from prime_train.outputs.results.comparison import PullResults
from prime_train.outputs.results.write import results_reader
from prime_train.runs.store import RunRecord


def show(job: Job, home: Home, record: RunRecord) -> str:
    """Update the run's deployment and comment, and return the comment's URL, or "" if there is none: the run
    was not launched from a repository, or there is no access to GitHub. Errors from GitHub only cause a
    warning, because they do not affect the run.
    """
    origin = record.run.origin
    if origin is None or not speaks(os.environ):
        return ""
    try:
        store = home.store()
        results = results_reader(store, home.bucket)
        comment = GitHubNotifier(client(os.environ), store.load, web_url=job.web_url, results=results).show(
            record, origin, store.now_s()
        )
    except ExternalError as error:
        job.warning(f"the status of {record.run.run_id} could not be published on GitHub: {error}")
        return ""
    return comment.html_url if comment is not None else ""


def summarize(job: Job, home: Home, record: RunRecord) -> None:
    """Append the run to the job's summary, with its results and how they compare with those of the base
    branch, as far as they can be read.
    """
    store = home.store()
    try:
        found = results_reader(store, home.bucket)(record.run)
    except ExternalError as error:
        found = PullResults(unread=str(error))
    job.summary(run_comment(record.run, record.lease, store.now_s(), found=found))
