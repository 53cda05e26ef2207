"""The bucket in virtual time. The control plane's calls may fail; agents' uploads may remain incomplete."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from prime_train.buckets.keys import RECORDS, blob_key, blob_prefix, manifest_prefix
from prime_train.buckets.port import Content, Data, Stat
from prime_train.checkpoints.manifest import Manifest, ManifestFile
from prime_train.errors import TemporaryError
from tests.builders import digest, stored_file
from tests.simulation.faults import Faults, Luck, within
from tests.simulation.loop import Loop

PARSED_MAX = 10_000


class VirtualBucket:
    """The `Bucket` port for the control plane, and the agents' side without it. `called(name)` is called for
    each call of the port.
    """

    def __init__(self, loop: Loop, luck: Luck, faults: Faults) -> None:
        self._loop, self._luck, self._faults = loop, luck, faults
        self._objects: dict[str, dict[str, tuple[bytes, int]]] = {}
        self.called: Callable[[str], None] = _nothing
        self.failed: Callable[[], None] = lambda: None
        """Called when a call of the port fails."""
        self.deleted: Callable[[str], None] = _nothing
        """Called for each key that the control plane is about to delete."""
        self.removing: Callable[[str], None] = _nothing
        """Called for each key that anyone is about to delete."""

    # --------------------------------------------------------------------------------------------------------
    # the port

    def put(self, key: str, data: Data) -> None:
        self._call("bucket.put")
        self.write(key, bytes(data))

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        raise NotImplementedError("the control plane writes no pointers")

    def put_file(self, key: str, path: Path) -> None:
        raise NotImplementedError("the control plane uploads no files")

    def get(self, key: str) -> Content | None:
        self._call("bucket.get")
        found = self._folder(key).get(key)
        return Content(found[0], str(found[1])) if found is not None else None

    def read(self, key: str) -> Data | None:
        content = self.get(key)
        return content.data if content is not None else None

    def get_file(self, key: str, path: Path) -> bool:
        raise NotImplementedError("the control plane downloads no files")

    def stat(self, key: str) -> Stat | None:
        self._call("bucket.stat")
        found = self._folder(key).get(key)
        return Stat(key, len(found[0]), found[1]) if found is not None else None

    def list(self, prefix: str) -> Iterator[Stat]:
        self._call("bucket.list")
        return iter(self.stats(prefix))

    def delete(self, key: str) -> None:
        self._call("bucket.delete")
        self.deleted(key)
        self.remove(key)

    # --------------------------------------------------------------------------------------------------------
    # the agents

    def fails(self) -> bool:
        """Return whether an agent's upload fails now."""
        return within(self._faults.bucket_down, self._loop.now_s) or self._luck.hit(self._faults.bucket_error)

    def put_quietly(self, key: str, data: bytes) -> None:
        """Upload an object. At times it reports success without effect, so that an agent has to check."""
        if not self._luck.hit(self._faults.bucket_error / 2):
            self.write(key, data)

    def write(self, key: str, data: bytes) -> None:
        self._folder(key)[key] = (data, int(self._loop.now_s))

    def remove(self, key: str) -> None:
        self.removing(key)
        self._folder(key).pop(key, None)

    def lose(self, key: str) -> None:
        """Let an object vanish that was there, by nobody's doing."""
        self._folder(key).pop(key, None)

    def stats(self, prefix: str) -> Sequence[Stat]:
        folders = list(self._objects.values()) if prefix == RECORDS else [self._folder(prefix)]
        found = sorted(item for folder in folders for item in folder.items())
        return [Stat(key, len(data), written_s) for key, (data, written_s) in found if key.startswith(prefix)]

    def is_complete(self, key: str) -> bool:
        """Return whether the manifest with that key and every blob it lists exist."""
        found = self._folder(key).get(key)
        if found is None:
            return False
        return all(self._has(key, size) for key, size in parsed(found[0]).blobs().items())

    def written_s(self, key: str) -> int:
        """Return when an object that is there was written."""
        return self._folder(key)[key][1]

    def blobs_written_s(self, run_id: str) -> dict[str, int]:
        return {stat.key: stat.written_s for stat in self.stats(blob_prefix(run_id))}

    def manifests(self, run_id: str) -> Sequence[Manifest]:
        folder = self._folder(manifest_prefix(run_id))
        prefix = manifest_prefix(run_id)
        return [parsed(data) for key, (data, _) in sorted(folder.items()) if key.startswith(prefix)]

    def _has(self, key: str, size: int) -> bool:
        found = self._folder(key).get(key)
        return found is not None and len(found[0]) == size

    def _folder(self, key: str) -> dict[str, tuple[bytes, int]]:
        run_id = key.split("/", 2)[1]
        return self._objects.setdefault(run_id, {})

    def _call(self, what: str) -> None:
        self.called(what)
        if self.fails():
            self.failed()
            raise TemporaryError(f"{what}: the bucket does not answer")


@lru_cache(maxsize=PARSED_MAX)
def parsed(data: bytes) -> Manifest:
    """Return the manifest; cached, because agents read the same few again and again."""
    return Manifest.model_validate_json(data)


@lru_cache(maxsize=PARSED_MAX)
def _part(place: int, number: int) -> ManifestFile:
    return stored_file(f"part{place}", number, size=4)


def checkpoint(
    run_id: str, attempt: int, step: int, now_s: float, identity: str
) -> tuple[Manifest, dict[str, bytes]]:
    """Return a manifest and its blobs: one that never changes (a frozen base model) and one of this step."""
    numbers = {0: b"base", (step << 64) + attempt: b"step"}
    files = tuple(_part(place, number) for place, number in enumerate(numbers))
    folder = f"step_{step}"
    manifest = Manifest(
        run=run_id,
        attempt=attempt,
        identity=identity,
        step=step,
        created_s=int(now_s),
        folder=folder,
        files=files,
    )
    return manifest, {blob_key(run_id, digest(number)): data for number, data in numbers.items()}


def _nothing(what: str) -> None:
    return None
