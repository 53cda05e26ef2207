"""Prints the events of runs into a job's log."""

from prime_train.app.home import Home
from prime_train.github.runs import runs_of
from prime_train.text.markdown import one_line
from prime_train.watch.port import Watched


def printer(found: Home, repository: str) -> Watched:
    """Return a function that prints the events of the repository's runs. Runs of other repositories stay out
    of the job's log.
    """
    ids = frozenset(run.run_id for run in runs_of(found, repository))

    def watched(run_id: str, what: str, text: str) -> None:
        if run_id in ids or not run_id:
            # GitHub would interpret a line that starts with "::" as a workflow command.
            print(one_line(f"{run_id} {what} {text}"), flush=True)

    return watched
