"""The working tree: unpacked from the bucket as it was at the launch, or cloned from a repository at an exact
commit.
"""

import hashlib
import shlex
import shutil
from pathlib import Path

from prime_agent.before_training.phase import Ended, PhaseError, Shell
from prime_agent.before_training.setup import cause_of
from prime_train.buckets.keys import code_keys
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.archive import BROKEN, uncompressed
from prime_train.checkpoints.restore import DISK_MARGIN_BYTES
from prime_train.checkpoints.tar_reader import Unsafe
from prime_train.checkpoints.unpacking import unpack_stream
from prime_train.errors import ExternalError, PermanentError
from prime_train.spec.causes import Cause
from prime_train.spec.spec import CodeSpec

TRIES_MAX = 4
RETRY_S = 3.0
CLONE_S_MAX = 1800


def unpack(bucket: Bucket, key: str, work: Path, shell: Shell, *, sha256: str = "") -> None:
    """Fetch the code snapshot at `key` and unpack it into `work`, which is emptied first because an earlier
    agent may have left half of it there.

    `sha256` is the hash of the code snapshot at the launch; empty if unknown. Raises PhaseError, and Called
    if the phase is cancelled.
    """
    _empty(work)
    packed = work.with_name("code.tar.gz")
    for attempt in range(1, TRIES_MAX + 1):
        try:
            if not any(bucket.get_file(each, packed) for each in code_keys(key)):
                raise PhaseError(Cause.SETUP_FAILED, f"the working tree {key} is not in the bucket")
            break
        except ExternalError as error:
            if attempt == TRIES_MAX or isinstance(error, PermanentError):
                cause = Cause.SETUP_FAILED if isinstance(error, PermanentError) else Cause.NETWORK_ERROR
                raise PhaseError(cause, f"the working tree cannot be downloaded: {error}") from error
            shell.called_off.wait(RETRY_S * attempt)
    _check(packed, key, sha256)
    try:
        with packed.open("rb") as file, uncompressed(file) as stream:
            unpack_stream(stream, work, margin_bytes=DISK_MARGIN_BYTES, is_own=True)
    except (Unsafe, *BROKEN, OSError) as error:
        raise PhaseError(Cause.SETUP_FAILED, f"the working tree cannot be unpacked: {error}") from error
    packed.unlink()


def clone(code: CodeSpec, commit: str, work: Path, shell: Shell) -> None:
    """Check out `commit`, or the spec's ref if `commit` is empty. Raises PhaseError, and Called if the phase
    is cancelled.
    """
    _empty(work)
    wanted = commit or code.ref or "HEAD"
    repo, ref = shlex.quote(code.repo or ""), shlex.quote(wanted)
    # Fetching one commit is enough and fast; everything is fetched if the server does not serve single
    # commits.
    command = (
        "git init -q . && git remote add origin " + repo + " && "
        "{ git fetch -q --depth 1 origin " + ref + " && git checkout -q --detach FETCH_HEAD; } || "
        "{ git fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*' && "
        "{ git checkout -q --detach " + ref + " || git checkout -q --detach origin/" + ref + "; }; }"
    )
    ended = Ended(1, "", timed_out=False)
    for attempt in range(1, TRIES_MAX + 1):
        ended = shell.run(command, name="clone", timeout_s=CLONE_S_MAX)
        if ended.code == 0:
            return
        _empty(work)
        if attempt < TRIES_MAX:
            shell.called_off.wait(RETRY_S * attempt)
    why = (
        f"took longer than {CLONE_S_MAX} s"
        if ended.timed_out
        else f"failed with code {ended.code}, {TRIES_MAX} times"
    )
    cause = Cause.NETWORK_ERROR if ended.timed_out else cause_of(ended)
    raise PhaseError(cause, f"cloning {code.repo} at {wanted} {why}", log_tail=ended.tail)


def _empty(work: Path) -> None:
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)


def _check(packed: Path, key: str, sha256: str) -> None:
    """Check the code snapshot's hash before anything in it is read. Raises PhaseError if it is wrong."""
    with packed.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 and found != sha256:
        packed.unlink()
        raise PhaseError(
            Cause.SETUP_FAILED, f"the working tree {key} differs from the one that the run was launched with"
        )
