"""Restores the outputs of earlier attempts into the working tree, for steps after training that go on from what earlier ones left."""

import logging
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from prime_agent.outputs.uploader import parsed_manifest
from prime_train.checkpoints.chunks import Damaged, fetch_blob
from prime_train.checkpoints.restore import RestoreFailed
from prime_train.checkpoints.tar_reader import Unsafe
from prime_train.checkpoints.unpacking import opened_folder
from prime_train.core.keys import OUTPUT_MANIFEST, output_manifest_key, outputs_prefix, parse_output_key
from prime_train.core.outputs.manifest import OutputManifest, OutputVersion, newest_outputs
from prime_train.core.text.auto_run import is_git
from prime_train.core.text.safe import neutralized
from prime_train.ports import Bucket

PART = ".prime-train-output.part"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


def restore_outputs(bucket: Bucket, run_id: str, work: Path, check: Callable[[], None]) -> int:
    """Write the newest version of each output of the run into the working tree, verified by its hashes, and return their number. Folders
    named `.git` are not restored. `check` is called before each file, and raises an exception to end this. Raises RestoreFailed, and the
    bucket's errors."""
    outputs = {path: version for path, version in newest_outputs(_manifests(bucket, run_id)).items() if not is_git(path)}
    root = os.open(work, _FOLDER)
    try:
        for path, version in outputs.items():
            check()
            _restore(bucket, root, path, version)
    except Damaged as error:
        raise RestoreFailed(f"an output of an earlier attempt is damaged in the bucket: it {error}") from error
    except Unsafe as error:
        raise RestoreFailed(f"an output of an earlier attempt is in the way of another file: {error}") from error
    except OSError as error:
        raise RestoreFailed(f"the outputs of earlier attempts cannot be written to this disk: {error}") from error
    finally:
        os.close(root)
    return len(outputs)


def _manifests(bucket: Bucket, run_id: str) -> list[OutputManifest]:
    """Return the lists of outputs of all attempts, the oldest attempt first."""
    named = [found for stat in bucket.list(outputs_prefix(run_id)) if (found := parse_output_key(run_id, stat.key)) is not None]
    keys = [output_manifest_key(run_id, attempt, identity) for attempt, identity, name in sorted(named) if name == OUTPUT_MANIFEST]
    contents = [bucket.get(key) for key in keys]
    return [parsed_manifest(content.data) for content in contents if content is not None]


def _restore(bucket: Bucket, root: int, path: str, version: OutputVersion) -> None:
    """Write one file. It appears under its name only when it is complete, and no link is followed on the way."""
    *above, name = PurePosixPath(path).parts
    with opened_folder(root, tuple(above)) as parent:
        with os.fdopen(os.open(PART, _NEW, 0o644, dir_fd=parent), "wb") as out:
            for chunk in version.file.chunks:
                out.write(fetch_blob(bucket, version.manifest.key_of(chunk), chunk))
        os.rename(PART, name, src_dir_fd=parent, dst_dir_fd=parent)
    _log.info("restored %s of attempt %d", neutralized(path), version.manifest.attempt)
