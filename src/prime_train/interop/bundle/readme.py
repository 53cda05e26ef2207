"""The README of a bundle: what the run is, how it ended, what was wanted of it, and how it is launched
again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from prime_train.advice import Call, Operation, Option, SettingAdvice
from prime_train.checkpoints.manifest import Manifest
from prime_train.outputs.results.criteria import Criterion
from prime_train.outputs.results.criteria_values import facts
from prime_train.outputs.results.numbers import RunResults
from prime_train.status.run_status import RunStatus
from prime_train.status.throughput import Throughput
from prime_train.text.formatting import size, usd
from prime_train.text.invocations import command
from prime_train.text.markdown import code, plain, table
from prime_train.text.redaction import HIDDEN, redacted

SEEDS_SHOWN_MAX = 20
_WHAT = {
    "run.json": "the run: status, criteria, attempts with their machines, ledger, history",
    "config.yaml": "the config with all its values, to launch the run again",
    "code.tar.gz": "the code as it was copied to the machines",
    "metrics.csv": "what the trainer reported of each step, by attempt",
    "throughput.csv": "seconds per step, tokens per second and price of a million tokens, by attempt",
    "results.json": "the run's results: numbers from the training, its evaluations, and the steps after it",
    "page.html": "all of it as one page, to be opened in a browser",
    "checkpoint-manifest.json": "the files of the newest complete checkpoint with their hashes",
    "checkpoint-objects.csv": "the objects in the bucket of which the checkpoint's files are made, with "
    "their hashes",
    "weights/": "the model's weights as safetensors, converted from the checkpoint's files",
    "curves/": "metrics over the steps, such as the loss",
    "machines/": "GPUs, driver and disk, as the machines reported them",
}


@dataclass(frozen=True)
class Seed:
    """`where`: the part of the config, or the file with the line."""

    name: str
    value: int
    where: str


@dataclass(frozen=True)
class CheckpointFacts:
    """The newest complete checkpoint. `is_included`: its files are in the bundle; `bucket`: where they are
    referred to, otherwise empty; `has_safetensors`: some of them are safetensors.
    """

    manifest: Manifest
    is_included: bool
    bucket: str
    has_safetensors: bool


@dataclass(frozen=True)
class BundleFacts:
    """What the README tells beside the status. `files`: the paths of the other files in the bundle; `config`:
    the text of the config there; `notes`: what was left out, and why.
    """

    criteria: Sequence[Criterion] | None
    files: tuple[str, ...]
    checkpoint: CheckpointFacts | None
    config: str
    speeds: tuple[Throughput, ...]
    seeds: tuple[Seed, ...]
    results: RunResults | None
    notes: tuple[str, ...]


def readme(one: RunStatus, about: BundleFacts) -> str:
    """Return the text in Markdown."""
    return "\n".join(_lines(one, about)) + "\n"


def _lines(one: RunStatus, about: BundleFacts) -> Iterator[str]:
    yield f"# {one.run}"
    yield ""
    yield f"A run of {plain(one.name)}: {one.state}{f', {plain(redacted(one.why))}' if one.why else ''}."
    yield ""
    yield from table(("", ""), list(_facts(one, about)))
    yield ""
    yield "## Success"
    yield ""
    yield from _success(one, about.criteria)
    yield ""
    yield from _results(about.results)
    yield from _throughput(about.speeds)
    yield from _relaunch(one, about.config)
    yield "## What is here"
    yield ""
    rows = [
        (code(name), what)
        for name, what in _WHAT.items()
        if any(path.startswith(name) for path in about.files)
    ]
    yield from table(("file", ""), rows)
    yield ""
    if about.checkpoint is not None:
        yield from _checkpoint(about.checkpoint)
    yield from _check(one)
    yield from [f"Left out: {plain(redacted(note))}." for note in about.notes]


def _checkpoint(found: CheckpointFacts) -> Iterator[str]:
    manifest = found.manifest
    if found.is_included:
        own = " Its weights are safetensors there." if found.has_safetensors else ""
        yield f"The files of the checkpoint are in {code('checkpoint/' + manifest.folder)}.{own}"
    elif found.bucket:
        yield (
            f"The files of the checkpoint are in the bucket {code(found.bucket)}, where the checkpoint "
            "is pinned."
        )
        yield f"{code('checkpoint-objects.csv')} names the objects that they are made of."
        yield "Whoever can read that bucket can verify and restore them:"
        yield ""
        yield "```sh"
        yield command(
            Call(
                Operation.VERIFY_BUNDLE, f"{manifest.run}.tar.gz", (Option(SettingAdvice.WEIGHTS_IN_BUCKET),)
            )
        )
        where = (Option(SettingAdvice.STEP, str(manifest.step)), Option(SettingAdvice.BUCKET, found.bucket))
        yield command(Call(Operation.RESTORE, f"{manifest.run} DIR", where))
        yield "```"
    else:
        yield "The files of the checkpoint are not in this bundle, but in the bucket of the run."
    yield ""


def _results(results: RunResults | None) -> Iterator[str]:
    if results is None or not results.numbers:
        return
    yield "## Results"
    yield ""
    rows = []
    for number in results.numbers:
        value = f"{number.value:.6g}" if number.value is not None else "not finite"
        source = f"{number.source}{f' ({number.by})' if number.by else ''}"
        rows.append(
            (
                plain(redacted(number.name)),
                value,
                plain(source),
                f"{number.step:,}" if number.step is not None else "-",
            )
        )
    yield from table(("result", "value", "from", "step"), rows)
    yield ""


def _throughput(speeds: Sequence[Throughput]) -> Iterator[str]:
    if not speeds:
        return
    yield "## Throughput"
    yield ""
    heads = ("attempt", "machine", "steps", "seconds per step", "tokens per second", "$ per million tokens")
    rows = [
        (
            str(speed.attempt),
            plain(speed.machine),
            f"{speed.first_step:,} to {speed.last_step:,}",
            _number(speed.step_s),
            _number(speed.tokens_per_s),
            _number(speed.usd_per_million_tokens),
        )
        for speed in speeds
    ]
    yield from table(heads, rows)
    yield ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _facts(one: RunStatus, about: BundleFacts) -> Iterator[tuple[str, str]]:
    yield "launched", _moment(one.created_s)
    yield "ended", _moment(one.ended_s) if one.ended_s is not None else "not yet"
    if one.figures.run.lineage is not None:
        yield "started from", plain(one.figures.run.lineage.text)
    yield "step", plain(one.figures.steps_text)
    yield "spent", plain(f"{one.figures.money}, {one.figures.paid} of paid time")
    yield "attempts", f"{one.attempts}, restarts: {plain(one.causes)}"
    for attempt in one.figures.run.attempts[-1:]:
        offer = attempt.offer
        gpus = f"{offer.gpu_count} x {offer.gpu}" if offer.gpu else "no GPU"
        yield (
            "last machine",
            plain(f"{gpus}, {offer.provider} {offer.offer_id}, {usd(offer.usd_per_hour)} an hour"),
        )
    yield "commit", plain(one.commit) or "none"
    if about.seeds:
        yield (
            "seeds",
            plain(
                ", ".join(
                    f"{seed.name} = {seed.value} ({seed.where})" for seed in about.seeds[:SEEDS_SHOWN_MAX]
                )
            ),
        )
    if about.checkpoint is not None:
        manifest = about.checkpoint.manifest
        yield (
            "newest checkpoint",
            f"step {manifest.step:,}{_attempt(manifest)}, {len(manifest.files)} files, {size(manifest.size)}",
        )


def _attempt(manifest: Manifest) -> str:
    return (
        f" of attempt {manifest.attempt}" if manifest.attempt else f", whose content {manifest.blobs_of} has"
    )


def _moment(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _success(one: RunStatus, criteria: Sequence[Criterion] | None) -> Iterator[str]:
    if criteria is not None:
        yield from table(
            ("criterion", "by the last value reported"),
            [(title, plain(result)) for title, result in facts(criteria)],
        )
    else:
        yield (
            "The config names no criteria."
            if one.ended_s is not None
            else "The run is not over, so no criteria were judged."
        )


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
    lineage = one.figures.run.lineage
    start = (
        Option(SettingAdvice.START, f"{lineage.source.run}@{lineage.source.step}")
        if lineage is not None
        else None
    )
    yield command(Call(Operation.LAUNCH, "config.yaml", (start,) if start is not None else ()))
    yield "```"
    yield ""
    if lineage is not None:
        yield (
            f"The run started from {lineage.text}. The command needs that checkpoint in the "
            "bucket; without that option the run starts"
        )
        yield "from step 0, and ends differently."
        yield ""
    needs = (
        [f"The control plane must have {', '.join(map(code, spec.secrets))} in its environment."]
        if spec.secrets
        else []
    )
    if spec.budget.deadline is not None:
        needs.append(f"Set another {code('budget.deadline')} first, if {spec.budget.deadline} is over.")
    if HIDDEN in config:
        needs.append(
            f"Values that look like secrets are replaced by {code(HIDDEN)} in {code('config.yaml')}; write "
            "your own."
        )
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
    yield (
        "The command compares every file with its hash, and the checkpoint's manifest with the run. Without "
        "prime-train,"
    )
    yield (
        f"{code('sha256sum -c SHA256SUMS')} in this folder checks the hashes. They show damage, but "
        "do not prove who made the bundle."
    )
    yield ""
