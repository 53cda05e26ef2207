"""The agent, which has its first upload wait until the trainer has written into the checkpoint once more."""

import os
import threading
from pathlib import Path

from prime_agent.main import main
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_prefix
from prime_train.buckets.port import Data
from tests.agent.attempts import RUN_ID
from tests.agent.kinds.train import GO, OVERWRITTEN
from tests.waiting import await_true

_first = threading.Lock()
_put = FolderBucket.put


def _put_after_the_trainer(self: FolderBucket, key: str, data: Data) -> None:
    if key.startswith(blob_prefix(RUN_ID)) and _first.acquire(blocking=False):
        signs = Path(os.environ["SIGNS"])
        (signs / GO).touch()
        await_true("the trainer has written into the checkpoint", (signs / OVERWRITTEN).exists)
    _put(self, key, data)


if __name__ == "__main__":
    FolderBucket.put = _put_after_the_trainer  # type: ignore[method-assign]
    main()
