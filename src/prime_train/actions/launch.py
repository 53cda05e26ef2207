"""`prime-train gha launch`: launch a run from a config at the job's commit.

The command returns once the machine has been requested; training continues.
"""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.actions.job import Job
    from prime_train.actions.launch_request import Wish
    from prime_train.adapters.github import GitHub
    from prime_train.control_plane.wiring.home import Home
    from prime_train.core.run import Origin, Run
    from prime_train.core.spec import RunSpec
    from prime_train.operations.launching.launch import Plan, Unfit
    from prime_train.ports import RunRecord, Store


def launch(
    config: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_CONFIG", help="The config, a path in the repository.")] = "",
    name: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_NAME", help="The run's name; none: the config's.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="PRIME_TRAIN_INPUT_DRY_RUN", help="Only say what would be rented, and why.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", envvar="PRIME_TRAIN_INPUT_AGAIN", help="Launch once more what this commit has launched before.")
    ] = False,
) -> Exit:
    """Launch a run from the job's commit."""
    from prime_train.actions import control_plane as plane
    from prime_train.actions.changed import inside
    from prime_train.actions.event import read_event
    from prime_train.actions.job import Job, hide
    from prime_train.actions.launch_request import wish
    from prime_train.control_plane.wiring.github_auth import client
    from prime_train.operations.launching.launch import Unfit, plan

    hide(os.environ)
    job = Job.of(os.environ)
    if not config:
        raise UsageError("no config is named", fix="set the input config to a path such as configs/demo.yaml")
    if not job.token:
        raise UsageError("the step has no token: it must ask GitHub for commit and pull request", fix="give it one (input token)")
    github = client(os.environ)(job.repository)
    asked = wish(job, read_event(job), github, inside(config), again=again)
    home = plane.home()
    try:
        spec = _spec(home, asked, name)
        made = plan(spec, file=config)
        if dry_run:
            return _dry_run(job, home, spec, made)
        return _launch(job, home, github, asked, spec, made, again=again)
    except Unfit as error:
        return _unfit(job, error)


def _spec(home: "Home", asked: "Wish", name: str) -> "RunSpec":
    """Return the spec to launch, checked as `validate` does. Raises Unfit if the config is invalid."""
    from prime_train.adapters.config_yaml import read_config
    from prime_train.core.finding import has_errors
    from prime_train.operations.launching.checks import found_for
    from prime_train.operations.launching.launch import Unfit, on_provider, renamed
    from prime_train.operations.validate import judged

    read = read_config(asked.config)
    if read.spec is None:
        raise Unfit(judged(read)[0])
    spec = on_provider(renamed(read, name) if name else read.spec, home)
    found, _ = found_for(read, spec, home.run_secrets)
    if has_errors(found):
        raise Unfit(found)
    return spec


def _launch(job: "Job", home: "Home", github: "GitHub", asked: "Wish", spec: "RunSpec", made: "Plan", *, again: bool) -> Exit:
    from prime_train.actions.launch_request import run_id_of
    from prime_train.operations.launching.launch import launch_as

    store = home.store()
    before = None if again else _same(store, job, asked, spec.name)
    run_id = before.run_id if before is not None else run_id_of(spec.name, asked.key)
    created = None
    if before is None and store.load(run_id) is None:
        deployment = _deployment(job, github, run_id, asked)
        created = launch_as(home, run_id, spec, made, origin=_origin(job, asked, deployment))
    if created is not None:
        _rent(job, home, created)
    held = store.load(run_id)
    if held is None:
        raise UsageError(f"{run_id} is not in the store", fix="run the job again", code=Exit.OUTSIDE_FAILED)
    return _answer(job, store, held, is_new=created is not None)


def _same(store: "Store", job: "Job", asked: "Wish", name: str) -> "Run | None":
    """Return the active run of the same config at the same commit, or None. This keeps a repeated button press from paying for a second
    run."""
    meant = (job.repository, asked.commit, str(asked.config))
    for run in store.list_runs():
        origin = run.origin
        if origin is None or run.is_over or run.spec.name != name:
            continue
        if (origin.repository, origin.commit, origin.config) == meant:
            return run
    return None


def _origin(job: "Job", asked: "Wish", deployment: int | None) -> "Origin":
    from prime_train.core.run import Origin

    return Origin(job.repository, asked.commit, str(asked.config), asked.key, asked.pull, deployment, job.actor, job.url)


def _deployment(job: "Job", github: "GitHub", run_id: str, asked: "Wish") -> int | None:
    """Return the id of the run's GitHub deployment, created if necessary. Returns None, with a warning, if GitHub refuses, for example
    because the token lacks the permission; the run is launched anyway."""
    from prime_train.adapters.github import deployment_of, new_deployment
    from prime_train.ports import PermanentError

    try:
        return deployment_of(github, run_id) or new_deployment(github, run_id, asked.commit, f"{asked.config}")
    except PermanentError as error:
        job.warning(f"no deployment: {error}")
        return None


def _rent(job: "Job", home: "Home", run: "Run") -> None:
    """Request the machine with one sweep, if the provider can be called from here; otherwise print a notice that a watcher will do so."""
    from prime_train.actions import control_plane as plane

    if run.spec.hardware.provider in home.pods().names:
        plane.look(home)
    else:
        job.notice(f"{run.spec.hardware.provider} cannot be asked from here: whoever watches the control plane rents the machine")


def _answer(job: "Job", store: "Store", held: "RunRecord", *, is_new: bool) -> Exit:
    from prime_train.actions.publish import show, summarize

    run = held.run
    url = show(job, store, held) or job.url
    deployment = run.origin.deployment if run.origin is not None else None
    job.output(run=run.run_id, state=run.state.value, created=is_new, url=url, deployment=deployment or "")
    summarize(job, store, held)
    typer.echo(f"{run.run_id} is {run.state.value}" if is_new else f"{run.run_id} was launched before, and is {run.state.value}")
    return Exit.OK


def _dry_run(job: "Job", home: "Home", spec: "RunSpec", made: "Plan") -> Exit:
    from prime_train.core.text.formatting import usd
    from prime_train.operations.launching import dry_run
    from prime_train.output import print_rows
    from prime_train.reports.markdown import code

    if spec.hardware.provider not in home.pods().names:
        said = f"What {spec.hardware.provider} has for rent cannot be asked from here: give the step its key."
        return _not_launched(job, spec, said)
    ranked = dry_run.ranking(home, spec)
    print_rows(dry_run.rows(spec, made, ranked))
    best = ranked.best[0] if ranked.best else None
    said = "No machine that fits is for rent now."
    if best is not None:
        said = f"A launch would ask {best.provider} for {code(best.offer_id)} at {usd(best.usd_per_hour)} an hour."
    return _not_launched(job, spec, said)


def _not_launched(job: "Job", spec: "RunSpec", said: str) -> Exit:
    from prime_train.reports.markdown import code

    job.summary(f"### {code(spec.name)}: nothing was launched\n\n{said}")
    job.output(run="", state="", created=False, url="", deployment="")
    return Exit.OK


def _unfit(job: "Job", error: "Unfit") -> Exit:
    from prime_train.actions.annotations import annotations
    from prime_train.output import print_command
    from prime_train.reports.findings.markdown import markdown

    print_command(annotations(error.findings))
    job.summary(f"### Not launched\n\n{markdown(error.findings, 1)}")
    job.output(run="", state="", created=False, url="", deployment="")
    return Exit.FINDINGS
