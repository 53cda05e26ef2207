"""Collects the files of a bundle in a folder, all but the checkpoint's own files."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from prime_train.app.home import Home
from prime_train.buckets.keys import METRICS_STREAM, blob_key, code_key, code_keys, evidence_key, results_key
from prime_train.buckets.port import Stat, small_object
from prime_train.checkpoints.chunks import places
from prime_train.checkpoints.manifest import Manifest, left_out_of
from prime_train.errors import ExternalError, UsageError
from prime_train.exit_codes import Exit
from prime_train.interop.bundle.layout import (
    CODE,
    CODE_FOLDER,
    CONFIG,
    CURVES,
    FORMAT,
    MACHINES,
    MANIFEST,
    METRICS,
    OBJECTS,
    PAGE,
    README,
    RESULTS,
    RUN,
    THROUGHPUT,
)
from prime_train.interop.bundle.readme import BundleFacts, CheckpointFacts, readme
from prime_train.interop.bundle.seeds import seeds_of
from prime_train.interop.bundle.weights import Conversion
from prime_train.launch.code.archive import is_commit
from prime_train.outputs.lookup import outputs_of
from prime_train.outputs.metric_rows import MetricRow, metric_rows
from prime_train.outputs.metrics import of_run, progress_in
from prime_train.outputs.results.numbers import RunResults, parse_run_results
from prime_train.outputs.results.of_run import last_values
from prime_train.outputs.stored_content import lines_of
from prime_train.pages.charts.curves import Curve, curve_svg
from prime_train.pages.charts.metric_curves import curves_of
from prime_train.pages.charts.png import CannotDraw, png
from prime_train.pages.run_page import run_page_html
from prime_train.pages.run_sources import page_of, read_run_sources
from prime_train.runs.run import Run
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Wire
from prime_train.spec.overrides import config_text
from prime_train.spec.reader import read_text
from prime_train.status.run_status import RunFacts, RunStatus, status_of
from prime_train.status.throughput import MetricLine, Throughput, throughput
from prime_train.text.auto_run import summary
from prime_train.text.redaction import redacted
from prime_train.text.safe import as_cell, neutralized
from prime_train.trainers.of_spec import Progress
from prime_train.version import __version__

METRICS_BYTES_MAX = 256 * 2**20
"""Bytes of an attempt's metrics from which on the rest is left out."""
COLUMNS_MAX = 1000
"""Number of further figures that have a column in the table of metrics: a machine can name others in every
row.
"""
MACHINE_FACTS = ("gpu.txt", "disk.txt")
"""Evidence that describes the machine: its GPUs with their driver, and its disk."""


@dataclass(frozen=True)
class BundledCheckpoint:
    """What a bundle has of the newest complete checkpoint. `manifest`: None if there is none. `is_included`:
    its files are in the bundle; `bucket_url`: they are referred to in this bucket, otherwise empty.
    `conversion`: its weights as safetensors.
    """

    manifest: Manifest | None
    is_included: bool = False
    bucket_url: str = ""
    conversion: Conversion = field(default_factory=Conversion)

    @property
    def shown(self) -> CheckpointFacts | None:
        if self.manifest is None:
            return None
        has_safetensors = any(file.path.endswith(".safetensors") for file in self.manifest.files)
        return CheckpointFacts(self.manifest, self.is_included, redacted(self.bucket_url), has_safetensors)


@dataclass(frozen=True)
class Collected:
    """What was collected. `status`: the run's status, with the criteria judged; `notes`: what could not be
    read, and why.
    """

    status: RunStatus
    notes: tuple[str, ...]


def collect(home: Home, record: RunRecord, checkpoint: BundledCheckpoint, folder: Path) -> Collected:
    """Write the files into `folder`.

    A log or metrics that cannot be read are noted. Raises UsageError if the code is not in the bucket as it
    was launched, and ExternalError if the store or the bucket fails.
    """
    store, run = home.store(), record.run
    config = config_of(run)
    code = _put_code(home, run, folder / CODE)
    sources = read_run_sources(store, home.files(), home.observer(), record)
    notes = list(sources.notes)
    rows = list(_rows(home, record, notes))
    curves = curves_of(row.progress for row in rows)
    status = status_of(RunFacts(record, store.now_s()))
    last = last_values(home.files(), record.run)
    criteria = last.criteria if last is not None else None
    speeds = tuple(throughput(run.spec, status.figures.run.attempts, rows))
    seeds = seeds_of(run.spec, folder / CODE)
    results = _results(home, run)
    _write_curves(folder / CURVES, curves, notes)
    notes += checkpoint.conversion.notes
    manifest = checkpoint.manifest
    left = left_out_of(manifest) if manifest is not None and checkpoint.is_included else {}
    if left:
        notes.append(
            f"{len(left)} of the checkpoint's files, which other programs would run or obey: "
            f"{neutralized(summary(left))}"
        )
    values = {
        "format": FORMAT,
        "prime_train": __version__,
        "run": run.run_id,
        "name": run.spec.name,
        "code": code,
        "checkpoint": _checkpoint(checkpoint),
        "seeds": [asdict(seed) for seed in seeds],
        "success": [asdict(one) for one in criteria] if criteria is not None else None,
        "status": {name: value for name, value in status.row().items() if name != "success"},
        "attempts": [_attempt(one) for one in (asdict(attempt) for attempt in status.figures.run.attempts)],
        "ledger": [
            {"name": part.name, "seconds": part.seconds, "usd": part.usd} for part in status.figures.parts
        ],
        "history": [asdict(event) for event in store.history(run.run_id)],
        "notes": notes,
    }
    _write(folder / CONFIG, config)
    _write(folder / RUN, redacted(json.dumps(values, indent=2)) + "\n")
    _write(folder / PAGE, run_page_html(page_of(store, record, sources)))
    _write_metrics(folder / METRICS, rows)
    if speeds:
        _write_throughput(folder / THROUGHPUT, speeds)
    if results is not None:
        _write(folder / RESULTS, results.model_dump_json(indent=2) + "\n")
    for name, text in _machine_facts(home, run):
        _write(folder / MACHINES / name, text)
    if manifest is not None:
        _write(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
        if checkpoint.bucket_url:
            _write_objects(folder / OBJECTS, manifest)
    others = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    others += [file.path for file in checkpoint.conversion.files]
    about = BundleFacts(
        criteria, tuple(others), checkpoint.shown, config, speeds, seeds, results, tuple(notes)
    )
    _write(folder / README, readme(status, about))
    return Collected(status, tuple(notes))


def config_of(run: Run) -> str:
    """Return the config from which the same run can be launched again. Its code is a folder beside it, or the
    repository at the commit that was used; what looks like a secret is redacted. Raises UsageError if the
    config is then no longer valid.
    """
    values = _plain(run.spec.model_dump(mode="json", exclude_none=True))
    assert isinstance(values, dict)
    code = run.spec.trainer.code
    if not code.repo:
        values["trainer"]["code"] = {"folder": CODE_FOLDER}
    elif is_commit(run.commit):
        values["trainer"]["code"]["ref"] = run.commit
    text = config_text(values)
    read = read_text(text, CONFIG)
    if read.spec is None:
        raise UsageError(
            f"the config of {run.run_id} is not valid in a bundle: {read.findings[0].message}",
            code=Exit.EXTERNAL_FAILED,
        )
    return text


def _plain(value: object) -> object:
    """Return the value with what looks like a secret redacted, and without the empty parts that a config
    leaves out.
    """
    if isinstance(value, dict):
        return {key: below for key, part in value.items() if (below := _plain(part)) not in ({}, [])}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return redacted(value) if isinstance(value, str) else value


def _put_code(home: Home, run: Run, path: Path) -> dict[str, str | None]:
    """Write the code snapshot to `path`, unless the code is from a repository. Return where the code is
    from.
    """
    if run.spec.trainer.code.repo:
        return {"repository": redacted(run.spec.trainer.code.repo), "commit": run.commit, "sha256": None}
    bucket = home.bucket()
    if not any(bucket.get_file(key, path) for key in code_keys(code_key(run.run_id, run.revision))):
        raise UsageError(f"the code of {run.run_id} is no longer in the bucket", code=Exit.EXTERNAL_REFUSED)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if run.code_sha256 not in ("", digest):
        raise UsageError(
            f"the code of {run.run_id} in the bucket is not what was launched: its hash differs",
            code=Exit.FINDINGS,
        )
    return {"repository": None, "commit": run.commit, "sha256": digest}


def _checkpoint(checkpoint: BundledCheckpoint) -> dict[str, object] | None:
    manifest = checkpoint.manifest
    if manifest is None:
        return None
    return {
        "step": manifest.step,
        "attempt": manifest.attempt,
        "key": manifest.key,
        "folder": manifest.folder,
        "files": len(manifest.files),
        "size_bytes": manifest.size,
        "digest": manifest.digest,
        "included": checkpoint.is_included,
        "bucket": redacted(checkpoint.bucket_url) or None,
    }


def _attempt(values: dict[str, object]) -> dict[str, object]:
    """Return the attempt without its identity, which is a part of its fencing token."""
    plain = {name: value.model_dump() if isinstance(value, Wire) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if name != "identity"}


def _rows(home: Home, record: RunRecord, notes: list[str]) -> Iterator[MetricLine]:
    """Yield the metrics that the attempts streamed, oldest first; of a run that streamed none, what can be
    found of the newest attempt.
    """
    try:
        streamed = [
            MetricLine(one.number, row.time_s, _progress_of(row))
            for one, name, pieces in outputs_of(home.stored_runs(), record.run.run_id).texts()
            if name == METRICS_STREAM
            for row in metric_rows(lines_of(home.bucket(), _first(pieces, notes)))
        ]
        source = of_run(home.files(), record, notes.append) if not streamed else None
    except (ExternalError, UsageError) as error:
        notes.append(f"the trainer's metrics: {error}")
        return
    yield from streamed
    if source is not None:
        yield from (MetricLine(record.run.attempt, None, made) for made in progress_in(record.run, source))


def _first(pieces: Iterable[Stat], notes: list[str]) -> Iterator[Stat]:
    """Yield the first pieces of an attempt's metrics, and note whether some were left out."""
    left = METRICS_BYTES_MAX
    for piece in pieces:
        left -= piece.size
        if left < 0:
            notes.append(
                f"the trainer's metrics after the first {METRICS_BYTES_MAX // 2**20} MiB of an attempt"
            )
            return
        yield piece


def _progress_of(row: MetricRow) -> Progress:
    others = {name: value for name, value in row.values.items() if name not in ("loss", "reward")}
    return Progress(
        row.step, row.values.get("loss"), row.values.get("reward"), others, frozenset(row.not_finite)
    )


def _write_metrics(path: Path, rows: Iterable[MetricLine]) -> None:
    rows = list(rows)
    others = list(islice(dict.fromkeys(name for row in rows for name in row.progress.others), COLUMNS_MAX))
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(
            ["attempt", "step", "time_s", "loss", "reward", *(as_cell(redacted(name)) for name in others)]
        )
        for row in rows:
            made: Mapping[str, float] = row.progress.others
            known = (row.time_s, row.progress.loss, row.progress.reward)
            table.writerow([row.attempt, row.progress.step, *known, *(made.get(name) for name in others)])


def _write_curves(folder: Path, curves: Iterable[Curve], notes: list[str]) -> None:
    """Write each curve as SVG, and as PNG if that is possible here."""
    drawn = {curve.slug: curve_svg(curve) for curve in curves}
    for name, svg in drawn.items():
        _write(folder / f"{name}.svg", f"{svg}\n")
    try:
        for name, svg in drawn.items():
            (folder / f"{name}.png").write_bytes(png(svg))
    except CannotDraw as error:
        notes.append(f"curves as PNG: {error}")


def _write_throughput(path: Path, speeds: Iterable[Throughput]) -> None:
    names = (
        "attempt",
        "machine",
        "usd_per_hour",
        "first_step",
        "last_step",
        "step_s",
        "tokens_per_s",
        "usd_per_million_tokens",
    )
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        table.writerows([_cell(getattr(one, name)) for name in names] for one in speeds)


def _cell(value: object) -> object:
    return as_cell(value) if isinstance(value, str) else value


def _write_objects(path: Path, manifest: Manifest) -> None:
    """Write which object of the bucket holds which part of which file."""
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["key", "stored_bytes", "file", "offset", "bytes", "blake3"])
        for place in places(manifest):
            chunk = place.chunk
            key = blob_key(manifest.holder, chunk.digest, chunk.codec)
            table.writerow(
                [
                    key,
                    chunk.stored,
                    as_cell(f"{manifest.folder}/{place.file.path}"),
                    place.offset,
                    chunk.size,
                    chunk.digest,
                ]
            )


def _results(home: Home, run: Run) -> RunResults | None:
    """Return the results of the run; None if there are none yet, or they cannot be understood."""
    content = home.bucket().get(results_key(run.run_id))
    return parse_run_results(content.data, run.run_id) if content is not None else None


def _machine_facts(home: Home, run: Run) -> Iterator[tuple[str, str]]:
    """Yield what the machines of the attempts said of themselves, by file name."""
    bucket = home.bucket()
    for attempt in run.attempts:
        for name in MACHINE_FACTS:
            content = small_object(bucket, evidence_key(run.run_id, attempt.number, name))
            if content is not None:
                yield f"attempt-{attempt.number}-{name}", redacted(content.data.decode(errors="replace"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    # A text of a machine may have halves of surrogate pairs, which cannot be encoded.
    path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
