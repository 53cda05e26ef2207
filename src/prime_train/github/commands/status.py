"""`prime-train gha status`: report the state of runs in the job summary, and update each run's deployment and
comment.
"""

import json
import os
from typing import Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.github.auth import client
from prime_train.github.commands.job import Job, annotated, job_environment


@annotated
def status(
    run: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_RUN", help="Id of the run; by default all runs that have not ended."
        ),
    ] = "",
) -> Exit:
    """Show the status of runs."""
    from prime_train.github.commands.publish import show, summarize
    from prime_train.github.commands.schedule import report_schedule
    from prime_train.github.job_home import job_home
    from prime_train.github.runs import has_active, named_or_active
    from prime_train.status.run_status import RunFacts, status_of

    environment = job_environment(os.environ)
    job, home = Job.of(environment), job_home(environment)
    store = home.store()
    found = named_or_active(home, job.repository, run)
    for record in found:
        show(job, home, record)
        summarize(job, home, record)
        typer.echo(f"{record.run.run_id} is {record.run.state.value}")
    if not found:
        job.summary("All runs have ended.")
    if job.token and has_active(home, job.repository):
        report_schedule(job, client(environment)(job.repository), is_live=True, enables=True)
    rows = [status_of(RunFacts(record, store.now_s())).row() for record in found]
    job.output(state=found[0].run.state.value if run and found else "", runs=json.dumps(rows))
    return Exit.OK
