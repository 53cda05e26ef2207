"""What a run may state of itself that somebody launches with a launch key.

A person's own command checks a config before it launches it; the holder of a launch key may send anything.
What costs others something is therefore checked where the run is stored, beside the policy and the dollars of
the key: how large it is, how many of them there are, and that the words which are shown, linked or sent to
GitHub are what they claim to be. What a config only does to its own run (steps, patterns, memory) is left to
`validate`.
"""

import re
from collections.abc import Iterable, Iterator

from prime_train.runs.forecast import ESTIMATES_MAX, FAMILY_CHARS_MAX, Forecast
from prime_train.runs.run import Origin, Probe, Run

SPEC_BYTES_MAX = 200_000
"""Bytes of a config as it is stored. A row of DynamoDB has at most 400 KB, and holds the attempts of the run
as well.
"""
ACTIVE_MAX = 64
"""Runs of one repository that have not ended, above which a launch key starts no further one."""
TEXT_CHARS_MAX = 300
NUMBER_MAX = 2**53
SECONDS_MAX = 10**9

_HASH, _COMMIT = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINE = re.compile(r"[^\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]*")
_CONFIG = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_JOB = re.compile(r"(?:https?://[A-Za-z0-9.:-]+/[A-Za-z0-9._/-]*)?")


def unfit_to_launch(sent: Run, repository: str, others: Iterable[Run]) -> tuple[str, ...]:
    """Return why the run is not stored; empty if it may be. `repository`: that of the key; `others`: the runs
    that are stored.
    """
    return (*_stated(sent), *_too_large(sent), *_too_many(repository, others))


def _stated(sent: Run) -> Iterator[str]:
    if sent.code_sha256 and not _HASH.fullmatch(sent.code_sha256):
        yield "code_sha256 is no SHA-256 in hex digits"
    if sent.commit and not _COMMIT.fullmatch(sent.commit):
        yield "commit is no full hash of a commit"
    if sent.origin is not None:
        yield from _origin(sent.origin)
    if not _is_possible(sent.forecast):
        yield "forecast has numbers that cannot be true, or more than a config has"
    if sent.probe is not None and not _can_be_measured(sent.probe):
        yield "probe names no config, or no number of steps and seconds"


def _origin(origin: Origin) -> Iterator[str]:
    if not _COMMIT.fullmatch(origin.commit):
        yield "origin.commit is no full hash of a commit"
    for name in ("config", "key", "branch", "base", "job_url"):
        text = str(getattr(origin, name))
        if len(text) > TEXT_CHARS_MAX or not _LINE.fullmatch(text):
            yield (
                f"origin.{name} is longer than {TEXT_CHARS_MAX} characters, or has characters that "
                "are not shown"
            )
    if not _JOB.fullmatch(origin.job_url):
        yield "origin.job_url is no address of a job"
    for name in ("pull", "deployment"):
        number = getattr(origin, name)
        if number is not None and not 0 < number < NUMBER_MAX:
            yield f"origin.{name} is {number}, which is no number of one"


def _is_possible(forecast: Forecast) -> bool:
    """Return whether the estimates can be true. They are compared with what the runs of all repositories
    measured.
    """
    every = (
        all(
            one.is_possible and len(one.gpu) <= TEXT_CHARS_MAX and 0 <= one.gpu_count < NUMBER_MAX
            for one in forecast.steps
        ),
        len(forecast.steps) <= ESTIMATES_MAX,
        forecast.every_steps is None or 0 < forecast.every_steps < NUMBER_MAX,
        forecast.every_s is None or 0 <= forecast.every_s <= SECONDS_MAX,
        forecast.stall_s is None or 0 <= forecast.stall_s <= SECONDS_MAX,
        0 <= forecast.checkpoint_bytes < NUMBER_MAX,
        0 <= forecast.model_bytes < NUMBER_MAX,
        len(forecast.family) <= FAMILY_CHARS_MAX,
        len(forecast.environment) <= FAMILY_CHARS_MAX,
        0 <= forecast.batch_tokens < NUMBER_MAX,
    )
    return all(every)


def _can_be_measured(probe: Probe) -> bool:
    return (
        _CONFIG.fullmatch(probe.config) is not None
        and 0 < probe.steps < NUMBER_MAX
        and 0 <= probe.seconds <= SECONDS_MAX
    )


def _too_large(sent: Run) -> Iterator[str]:
    size = len(sent.spec.model_dump_json().encode())
    if size > SPEC_BYTES_MAX:
        yield (
            f"the config has {size:,} bytes as it is stored, and may have {SPEC_BYTES_MAX:,}: move "
            "data into files of the repository"
        )


def _too_many(repository: str, others: Iterable[Run]) -> Iterator[str]:
    active = sum(
        not run.is_over
        for run in others
        if run.origin is not None and run.origin.repository.lower() == repository.lower()
    )
    if active >= ACTIVE_MAX:
        yield (
            f"{active} runs of {repository} have not ended, and a launch key starts no more "
            "than "
            f"{ACTIVE_MAX}: stop some"
        )
