"""Report that the scheduled watcher is switched off, in an annotation and the job summary."""

from prime_train.errors import ExternalError
from prime_train.github.api import GitHub
from prime_train.github.commands.job import Job
from prime_train.github.schedule import schedule_off
from prime_train.text.markdown import plain


def report_schedule(job: Job, github: GitHub, *, is_live: bool, enables: bool = False) -> None:
    """Tell why the scheduled watcher does not run, as `schedule_off` finds it. If GitHub does not answer, the
    job goes on without it.
    """
    try:
        found = schedule_off(github, is_live=is_live, enables=enables)
    except ExternalError as error:
        job.notice(f"whether the schedule is on could not be read: {error}")
        return
    if found is None:
        return
    say = job.warning if found.off.is_by_itself else job.notice
    say(found.text)
    job.summary(f"> [!WARNING]\n> {plain(found.text)}\n")
