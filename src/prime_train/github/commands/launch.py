"""`prime-train gha launch`: launch a run from a config at the job's commit.

The command returns once the machine has been requested; training continues.
"""

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checks.report.annotations import annotations
from prime_train.checks.report.markdown import markdown
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.auth import client
from prime_train.github.commands.job import Job, annotated, job_environment
from prime_train.planning.limits import PROBE_USD
from prime_train.providers.kinds import allowed_providers
from prime_train.terminal.output import print_command
from prime_train.text.formatting import usd
from prime_train.text.markdown import code, plain

if TYPE_CHECKING:
    from prime_train.app.home import Home
    from prime_train.github.api import GitHub
    from prime_train.github.launch_request import LaunchRequest
    from prime_train.launch.launch import Unfit
    from prime_train.launch.launch_config import Checked
    from prime_train.runs.store import RunRecord


@annotated
def launch(
    config: Annotated[
        str, typer.Option(envvar="PRIME_TRAIN_INPUT_CONFIG", help="Path of the config in the repository.")
    ] = "",
    name: Annotated[
        str, typer.Option(envvar="PRIME_TRAIN_INPUT_NAME", help="Name of the run; by default the config's.")
    ] = "",
    start_from: Annotated[
        str,
        typer.Option(
            "--from",
            envvar="PRIME_TRAIN_INPUT_FROM",
            help="RUN or RUN@STEP, a checkpoint of another run to start from; by default none.",
        ),
    ] = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", envvar="PRIME_TRAIN_INPUT_DRY_RUN", help="Only show what would be rented, and why."
        ),
    ] = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            envvar="PRIME_TRAIN_INPUT_PROBE",
            help="Only launch a probe, which measures steps and GPU memory, and ends.",
        ),
    ] = False,
    probe_usd: Annotated[
        float,
        typer.Option(
            "--probe-usd",
            envvar="PRIME_TRAIN_INPUT_PROBE_USD",
            help="The most dollars that a probe may cost.",
        ),
    ] = PROBE_USD,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            envvar="PRIME_TRAIN_INPUT_AGAIN",
            help="Launch again what this commit has launched before.",
        ),
    ] = False,
) -> Exit:
    """Launch a run from the job's commit."""
    from prime_train.github.changed_configs import inside
    from prime_train.github.job_home import job_home
    from prime_train.github.launch import Unneeded, checked_request
    from prime_train.github.launch_request import requested_launch
    from prime_train.launch.launch import Unfit
    from prime_train.launch.probe import ProbeLimits

    environment = job_environment(os.environ)
    job = Job.of(environment)
    if not config:
        raise UsageError(
            "no config was given", fix="set the input config to a path such as configs/demo.yaml"
        )
    if not job.token:
        raise UsageError(
            "the step has no token, which it needs to query GitHub for the commit and the pull request",
            fix="set the input token",
        )
    github = client(environment)(job.repository)
    request = requested_launch(
        job.trigger(), github, inside(config), again=again, start_from=start_from, probe=probe
    )
    home = job_home(environment)
    try:
        limits = ProbeLimits(usd=probe_usd) if request.probe else None
        what = checked_request(
            home,
            request,
            name=name or None,
            start_from=start_from or None,
            probe=limits,
            dry_run=dry_run,
        )
        if isinstance(what, Unneeded):
            return _not_launched(
                job,
                str(request.config),
                f"{plain(what.why)}. To measure it all the same, use the label `probe`.",
            )
        if dry_run:
            return _dry_run(job, home, what)
        return _launch(job, home, github, request, what, again=again)
    except Unfit as error:
        return _unfit(job, error)


def _launch(
    job: Job, home: "Home", github: "GitHub", request: "LaunchRequest", what: "Checked", *, again: bool
) -> Exit:
    from prime_train.github.commands.printer import printer
    from prime_train.github.commands.schedule import report_schedule
    from prime_train.github.launch import launch_from
    from prime_train.runs.run import Origin

    origin = Origin(
        job.repository,
        request.commit,
        str(request.config),
        request.key,
        request.pull,
        actor=job.actor,
        job_url=job.url,
        branch=request.branch,
        base=request.base,
    )
    watched = partial(printer, home, job.repository)
    launched = launch_from(
        home, github, request, what, origin, again=again, watched=watched, warn=job.warning
    )
    if launched.waits_for_watcher:
        providers = " or ".join(allowed_providers(launched.record.run.spec.hardware))
        job.notice(f"{providers} cannot be queried from here: the control plane's watcher rents the machine")
    exit_code = _answer(job, home, launched.record, is_new=launched.is_new)
    report_schedule(job, github, is_live=True, enables=True)
    return exit_code


def _answer(job: Job, home: "Home", record: "RunRecord", *, is_new: bool) -> Exit:
    from prime_train.github.commands.publish import show, summarize

    run = record.run
    url = show(job, home, record) or job.url
    deployment = run.origin.deployment if run.origin is not None else None
    job.output(run=run.run_id, state=run.state.value, created=is_new, url=url, deployment=deployment or "")
    summarize(job, home, record)
    typer.echo(
        f"{run.run_id} is {run.state.value}"
        if is_new
        else f"{run.run_id} was already launched and is {run.state.value}"
    )
    return Exit.OK


def _dry_run(job: Job, home: "Home", what: "Checked") -> Exit:
    from prime_train.github.launch import offers_from_here
    from prime_train.launch import dry_run
    from prime_train.terminal.console import print_rows

    spec, name = what.spec, what.spec.name
    ranked = offers_from_here(home, what)
    if ranked is None:
        reason = (
            f"The offers of {' or '.join(allowed_providers(spec.hardware))} are not known: no "
            "such provider is set up at the control plane."
        )
        return _not_launched(job, name, reason)
    print_rows(dry_run.rows(what, ranked))
    best = ranked.best[0] if ranked.best else None
    reason = "No suitable machine is for rent now."
    if best is not None:
        reason = (
            f"A launch would request {code(best.offer_id)} from {best.provider} "
            "at "
            f"{usd(best.usd_per_hour)} an hour."
        )
    return _not_launched(job, name, reason)


def _not_launched(job: Job, name: str, reason: str) -> Exit:
    job.summary(f"### {code(name)}: nothing was launched\n\n{reason}")
    job.output(run="", state="", created=False, url="", deployment="")
    return Exit.OK


def _unfit(job: Job, error: "Unfit") -> Exit:
    print_command(annotations(error.findings))
    job.summary(f"### Not launched\n\n{markdown(error.findings, 1)}")
    job.output(run="", state="", created=False, url="", deployment="")
    return Exit.FINDINGS
