"""The README of a bundle: what the run is, how it ended, what was wanted of it, and how it is launched again."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from prime_train.core.advice import Call, Operation, Option, Setting
from prime_train.core.manifest import Manifest
from prime_train.core.results.criteria import Criterion
from prime_train.core.text.commands import command
from prime_train.core.text.formatting import size, usd
from prime_train.core.text.redaction import HIDDEN, redacted
from prime_train.reports.markdown import code, plain, table
from prime_train.reports.run_status import RunStatus
from prime_train.reports.success import facts

_WHAT = {
    "run.json": "the run: status, criteria, attempts with their machines, ledger, history",
    "config.yaml": "the config with all its values, to launch the run again",
    "code.tar.gz": "the code as it was copied to the machines",
    "metrics.csv": "what the trainer reported of each step, by attempt",
    "page.html": "all of it as one page, to be opened in a browser",
    "checkpoint-manifest.json": "the files of the newest complete checkpoint with their hashes",
    "curves/": "metrics over the steps, such as the loss",
    "machines/": "GPUs, driver and disk, as the machines reported them",
}


def readme(
    one: RunStatus,
    criteria: Sequence[Criterion] | None,
    files: Sequence[str],
    manifest: Manifest | None,
    *,
    config: str,
    with_weights: bool,
    notes: Sequence[str],
) -> str:
    """Return the text in Markdown. `files`: the paths of the other files in the bundle; `config`: the text of the config there; `notes`:
    what could not be read."""
    return "\n".join(_lines(one, criteria, files, manifest, config, notes, with_weights=with_weights)) + "\n"


def _lines(
    one: RunStatus,
    criteria: Sequence[Criterion] | None,
    files: Sequence[str],
    manifest: Manifest | None,
    config: str,
    notes: Sequence[str],
    *,
    with_weights: bool,
) -> Iterator[str]:
    yield f"# {one.run}"
    yield ""
    yield f"A run of {plain(one.name)}: {one.state}{f', {plain(redacted(one.why))}' if one.why else ''}."
    yield ""
    yield from table(("", ""), list(_facts(one, manifest)))
    yield ""
    yield "## Success"
    yield ""
    yield from _success(one, criteria)
    yield ""
    yield from _relaunch(one, config)
    yield "## What is here"
    yield ""
    yield from table(("file", ""), [(code(name), what) for name, what in _WHAT.items() if any(path.startswith(name) for path in files)])
    yield ""
    if manifest is not None:
        where = f"in {code('checkpoint/' + manifest.folder)}" if with_weights else "not in this bundle, but in the bucket of the run"
        yield f"The files of the checkpoint are {where}."
        yield ""
    yield from _check(one)
    yield from [f"Not read: {plain(redacted(note))}." for note in notes]


def _facts(one: RunStatus, manifest: Manifest | None) -> Iterator[tuple[str, str]]:
    yield "launched", _moment(one.created_s)
    yield "ended", _moment(one.ended_s) if one.ended_s is not None else "not yet"
    if one.figures.run.branch is not None:
        yield "started from", plain(one.figures.run.branch.text)
    yield "step", plain(one.figures.steps_text)
    yield "spent", plain(f"{one.figures.money}, {one.figures.paid} of paid time")
    yield "attempts", f"{one.attempts}, restarts: {plain(one.causes)}"
    for attempt in one.figures.run.attempts[-1:]:
        offer = attempt.offer
        gpus = f"{offer.gpu_count} x {offer.gpu}" if offer.gpu else "no GPU"
        yield "last machine", plain(f"{gpus}, {offer.provider} {offer.offer_id}, {usd(offer.usd_per_hour)} an hour")
    yield "commit", plain(one.commit) or "none"
    if manifest is not None:
        yield (
            "newest checkpoint",
            f"step {manifest.step:,}{_attempt(manifest)}, {len(manifest.files)} files, {size(manifest.size)}",
        )


def _attempt(manifest: Manifest) -> str:
    return f" of attempt {manifest.attempt}" if manifest.attempt else f", whose content {manifest.blobs_of} has"


def _moment(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _success(one: RunStatus, criteria: Sequence[Criterion] | None) -> Iterator[str]:
    if criteria is not None:
        yield from table(("criterion", "by the last value reported"), [(title, plain(result)) for title, result in facts(criteria)])
    else:
        yield "The config names no criteria." if one.ended_s is not None else "The run is not over, so no criteria were judged."


def _relaunch(one: RunStatus, config: str) -> Iterator[str]:
    spec = one.figures.run.spec
    yield "## Launch it again"
    yield ""
    yield "In this folder:"
    yield ""
    yield "```sh"
    if not spec.trainer.code.repo:
        yield "mkdir code"
        yield "tar -xzf code.tar.gz -C code"
    branch = one.figures.run.branch
    start = Option(Setting.START, f"{branch.source.run}@{branch.source.step}") if branch is not None else None
    yield command(Call(Operation.LAUNCH, "config.yaml", (start,) if start is not None else ()))
    yield "```"
    yield ""
    if branch is not None:
        yield f"The run started from {branch.text}. The command needs that checkpoint in the bucket; without it the run starts"
        yield "from step 0, and ends differently."
        yield ""
    needs = [f"The control plane must have {', '.join(map(code, spec.secrets))} in its environment."] if spec.secrets else []
    if spec.budget.deadline is not None:
        needs.append(f"Set another {code('budget.deadline')} first, if {spec.budget.deadline} is over.")
    if HIDDEN in config:
        needs.append(f"Values that look like secrets are replaced by {code(HIDDEN)} in {code('config.yaml')}; write your own.")
    if needs:
        yield " ".join(needs)
        yield ""


def _check(one: RunStatus) -> Iterator[str]:
    yield "## Check it"
    yield ""
    yield "```sh"
    yield command(Call(Operation.VERIFY_BUNDLE, f"{one.run}.tar.gz"))
    yield "```"
    yield ""
    yield "The command compares every file with its hash, and the checkpoint's manifest with the run. Without prime-train,"
    yield f"{code('sha256sum -c SHA256SUMS')} in this folder checks the hashes. They show damage, but do not prove who made the bundle."
    yield ""
