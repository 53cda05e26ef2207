"""Checks that the manifest of a commit is in the bucket, so that no run waits for a checkpoint that never was.

A commit costs one read of one small object. It happens in a thread of its own and has a deadline, because a bucket that does not answer
must not hold up the other calls; an agent whose commit was not checked tries again.
"""

import queue
import threading
from collections.abc import Callable
from functools import cached_property

from pydantic import ValidationError

from prime_train.core.manifest import Manifest
from prime_train.core.wire import Commit
from prime_train.ports import Bucket, Content, ObjectTooLarge, TemporaryError

READ_S_MAX = 6.0
"""Seconds until a commit is answered although the bucket has not answered: less than an agent waits for the answer."""
READS_MAX = 4
"""Maximum number of reads at once. More commits are answered at once that they should be tried again."""


class UnfitManifest(Exception):
    """The manifest of the commit is missing, or is not the one that the commit names."""


class CommitCheck:
    """The check of commits against the bucket, which is opened for the first of them. Thread-safe."""

    def __init__(self, open_bucket: Callable[[], Bucket]) -> None:
        self._open_bucket, self._opening = open_bucket, threading.Lock()
        self._free = threading.BoundedSemaphore(READS_MAX)

    def check(self, commit: Commit) -> None:
        """Return if the manifest of the commit is in the bucket and agrees with it. Raises UnfitManifest if it does not, and ExternalError
        if that cannot be determined now."""
        try:
            content = self._read(commit.key)
        except ObjectTooLarge as error:
            raise UnfitManifest(f"key: {error}, and no manifest has so many") from None
        if content is None:
            raise UnfitManifest(f"key: the bucket has no object {commit.key}; write the manifest, then commit it")
        try:
            manifest = Manifest.model_validate_json(content.data)
        except ValidationError as error:
            raise UnfitManifest(f"key: {commit.key} in the bucket is not a manifest ({error.error_count()} fields are wrong)") from None
        if (manifest.run, manifest.attempt, manifest.identity, manifest.step) != (commit.run, commit.attempt, commit.identity, commit.step):
            raise UnfitManifest(f"key: {commit.key} in the bucket is the manifest of another run, attempt or step")

    @cached_property
    def _bucket(self) -> Bucket:
        return self._open_bucket()

    def _read(self, key: str) -> Content | None:
        if not self._free.acquire(blocking=False):
            raise TemporaryError("the bucket is slow: too many commits wait for it")
        answers: queue.SimpleQueue[Content | Exception | None] = queue.SimpleQueue()
        threading.Thread(target=self._answer, args=(key, answers), name="commit", daemon=True).start()
        try:
            answer = answers.get(timeout=READ_S_MAX)
        except queue.Empty:
            raise TemporaryError(f"the bucket has not answered within {READ_S_MAX:.0f} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answer(self, key: str, answers: "queue.SimpleQueue[Content | Exception | None]") -> None:
        try:
            with self._opening:
                bucket = self._bucket
            answers.put(bucket.get(key))
        except Exception as error:  # raised again by whoever waits for it
            answers.put(error)
        finally:
            self._free.release()
