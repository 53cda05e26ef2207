"""A trainer that trains nothing: it saves, resumes and reports as the trainer of the kind that KIND names.

FAULT is what goes wrong: `half` (it is killed in the middle of its second save), `in_place` (it writes its
first checkpoint once more while that one is uploaded), `deaf` (it does not resume), or nothing. Files in the
folder SIGNS tell it when, and tell others what it has done.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.agent.kinds.layouts import EVERY, LAYOUTS, STEPS, Layout, content, write
from tests.waiting import await_true

GO, OVERWRITTEN = "go", "overwritten"


def main() -> None:
    layout, fault, signs = LAYOUTS[os.environ["KIND"]], os.environ["FAULT"], Path(os.environ["SIGNS"])
    folder = Path(layout.folder(sys.argv[1:]))
    begun = layout.resumed(sys.argv[1:], folder) if fault != "deaf" else None
    if begun is not None and layout.loading:
        say(layout.loading)
    if begun is None and layout.scratch:
        say(layout.scratch)
    counted = 0 if layout.counts_anew else begun or 0
    if layout.header:
        report(layout, layout.header)
    for step in range(counted + 1, STEPS + 1):
        report(layout, layout.report(step))
        if step % EVERY == 0:
            save(layout, folder, step, fault=fault, signs=signs)


def save(layout: Layout, folder: Path, step: int, *, fault: str, signs: Path) -> None:
    files = {path: content(path, step, 1) for path in layout.checkpoint(step)}
    if fault == "half" and step == 2 * EVERY:
        await_true("the first checkpoint is durable", (signs / GO).exists)
        write(folder, half(files))
        os.kill(os.getpid(), signal.SIGKILL)
    write(folder, files)
    if fault == "in_place" and step == EVERY:
        await_true("its upload has begun", (signs / GO).exists)
        again = {path: content(path, step, 2) for path in files}
        write(folder, half(again))
        (signs / OVERWRITTEN).touch()
        write(
            folder,
            {
                path: data
                for path, data in again.items()
                if path not in half(again) or data != half(again)[path]
            },
        )


def half(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are there when a save is interrupted in the middle of the last one."""
    *before, last = files
    begun = files[last][: len(files[last]) // 2]
    return {path: files[path] for path in before} | ({last: begun} if begun else {})


def report(layout: Layout, line: str) -> None:
    if not layout.progress_file:
        say(line)
        return
    path = Path(layout.progress_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"{line}\n")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
