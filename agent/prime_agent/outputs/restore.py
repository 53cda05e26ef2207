"""Restores the outputs of earlier attempts into the working tree: as they were at the step from which a
training is resumed, so that a trainer that appends to them goes on; and the newest ones for steps after
training.
"""

import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from prime_agent.outputs.uploader import parsed_manifest
from prime_train.buckets.keys import OUTPUT_MANIFEST, output_manifest_key, outputs_prefix, parse_output_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import Damaged, fetch_blob
from prime_train.checkpoints.restore import RestoreFailed
from prime_train.checkpoints.tar_reader import Unsafe
from prime_train.checkpoints.unpacking import opened_folder
from prime_train.outputs.manifest import OutputManifest, OutputVersion, newest_outputs, outputs_at
from prime_train.outputs.rows import has_rows, up_to
from prime_train.text.auto_run import is_git
from prime_train.text.safe import neutralized

DISK_MARGIN_BYTES = 256 * 2**20
"""Bytes left free, because a full disk would fail the trainer's next save."""
PART = ".prime-train-output.part"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


def restore_outputs(bucket: Bucket, run_id: str, work: Path, check: Callable[[], None]) -> int:
    """Write the newest version of each output of the run into the working tree, verified by its hashes, and
    return their number. Folders named `.git` are not restored. `check` is called before each file, and raises
    an exception to end this. Raises RestoreFailed, and the bucket's errors.
    """
    newest = newest_outputs(_manifests(bucket, run_id, before=None))
    outputs = {path: version for path, version in newest.items() if not is_git(path)}
    with _writing_to(work) as root:
        for path, version in outputs.items():
            check()
            _restore(bucket, root, path, version)
    return len(outputs)


def resume_outputs(
    bucket: Bucket,
    run_id: str,
    work: Path,
    check: Callable[[], None],
    *,
    step: int,
    epoch: int | None = None,
    attempt: int,
    left_out: Callable[[Collection[str]], Collection[str]],
) -> list[str]:
    """Write the outputs of the attempts before `attempt` into the working tree, verified by their hashes, as
    they were at `step`.

    Rows of later steps are left out where the steps of rows can be told; of later epochs, if the run counts
    them: `epoch` is the trainer's number of the last one. `left_out` returns which of these paths the trainer
    must not find. Folders named `.git` are not restored. `check` is called before each file, and raises an
    exception to end this. Returns the paths. Raises RestoreFailed, and the bucket's errors.
    """
    outputs = outputs_at(_manifests(bucket, run_id, before=attempt), step)
    unwanted = {*left_out(outputs), *filter(is_git, outputs)}
    written = []
    with _writing_to(work) as root:
        for path, (base, later) in outputs.items():
            check()
            if path not in unwanted:
                _check_space(work, max(base.file.size, later.file.size if later is not None else 0))
                _resume(bucket, root, path, base, later, step, epoch)
                written.append(path)
    return written


@contextmanager
def _writing_to(work: Path) -> Iterator[int]:
    """Open the working tree, yield its file descriptor, and say of a failure what it means for the
    outputs.
    """
    root = os.open(work, _FOLDER)
    try:
        yield root
    except Damaged as error:
        raise RestoreFailed(
            f"an output of an earlier attempt is damaged in the bucket: it {error}"
        ) from error
    except Unsafe as error:
        raise RestoreFailed(
            f"an output of an earlier attempt is in the way of another file: {error}"
        ) from error
    except OSError as error:
        raise RestoreFailed(
            f"the outputs of earlier attempts cannot be written to this disk: {error}"
        ) from error
    finally:
        os.close(root)


def _check_space(work: Path, size: int) -> None:
    free = shutil.disk_usage(work).free
    if size + DISK_MARGIN_BYTES > free:
        raise RestoreFailed(
            f"the outputs of earlier attempts do not fit this disk: {size} bytes needed, {free} bytes free"
        )


def _resume(
    bucket: Bucket,
    root: int,
    path: str,
    base: OutputVersion,
    later: OutputVersion | None,
    step: int,
    epoch: int | None,
) -> None:
    """Write one file as it was at `step`: the rows up to it of the first version after it or, where they
    cannot be told, the version before.
    """
    if later is not None and has_rows(path, later.file.size):
        data = b"".join(
            bytes(fetch_blob(bucket, later.manifest.key_of(chunk), chunk)) for chunk in later.file.chunks
        )
        if (kept := up_to(path, data, step, epoch=epoch)) is not None:
            _write(root, path, [kept])
            _log.info(
                "restored the rows of %s up to step %d of attempt %d",
                neutralized(path),
                step,
                later.manifest.attempt,
            )
            return
    _restore(bucket, root, path, base)


def _manifests(bucket: Bucket, run_id: str, *, before: int | None) -> list[OutputManifest]:
    """Return the lists of outputs of all attempts, or of those before attempt `before`, the oldest attempt
    first.
    """
    named = [
        found
        for stat in bucket.list(outputs_prefix(run_id))
        if (found := parse_output_key(run_id, stat.key)) is not None
    ]
    keys = [
        output_manifest_key(run_id, attempt, identity)
        for attempt, identity, name in sorted(named)
        if name == OUTPUT_MANIFEST and (before is None or attempt < before)
    ]
    contents = [bucket.get(key) for key in keys]
    return [parsed_manifest(content.data) for content in contents if content is not None]


def _restore(bucket: Bucket, root: int, path: str, version: OutputVersion) -> None:
    _write(
        root,
        path,
        (bytes(fetch_blob(bucket, version.manifest.key_of(chunk), chunk)) for chunk in version.file.chunks),
    )
    _log.info("restored %s of attempt %d", neutralized(path), version.manifest.attempt)


def _write(root: int, path: str, content: Iterable[bytes]) -> None:
    """Write one file. It appears under its name only when it is complete, and no link is followed on the
    way.
    """
    *above, name = PurePosixPath(path).parts
    with opened_folder(root, tuple(above)) as parent:
        with os.fdopen(os.open(PART, _NEW, 0o644, dir_fd=parent), "wb") as out:
            for data in content:
                out.write(data)
        os.rename(PART, name, src_dir_fd=parent, dst_dir_fd=parent)
