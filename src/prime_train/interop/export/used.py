"""What the machines of an exported task have used of its budget, which each of them notes in the bucket.

A machine can vanish at any moment. So a note is renewed while the run lasts, and says what will be used by
the time when the next one is due: what a machine that vanished has used is counted too high by one interval
at most, and never too low.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prime_train.app.home import Home
from prime_train.buckets.keys import task_used_key, task_used_prefix
from prime_train.buckets.port import Bucket
from prime_train.errors import ExternalError, UsageError
from prime_train.runs import ledger
from prime_train.runs.lookup import find
from prime_train.runs.run import Run, RunState, Totals, with_heartbeat

NOTE_S_MAX = 30
FIGURES = ("paid_s", "useful_s", "usd")


@dataclass(frozen=True)
class Notes:
    """The notes of one machine. `earlier`: what earlier machines have used, and this one before its run,
    which is part of the run's ledger; `setup`: the second part of it. `usd_per_hour`: the machine's price.
    """

    bucket: Bucket
    task: str
    number: int
    earlier: Totals
    setup: Totals
    usd_per_hour: float

    def begin(self, each_s: int) -> None:
        """Write the first note, before the run is launched."""
        self._write(ledger.add((self.setup, Totals(paid_s=each_s, usd=self._usd(each_s)))))

    def renew(self, home: Home, run_id: str, each_s: int) -> None:
        """Write what this machine will have used in `each_s` seconds. Raises ExternalError."""
        store = home.store()
        record = find(store, run_id)
        run = with_heartbeat(record.run, record.lease)
        used = ledger.totals(run, store.now_s())
        ahead_s = 0 if run.is_settled else each_s
        training_s = ahead_s if run.state is RunState.TRAINING else 0
        self._write(
            Totals(
                paid_s=used.paid_s - self.earlier.paid_s + self.setup.paid_s + ahead_s,
                useful_s=used.useful_s + used.recomputed_s - self.earlier.useful_s + training_s,
                usd=used.usd - self.earlier.usd + self.setup.usd + self._usd(ahead_s),
            )
        )

    def _write(self, used: Totals) -> None:
        self.bucket.put(
            task_used_key(self.task, self.number),
            json.dumps({name: getattr(used, name) for name in FIGURES}).encode(),
        )

    def _usd(self, seconds: int) -> float:
        return seconds * self.usd_per_hour / 3600


def used_before(bucket: Bucket, task: str) -> Totals:
    """Return what the machines of the task have used, training in `useful_s` whether it was repeated or not.
    Raises UsageError if a note cannot be read, because a budget that is not known cannot be kept.
    """
    prefix = task_used_prefix(task)
    notes = [content for stat in bucket.list(prefix) if (content := bucket.get(stat.key)) is not None]
    return ledger.add(_read(content.data, prefix) for content in notes)


def setup_of(seconds: float, usd_per_hour: float) -> Totals:
    """Return what a machine has used before its run."""
    paid_s = max(0, round(seconds))
    usd = paid_s * usd_per_hour / 3600
    return Totals(paid_s=paid_s, provision_s=paid_s, usd=usd, usd_wasted=usd)


def each_s_of(run: Run) -> int:
    """Return the seconds between two notes."""
    return min(2 * run.spec.health.heartbeat_s, NOTE_S_MAX)


@contextmanager
def noted(notes: Notes, home: Home, run: Run, warn: Callable[[str], object]) -> Iterator[None]:
    """Renew the note during the block, and at its end write what was used in all. `warn` is called with the
    reason if a note could not be written; the next one is.
    """
    ended = threading.Event()

    def renew() -> None:
        try:
            notes.renew(home, run.run_id, each_s_of(run))
        except ExternalError as error:
            warn(f"what this machine has used of the budget could not be noted: {error}")

    def renew_until_the_end() -> None:
        while not ended.wait(each_s_of(run)):
            renew()

    thread = threading.Thread(target=renew_until_the_end, name="notes")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        renew()


def _read(data: bytes, prefix: str) -> Totals:
    try:
        paid_s, useful_s, usd = (json.loads(data)[name] for name in FIGURES)
        return Totals(attempts=1, paid_s=int(paid_s), useful_s=int(useful_s), usd=float(usd))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UsageError(
            f"a note under {prefix} in the bucket is not one of what a machine has used", fix="delete it"
        ) from error
