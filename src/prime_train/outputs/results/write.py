"""The results of runs in the bucket: gathered from what their attempts left there, written when a run has
ended, and compared with those of the newest run of the same config on the branch that a pull request proposes
to change.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from prime_train.buckets.keys import METRICS_STREAM, attempt_results_key, results_key, stream_prefix
from prime_train.buckets.port import Bucket, Stat, small_object
from prime_train.errors import PermanentError, UsageError
from prime_train.outputs.metric_rows import metric_rows
from prime_train.outputs.results.comparison import PullResults, compared
from prime_train.outputs.results.numbers import (
    NUMBERS_MAX,
    Number,
    ResultSource,
    RunResults,
    parse_attempt_results,
    parse_run_results,
)
from prime_train.runs.run import Attempt, Origin, Run, RunState
from prime_train.runs.store import Store
from prime_train.spec.limits import STEP_MAX
from prime_train.spec.requirements import parse_requirement, violation_of_name
from prime_train.spec.spec import RunSpec
from prime_train.text.line_pieces import lines_in

ATTEMPTS_MAX = 8
"""Number of newest attempts whose numbers are gathered; an older one has hardly ever reported what the newer
ones have not.
"""
METRICS_BYTES_MAX = 32 * 2**20
"""Bytes of an attempt's metrics that are read; of longer ones the first and the last pieces, because the
names are in the first ones.
"""
PIECE_BYTES_MAX = 2**20
"""Size of a piece from which on it is left out: agents write much smaller ones."""
PIECES_MAX = 20_000
SIDE_MAX = 20
"""Number of newest runs on each side of a comparison."""


def write_results(bucket: Bucket, run: Run) -> RunResults | None:
    """Gather the results of a run that has ended, and write them. Returns None, with nothing written, for a
    run that has not ended or never had a machine. Raises the bucket's errors.
    """
    results = _gathered(bucket, run)
    if results is not None:
        bucket.put(results.key, results.data)
    return results


def read_results(bucket: Bucket, run: Run) -> RunResults | None:
    """Return the results of a run that has ended: as they were written, or as they are gathered now if that
    failed. None as in `write_results`. Raises the bucket's errors.
    """
    content = bucket.get(results_key(run.run_id)) if run.is_over else None
    written = parse_run_results(content.data, run.run_id) if content is not None else None
    # The results of a run that was resumed since are outdated.
    is_current = written is not None and (written.attempt, written.ended_s) == (run.attempt, run.ended_s)
    return written if is_current else _gathered(bucket, run)


def pull_results(store: Store, bucket: Callable[[], Bucket], run: Run) -> PullResults:
    """Return the results of the run and their comparison with the base runs. `bucket` opens the bucket; it is
    called only for a run that is over. Raises the errors of store and bucket.
    """
    origin = run.origin
    if origin is None:
        return PullResults(read_results(bucket(), run) if run.is_over else None)
    runs = store.list_runs()
    ours = of_pull(runs, origin) if origin.pull is not None else []
    same = [other for other in ours if other.origin is not None and other.origin.commit == origin.commit]
    is_newest = not any((other.created_s, other.run_id) > (run.created_s, run.run_id) for other in same)
    if not run.is_over:
        return PullResults(is_newest=is_newest)
    opened = bucket()
    results = read_results(opened, run)
    if results is None or origin.pull is None or not origin.base or run.probe is not None:
        return PullResults(results, is_newest=is_newest)
    older = [other for other in ours if other.created_s <= run.created_s and other.run_id != run.run_id]
    this = [results, *_results_of(opened, older)]
    base = _results_of(opened, base_runs(runs, origin, but=run.run_id))
    return PullResults(
        results, compared(this, base, [parse_requirement(line) for line in run.spec.require]), is_newest
    )


def of_pull(runs: Sequence[Run], origin: Origin) -> list[Run]:
    """Return the runs of the same config and pull request as `origin`, newest first."""
    found = [
        run for run in _of_config(runs, origin) if run.origin is not None and run.origin.pull == origin.pull
    ]
    return _newest_first(run for run in found if run.origin is not None and run.origin.base == origin.base)


def base_runs(runs: Sequence[Run], origin: Origin, *, but: str = "") -> list[Run]:
    """Return the runs of the same config that were launched from the branch `origin.base` and have succeeded,
    newest first. If `origin` has no base, those from its own branch are returned. `but`: the id of a run that
    is left out.
    """
    branch = origin.base or origin.branch
    found = [run for run in _of_config(runs, origin) if run.run_id != but]
    return _newest_first(
        run
        for run in found
        if branch
        and run.state is RunState.SUCCEEDED
        and run.origin is not None
        and run.origin.branch == branch
    )


def _newest_first(runs: Iterator[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (run.ended_s or 0, run.created_s, run.run_id), reverse=True)


def _of_config(runs: Sequence[Run], origin: Origin) -> list[Run]:
    """Return the runs of the same config; probes are none, because they end before anything comes of them."""
    return [
        run
        for run in runs
        if run.origin is not None and _config(run.origin) == _config(origin) and run.probe is None
    ]


def _config(origin: Origin) -> tuple[str, str]:
    return origin.repository, origin.config


def _results_of(bucket: Bucket, runs: Sequence[Run]) -> list[RunResults]:
    return [results for run in runs[:SIDE_MAX] if (results := read_results(bucket, run)) is not None]


# ------------------------------------------------------------------------------------------------------------
# gathering


def _gathered(bucket: Bucket, run: Run) -> RunResults | None:
    last = run.current_attempt
    if not run.is_over or last is None or run.ended_s is None:
        return None
    return RunResults(
        run=run.run_id,
        attempt=run.attempt,
        identity=last.identity,
        numbers=tuple(islice(_numbers(bucket, run), NUMBERS_MAX)),
        state=run.state.value,
        config=run.spec.name,
        config_sha256=settings_digest(run.spec, run.lineage.places if run.lineage is not None else ""),
        commit=run.commit,
        code_sha256=run.code_sha256,
        ended_s=run.ended_s,
        step=min(max(run.best_step, last.last_step), STEP_MAX),
        seed=seed_of(run.spec),
    )


def measured_numbers(bucket: Bucket, run: Run) -> Iterator[Number]:
    """Yield the numbers of evaluations and of steps after training so far, as `write_results` gathers them.
    Raises the bucket's errors.
    """
    return _numbers(bucket, run, with_training=False)


def _numbers(bucket: Bucket, run: Run, *, with_training: bool = True) -> Iterator[Number]:
    """Yield the numbers that the attempts left, each once, newest attempt first. Of an older attempt,
    training and evaluations count up to the step from which the next one went on, because what followed was
    lost with its machine.
    """
    known: set[object] = set()
    until: int | None = None
    for attempt in reversed(run.attempts[-ATTEMPTS_MAX:]):
        trained = _trained(bucket, run, attempt, until) if with_training else ()
        for number in (*_measured(bucket, run, attempt), *trained):
            is_lost = (
                until is not None and number.source is not ResultSource.AFTER and (number.step or 0) > until
            )
            if number.place not in known and not is_lost:
                known.add(number.place)
                yield number
        until = attempt.resumed_step if until is None else min(until, attempt.resumed_step)


def _measured(bucket: Bucket, run: Run, attempt: Attempt) -> Sequence[Number]:
    """Return the numbers of evaluations and of steps after training, as the attempt's machine wrote them."""
    content = small_object(bucket, attempt_results_key(run.run_id, attempt.number, attempt.identity))
    results = (
        parse_attempt_results(content.data, run.run_id, attempt.number, attempt.identity)
        if content is not None
        else None
    )
    return results.numbers if results is not None else ()


def _trained(bucket: Bucket, run: Run, attempt: Attempt, until: int | None) -> Iterator[Number]:
    """Yield the last value of each figure that the trainer reported, up to the step `until`: of no more
    figures than a run can have as results, because a machine can name others in every row.
    """
    listed = bucket.list(stream_prefix(run.run_id, attempt.number, attempt.identity, METRICS_STREAM))
    pieces = [piece for piece in islice(listed, PIECES_MAX) if piece.size <= PIECE_BYTES_MAX]
    last: dict[str, tuple[float | None, int]] = {}
    for row in metric_rows(lines_in(_contents(bucket, pieces))):
        if until is not None and row.step > until:
            continue
        for name, value in (*row.values.items(), *dict.fromkeys(row.not_finite).items()):
            if name in last or (len(last) < NUMBERS_MAX and not violation_of_name(name)):
                last[name] = value, row.step
    for name, (value, step) in last.items():
        yield Number(name=name, value=value, source=ResultSource.TRAINING, step=step)


def _contents(bucket: Bucket, pieces: Sequence[Stat]) -> Iterator[bytes]:
    """Yield the pieces of a text. Of a long text a part in the middle is left out; pieces end at the end of a
    line.
    """
    for piece in _bounded(pieces):
        content = small_object(bucket, piece.key)
        if content is not None:
            yield content.data


def _bounded(pieces: Sequence[Stat]) -> list[Stat]:
    sizes, kept = 0, list(pieces)
    if sum(piece.size for piece in pieces) <= METRICS_BYTES_MAX:
        return kept
    first = [piece for piece in kept if (sizes := sizes + piece.size) <= METRICS_BYTES_MAX // 2]
    sizes, last = 0, []
    for piece in reversed(kept[len(first) :]):
        sizes += piece.size
        if sizes > METRICS_BYTES_MAX // 2:
            break
        last.append(piece)
    return [*first, *reversed(last)]


def results_reader(store: Store, open_bucket: Callable[[], Bucket]) -> Callable[[Run], PullResults]:
    """Return a function that reads the results of a run and compares them with those of the base branch. It
    raises ExternalError.
    """

    def results(run: Run) -> PullResults:
        try:
            return pull_results(store, open_bucket, run)
        except UsageError as error:
            # The bucket is not set up here as it is where the run was made.
            raise PermanentError(str(error)) from error

    return results


_SEED = re.compile(r"(?i)(?<![a-z])(seed)(\s*=\s*|\s+)(\d{1,18})(?![\w.])")
"""A seed on a command line, such as `--seed 3`, `--trainer.seed=3` or `seed=3`."""
_SEED_NAME = re.compile(r"(?i)(?:.*_)?seed")


def seed_of(spec: RunSpec) -> int | None:
    """Return the seed that the config gives on the trainer's command line, or in a variable whose name ends
    in SEED; None if it gives none, or several that differ.
    """
    seeds = {int(found[3]) for text in _texts(spec) for found in _SEED.finditer(text)}
    seeds |= {
        int(value)
        for name, value in spec.environment.items()
        if _SEED_NAME.fullmatch(name) and _is_seed(value)
    }
    return seeds.pop() if len(seeds) == 1 else None


def settings_digest(spec: RunSpec, start: str = "") -> str:
    """Return a hash of what determines the numbers of a run, apart from the seed: SHA-256, as hex digits.
    That is what the config says about the training and the steps after it, and `start`, the checkpoint of
    another run that it started from, empty for none. Names, budgets, machines and limits are left out.
    """
    values = json.loads(spec.model_dump_json(include={"trainer", "setup"}))
    if spec.after:
        values["after"] = [
            [one.name, _without_seed(one.run), one.env, one.evaluate_every] for one in spec.after
        ]
    if start:
        values["start"] = start
    texts = {name: _without_seed(text) for name, text in (("command", spec.trainer.command),)}
    values["trainer"] |= texts
    if spec.trainer.prime_rl is not None:
        values["trainer"]["prime_rl"]["overrides"] = _without_seed(" ".join(spec.trainer.prime_rl.overrides))
        del values["trainer"]["prime_rl"]["run_name"]
    values["environment"] = {
        name: "" if _SEED_NAME.fullmatch(name) else value for name, value in spec.environment.items()
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _texts(spec: RunSpec) -> tuple[str, ...]:
    overrides = " ".join(spec.trainer.prime_rl.overrides) if spec.trainer.prime_rl is not None else ""
    return spec.trainer.command, overrides


def _without_seed(text: str) -> str:
    return _SEED.sub(r"\1\2*", text)


def _is_seed(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= 18
