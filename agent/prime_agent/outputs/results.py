"""The numbers that this attempt resulted in, kept in one object in the bucket."""

import threading
from collections.abc import Iterable

from prime_train.core.keys import attempt_results_key
from prime_train.core.results.numbers import AttemptResults, Number, parse_attempt_results
from prime_train.ports import Bucket


class ResultsUploader:
    """The results of one attempt. `add` may be called from any thread, `upload` from one only."""

    def __init__(self, bucket: Bucket, *, run_id: str, attempt: int, identity: str) -> None:
        self._bucket = bucket
        self._of = run_id, attempt, identity
        self._stored: AttemptResults | None = None
        self._new: list[Number] = []
        self._lock = threading.Lock()

    def add(self, numbers: Iterable[Number]) -> None:
        with self._lock:
            self._new += numbers

    def upload(self) -> None:
        """Store the numbers that were added since the last call. Raises the bucket's errors; the next call tries again."""
        with self._lock:
            new = tuple(self._new)
        if not new:
            return
        results = self._known().with_numbers(new)
        self._bucket.put(results.key, results.data)
        self._stored = results
        with self._lock:
            del self._new[: len(new)]

    def _known(self) -> AttemptResults:
        """Return the results in the bucket, where an earlier agent of this attempt may have stored some."""
        if self._stored is None:
            run_id, attempt, identity = self._of
            content = self._bucket.get(attempt_results_key(run_id, attempt, identity))
            found = parse_attempt_results(content.data, run_id, attempt, identity) if content is not None else None
            self._stored = found or AttemptResults(run=run_id, attempt=attempt, identity=identity)
        return self._stored
