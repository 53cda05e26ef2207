"""Report a run in its deployment, its pull request comment and the job summary."""

import os

from prime_train.actions.job import Job
from prime_train.control_plane.wiring.home import Home
from prime_train.operations.github.publish import found_results, publish
from prime_train.ports import ExternalError, RunRecord
from prime_train.reports.pull_request import run_comment


def show(job: Job, home: Home, record: RunRecord) -> str:
    """Update the run's deployment and comment, and return the comment's URL, or "" if there is none. Errors from GitHub only cause a
    warning, because they do not affect the run."""
    try:
        return publish(os.environ, home, record, web_url=job.web_url)
    except ExternalError as error:
        job.warning(f"the status of {record.run.run_id} could not be published on GitHub: {error}")
        return ""


def summarize(job: Job, home: Home, record: RunRecord) -> None:
    job.summary(run_comment(record.run, record.lease, home.store().now_s(), found=found_results(home, record)))
