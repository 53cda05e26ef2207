"""Checks that the manifest of a commit is in the bucket, so that no run waits for a checkpoint that never
was.

A commit costs one read of one small object. It happens in a thread of its own and has a deadline, because a
bucket that does not answer must not hold up the other calls; an agent whose commit was not checked tries
again.
"""

import math
import queue
import threading
import time
from collections.abc import Callable
from functools import cached_property

from pydantic import ValidationError

from prime_train.buckets.port import Bucket, Content
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import ObjectTooLarge, TemporaryError
from prime_train.runs.wire import Commit

READ_S_MAX = 6.0
"""Seconds until a commit is answered although the bucket has not answered: less than an agent waits for the
answer.
"""
READS_MAX = 4
"""Maximum number of reads at once. More commits are answered at once that they should be tried again."""
REST_TIMES, REST_S_MAX = 10, 20.0
"""How many times as long as its manifest took to be parsed an attempt has to wait for the next check, and the
longest such wait: while one is parsed no other machine is heard, and a machine chooses how large its
manifests are and how often it commits.
"""
RESTS_MAX = 1024


class UnfitManifest(Exception):
    """The manifest of the commit is missing, or is not the one that the commit names."""


class TooSoon(TemporaryError):
    """The machine has another commit checked, or has just had a large one."""


class CommitCheck:
    """The check of commits against the bucket, which is opened for the first of them. Thread-safe."""

    def __init__(
        self, open_bucket: Callable[[], Bucket], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._open_bucket, self._opening = open_bucket, threading.Lock()
        self._free = threading.BoundedSemaphore(READS_MAX)
        self._turns, self._clock = threading.Lock(), clock
        self._rests_until_s: dict[tuple[str, int], float] = {}
        """By attempt: the moment of the next check; while one is going on, infinite."""

    def check(self, commit: Commit) -> None:
        """Return if the manifest of the commit is in the bucket and agrees with it. Raises UnfitManifest if
        it does not, and ExternalError if that cannot be determined now.
        """
        whose, parsing_s = (commit.run, commit.attempt), 0.0
        self._begin(whose)
        try:
            content = self._content(commit)
            begun_s = self._clock()
            try:
                _check(commit, content)
            finally:
                parsing_s = self._clock() - begun_s
        finally:
            with self._turns:
                self._rests_until_s[whose] = self._clock() + min(REST_TIMES * parsing_s, REST_S_MAX)

    def _begin(self, whose: tuple[str, int]) -> None:
        """Begin the check of a commit of the attempt. Raises TooSoon if another one goes on, or has just
        taken long.
        """
        with self._turns:
            now_s = self._clock()
            if len(self._rests_until_s) >= RESTS_MAX:
                self._rests_until_s = {
                    known: until_s for known, until_s in self._rests_until_s.items() if until_s > now_s
                }
            if self._rests_until_s.get(whose, now_s) > now_s:
                raise TooSoon(
                    "another commit of the attempt is being checked, or its check has just taken long"
                )
            self._rests_until_s[whose] = math.inf

    def _content(self, commit: Commit) -> Content:
        try:
            content = self._read(commit.key)
        except ObjectTooLarge as error:
            raise UnfitManifest(f"key: {error}, and no manifest has so many") from None
        if content is None:
            raise UnfitManifest(
                f"key: the bucket has no object {commit.key}; write the manifest, then commit it"
            )
        return content

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


def _check(commit: Commit, content: Content) -> None:
    try:
        manifest = Manifest.model_validate_json(content.data)
    except ValidationError as error:
        raise UnfitManifest(
            f"key: {commit.key} in the bucket is not a manifest ({error.error_count()} fields are wrong)"
        ) from None
    if (manifest.run, manifest.attempt, manifest.identity, manifest.step) != (
        commit.run,
        commit.attempt,
        commit.identity,
        commit.step,
    ):
        raise UnfitManifest(
            f"key: {commit.key} in the bucket is the manifest of another run, attempt or step"
        )
