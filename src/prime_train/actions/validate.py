"""`prime-train gha validate`: check, price and explain the configs that a pull request changes, in annotations, a comment and the job
summary."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.actions.event import Event
    from prime_train.actions.job import Job
    from prime_train.adapters.github import GitHub
    from prime_train.configs.loaded import Matter
    from prime_train.core.finding import Finding
    from prime_train.core.offers import Ranking
    from prime_train.core.spec import RunSpec

NAME = "validate"
BLOCKS_MAX = 20
LAUNCHES_MAX = 4
"""The most runs that one label or merge may launch. A file shared by many configs often changes without all of them being meant to run."""
LEVELS = {"error": ("error",), "warning": ("error", "warning"), "never": ()}


def validate(
    paths: Annotated[
        str, typer.Option(envvar="PRIME_TRAIN_INPUT_PATHS", help="Configs or folders; none: those that the pull request changes.")
    ] = "",
    configs: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_CONFIGS", help="The folder that configs are in.")] = "configs",
    fail_on: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_FAIL_ON", help="error, warning or never.")] = "error",
    comment: Annotated[
        bool, typer.Option("--comment/--no-comment", envvar="PRIME_TRAIN_INPUT_COMMENT", help="Tell the pull request in a comment.")
    ] = True,
    sarif: Annotated[str, typer.Option(envvar="PRIME_TRAIN_INPUT_SARIF", help="A file for the findings as SARIF; none: none.")] = "",
) -> Exit:
    """Check, price and explain the configs of a pull request."""
    from prime_train.actions.annotations import annotations
    from prime_train.actions.event import PullRequest, read_event
    from prime_train.actions.job import Job, hide
    from prime_train.configs.shielding import has_bug
    from prime_train.control_plane.wiring.github_auth import client
    from prime_train.operations.validate import found_in
    from prime_train.output import print_command

    hide(os.environ)
    job = Job.of(os.environ)
    if fail_on not in LEVELS:
        raise UsageError(f"fail-on is {fail_on!r}", fix=f"write one of {', '.join(LEVELS)}")
    event = read_event(job)
    github = client(os.environ)(job.repository) if job.token else None
    read = _about(job, event, github, paths, configs)
    found, _ = found_in(read)
    lines, bugs = _report(job, event, github, read, found)
    found = (*found, *bugs)
    print_command(annotations(found))
    text = "\n".join(lines) + "\n"
    job.summary(text)
    url = _tell(job, event, github, text, bool(read)) if comment and isinstance(event, PullRequest) else ""
    if sarif:
        _write_sarif(sarif, found)
    valid = not any(finding.severity.value in LEVELS[fail_on] for finding in found)
    launches = isinstance(event, PullRequest) and event.action in ("labeled", "closed")
    _answer(job, read, found, valid=valid, sarif=sarif, url=url, launches=launches)
    if has_bug(found):
        return Exit.BUG
    return Exit.OK if valid else Exit.FINDINGS


def _about(job: "Job", event: "Event", github: "GitHub | None", paths: str, configs: str) -> "tuple[Matter, ...]":
    from prime_train.actions import changed
    from prime_train.actions.event import PullRequest

    asked = changed.named(paths)
    if paths and not asked:
        raise UsageError("paths names nothing but spaces", fix="write a path such as configs/demo.yaml, or leave it empty")
    if asked:
        return changed.read_named(asked)
    if isinstance(event, PullRequest):
        if github is None:
            raise UsageError("without a token it is not known what the pull request changes", fix="give the step a token, or paths")
        return changed.of_pull(github, event.number, configs)
    folder = changed.inside(configs)
    return changed.read_named((folder,)) if folder.is_dir() else ()


def _report(
    job: "Job", event: "Event", github: "GitHub | None", read: "Sequence[Matter]", found: "Sequence[Finding]"
) -> "tuple[list[str], list[Finding]]":
    """Return the report's Markdown lines, and a finding for each config whose section failed because of a bug in prime-train."""
    from prime_train.core.finding import Severity
    from prime_train.reports.findings.markdown import markdown

    if not read:
        return ["### prime-train", "", "No config changes."], []
    worst = list(Severity)
    lines = ["### prime-train", "", markdown(sorted(found, key=lambda finding: worst.index(finding.severity)), len(read))]
    faulty = {finding.file for finding in found if finding.severity.value == "error"}
    runs = [matter for matter in read if matter.subject is not None and matter.subject.spec is not None and matter.file not in faulty]
    bugs: list[Finding] = []
    for matter in runs[:BLOCKS_MAX]:
        lines += ["", *_block(job, event, github, matter, bugs)]
    if len(runs) > BLOCKS_MAX:
        lines += ["", f"… and {len(runs) - BLOCKS_MAX} more configs, which are checked and not shown."]
    return lines, bugs


def _block(job: "Job", event: "Event", github: "GitHub | None", matter: "Matter", bugs: "list[Finding]") -> "list[str]":
    from prime_train.actions.run_block import block
    from prime_train.configs.shielding import shielded

    def told() -> list[str]:
        assert matter.subject is not None
        assert matter.subject.spec is not None
        before = {file: _before(job, event, github, file) for file in matter.sources}
        return block(matter.file, matter.subject, _for_rent(matter.subject.spec), before=before, after=matter.sources)

    def failed(finding: "Finding") -> list[str]:
        bugs.append(finding)
        return [finding.message]

    return shielded(matter.file, told, failed)


def _before(job: "Job", event: "Event", github: "GitHub | None", file: str) -> str | None:
    """Return the file's contents on the base branch, or None if it does not exist there or cannot be read. Outside a pull request, return
    the contents in the working folder."""
    from prime_train.actions.event import PullRequest
    from prime_train.adapters.github import content_at
    from prime_train.ports import OutsideError

    if not isinstance(event, PullRequest) or github is None:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    try:
        return content_at(github, file, event.base)
    except OutsideError as error:
        job.warning(f"{file}: what the base branch has is not known: {error}")
        return None


def _for_rent(spec: "RunSpec") -> "Ranking | None":
    """Return the ranked offers for the spec, or None if there is no API key, the spec uses another provider, or the provider does not
    answer, which is not the config's fault."""
    from prime_train.actions.job import warned
    from prime_train.control_plane.wiring.providers import for_rent, is_set_up, provider_to_rent_from
    from prime_train.core.offers import rank
    from prime_train.core.registry.providers import PROVIDERS
    from prime_train.ports import OutsideError
    from prime_train.reports.markdown import one_line

    provider = provider_to_rent_from(os.environ, spec.hardware.provider)
    if not PROVIDERS[provider].is_rented or not is_set_up(provider, os.environ):
        return None
    try:
        return rank(for_rent(os.environ, spec.hardware), spec.hardware)
    except OutsideError as error:
        warned(f"offers are not known: {one_line(str(error))[:300]}")
        return None


def _tell(job: "Job", event: "Event", github: "GitHub | None", text: str, has_configs: bool) -> str:
    """Create, update or delete the pull request's comment and return its URL, or "" if there is none. Missing permission is only a notice:
    the token of a pull request from a fork cannot comment, and its author cannot change that."""
    from prime_train.actions.event import PullRequest
    from prime_train.adapters.github import delete_sticky, upsert_sticky
    from prime_train.ports import PermanentError, TemporaryError

    assert isinstance(event, PullRequest)
    if github is None or event.head_repository != job.repository:
        job.notice("no comment: this pull request is from a fork, or the step has no token; the job's summary has it all")
        return ""
    try:
        if not has_configs:
            delete_sticky(github, event.number, NAME)
            return ""
        return upsert_sticky(github, event.number, NAME, text).html_url
    except PermanentError as error:
        job.notice(f"no comment: {error}; the job's summary has it all")
    except TemporaryError as error:
        job.warning(f"no comment: {error}; the job's summary has it all")
    return ""


def _write_sarif(file: str, found: "Sequence[Finding]") -> None:
    from prime_train.actions.changed import inside
    from prime_train.reports.findings.sarif import sarif

    inside(file).write_text(json.dumps(sarif(found), indent=2) + "\n", encoding="utf-8")


def _answer(job: "Job", read: "Sequence[Matter]", found: "Sequence[Finding]", *, valid: bool, sarif: str, url: str, launches: bool) -> None:
    from prime_train.actions.changed import runs_among

    runs = runs_among(read)
    if launches and len(runs) > LAUNCHES_MAX:
        fix = "launch them one by one (workflow_dispatch of launch)"
        raise UsageError(f"{len(runs)} configs lead to what this pull request changes, and would all be launched", fix=fix)
    counts = {level: sum(finding.severity.value == level for finding in found) for level in ("error", "warning")}
    job.output(valid=valid, findings=len(found), errors=counts["error"], warnings=counts["warning"], configs=json.dumps(runs))
    job.output(sarif=sarif, comment_url=url)
    typer.echo(f"{len(read)} configs: {counts['error']} errors, {counts['warning']} warnings")
