"""`prime-train gha validate`: check, price and explain the configs that a pull request changes, in
annotations, a comment and the job summary.
"""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.checks.report.annotations import annotations
from prime_train.checks.report.markdown import markdown
from prime_train.configs.bug_findings import bug_as_finding
from prime_train.environment import STORE
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.github.auth import client
from prime_train.github.commands.job import Job, annotated, job_environment
from prime_train.github.events import Event
from prime_train.spec.finding import Finding, Severity
from prime_train.terminal.output import print_command
from prime_train.text.explained_errors import is_debugging
from prime_train.text.markdown import plain

if TYPE_CHECKING:
    from prime_train.configs.loader import LoadedConfig
    from prime_train.github.api import GitHub
    from prime_train.github.config_check import CommentResult
    from prime_train.github.market_reader import MarketReader
    from prime_train.github.required_results import ConfigCheck

BLOCKS_MAX = 20


@annotated
def validate(
    paths: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_PATHS",
            help="Configs or folders; by default those that the pull request changes.",
        ),
    ] = "",
    configs: Annotated[
        str, typer.Option(envvar="PRIME_TRAIN_INPUT_CONFIGS", help="Folder of the configs.")
    ] = "configs",
    fail_on: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_FAIL_ON",
            help="Severity from which the job fails: error, warning or never.",
        ),
    ] = "error",
    comment: Annotated[
        bool,
        typer.Option(
            "--comment/--no-comment",
            envvar="PRIME_TRAIN_INPUT_COMMENT",
            help="Comment the findings on the pull request.",
        ),
    ] = True,
    launched: Annotated[
        bool,
        typer.Option(
            "--launches/--no-launches",
            envvar="PRIME_TRAIN_INPUT_LAUNCHES",
            help="Whether a later job launches the configs.",
        ),
    ] = False,
    sarif: Annotated[
        str,
        typer.Option(
            envvar="PRIME_TRAIN_INPUT_SARIF", help="File to write the findings to as SARIF; by default none."
        ),
    ] = "",
) -> Exit:
    """Check, price and explain the configs of a pull request."""
    from prime_train.checks.report.sarif import sarif as findings_as_sarif
    from prime_train.checks.validate import FAIL_ON, check_configs, exit_for, passes
    from prime_train.configs.history.policy import beyond_policy
    from prime_train.github.changed_configs import inside, unchanged
    from prime_train.github.commands.schedule import report_schedule
    from prime_train.github.config_check import comment_on_pull, configs_of, launched_configs
    from prime_train.github.launch_request import launches
    from prime_train.github.market_reader import MarketReader
    from prime_train.github.required_results import config_checks, pass_unchanged
    from prime_train.launch.review import reviewable

    environment = job_environment(os.environ)
    job = Job.of(environment)
    if fail_on not in FAIL_ON:
        raise UsageError(f"fail-on is {fail_on!r}", fix=f"write one of {', '.join(FAIL_ON)}")
    trigger = job.trigger()
    github = client(environment)(job.repository) if job.token else None
    read = configs_of(trigger, github, environment, paths=paths, folder=configs)
    found, _ = check_configs(read, beyond_policy(read, environment), debug=is_debugging(os.environ))
    launched = launched or launches(trigger)
    checks = config_checks(trigger, github, reviewable(read, found), job.notice) if not launched else []
    if not launched and not paths:
        pass_unchanged(trigger, github, unchanged(read, configs, environment), job.notice)
    market = MarketReader(environment, job.warning)
    lines, bugs = _report(job, trigger.event, github, read, found, checks, market)
    found = (*found, *_unmet(checks), *bugs)
    print_command(annotations(found))
    text = "\n".join(lines) + "\n"
    job.summary(text)
    url = (
        _report_comment(job, comment_on_pull(github, trigger, text, has_configs=bool(read)))
        if comment
        else ""
    )
    if github is not None and environment.get(STORE, "").strip():
        # With a control plane, a schedule is expected.
        report_schedule(job, github, is_live=False)
    if sarif:
        inside(sarif).write_text(json.dumps(findings_as_sarif(found), indent=2) + "\n", encoding="utf-8")
    valid = passes(found, fail_on)
    _answer(
        job,
        launched_configs(trigger, read, launched=launched),
        len(read),
        found,
        valid=valid,
        sarif=sarif,
        url=url,
    )
    return exit_for(found, valid=valid)


def _report(
    job: Job,
    event: Event,
    github: "GitHub | None",
    read: "Sequence[LoadedConfig]",
    found: Sequence[Finding],
    checks: "Sequence[ConfigCheck]",
    market: "MarketReader",
) -> tuple[list[str], list[Finding]]:
    """Return the report's Markdown lines, and a finding for each config whose section failed because of a bug
    in prime-train.
    """
    from prime_train.github.commands.config_section import block
    from prime_train.github.config_check import review_for
    from prime_train.launch.review import reviewable

    if not read:
        return ["### prime-train", "", "Nothing to check: no config changes."], []
    worst = list(Severity)
    every = [*found, *_unmet(checks)]
    lines = [
        "### prime-train",
        "",
        markdown(sorted(every, key=lambda finding: worst.index(finding.severity)), len(read)),
    ]
    runs = reviewable(read, found)
    earlier = market.earlier_runs(runs)
    bugs: list[Finding] = []
    for loaded in runs[:BLOCKS_MAX]:
        try:
            section = block(loaded.file, review_for(loaded, event, github, market, earlier, job.warning))
        except Exception as error:
            # Whether the offers, the review or its text fails: the other configs are reviewed all the same.
            bugs.append(bug_as_finding(loaded.file, error, debug=is_debugging(os.environ)))
            section = [bugs[-1].message]
        lines += ["", *section]
        lines += [
            f"\nRequirements: {one.check.state}: {plain(one.check.text)}."
            for one in checks
            if one.loaded is loaded
        ]
    if len(runs) > BLOCKS_MAX:
        lines += ["", f"… and {len(runs) - BLOCKS_MAX} more configs, which are checked but not shown."]
    return lines, bugs


def _unmet(checks: "Sequence[ConfigCheck]") -> list[Finding]:
    return [one.finding for one in checks if one.finding is not None]


def _report_comment(job: Job, result: "CommentResult") -> str:
    if result.reason:
        say = job.notice if result.is_expected else job.warning
        say(f"no comment: {result.reason}; the job's summary contains everything")
    return result.url


def _answer(
    job: Job, runs: Sequence[str], files: int, found: Sequence[Finding], *, valid: bool, sarif: str, url: str
) -> None:
    counts = {
        level: sum(finding.severity.value == level for finding in found) for level in ("error", "warning")
    }
    job.output(
        valid=valid,
        findings=len(found),
        errors=counts["error"],
        warnings=counts["warning"],
        configs=json.dumps(runs),
    )
    job.output(sarif=sarif, comment_url=url)
    typer.echo(f"{files} configs: {counts['error']} errors, {counts['warning']} warnings")
