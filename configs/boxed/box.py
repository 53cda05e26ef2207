"""Gives checkpoints that are single files a folder each, for a trainer that only writes files.

    python3 box.py --files 'out/checkpoint_step{step}.pt' --into checkpoints -- python3 train.py ...

Runs the command, and moves every file it has finished, checkpoint_step500.pt say, to checkpoints/step_500/checkpoint.pt, with a file
COMPLETE beside it; the folder appears at once and whole. Resume from that file, not from where the trainer had put it.

For a trainer that counts from 0 again after it has loaded weights, `--box-after N` (anywhere, also at the end) adds N to every step; and
`--progress REGEX` reads its step, the first group, from what it prints, and writes progress.jsonl with N added.

Under torchrun it does so for rank 0; other ranks become the command. Needs Python 3.8, and nothing else.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

POLL_S = 5.0
READ_BYTES = 65_536
LINE_BYTES_MAX = 65_536
SENTINEL = "COMPLETE"


class Boxes:
    """Moves finished files of `pattern` into folders below `into`."""

    def __init__(self, pattern: str, into: Path, after: int) -> None:
        self._folder, name = Path(pattern).parent, Path(pattern).name
        before, _, behind = name.partition("{step}")
        self._name = re.compile(f"{re.escape(before)}([0-9]+){re.escape(behind)}")
        self._suffix, self._into, self._after = Path(name).suffix, into, after
        self._sizes = {}

    def move(self, *, is_over: bool = False) -> None:
        """All that are finished: those that did not grow since the last look, or any once the trainer is gone."""
        for path, step in self._found():
            size = path.stat().st_size
            if (is_over or self._sizes.get(path) == size) and _is_whole(path):
                self._box(path, step + self._after)
            self._sizes[path] = size

    def _found(self) -> list:
        paths = self._folder.iterdir() if self._folder.is_dir() else ()
        matches = ((path, self._name.fullmatch(path.name)) for path in paths)
        return sorted(((path, int(found.group(1))) for path, found in matches if found and path.is_file()), key=lambda one: one[1])

    def _box(self, path: Path, step: int) -> None:
        box, draft = self._into / f"step_{step}", self._into / f".incoming-{step}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        shutil.move(str(path), str(draft / f"checkpoint{self._suffix}"))
        (draft / SENTINEL).touch()
        shutil.rmtree(box, ignore_errors=True)
        draft.rename(box)
        print(f"box: {path} is now {box}", flush=True)


class Progress:
    """Passes on what the trainer prints, and writes the steps it names."""

    def __init__(self, pattern: str, file: Path, after: int) -> None:
        self._pattern, self._file, self._after, self._step = re.compile(pattern.encode()), file, after, -1

    def read(self, stream) -> None:
        """Until the trainer ends; a progress bar ends its lines with a carriage return."""
        rest = b""
        while True:
            data = os.read(stream.fileno(), READ_BYTES)
            if not data:
                break
            sys.stderr.buffer.write(data)
            sys.stderr.buffer.flush()
            *lines, rest = re.split(rb"[\r\n]", rest + data)
            rest = rest[-LINE_BYTES_MAX:]
            for line in lines:
                for found in self._pattern.finditer(line):
                    self._write(int(found.group(1)))

    def _write(self, step: int) -> None:
        if step > self._step:
            self._step = step
            with self._file.open("a") as file:
                file.write(json.dumps({"step": step + self._after}) + "\n")


def _is_whole(path: Path) -> bool:
    """What torch.save writes is a zip, whose index comes last; of other formats nothing is known."""
    with path.open("rb") as file:
        return file.read(4) != b"PK\x03\x04" or zipfile.is_zipfile(path)


def main(words: list) -> int:
    after = 0
    if "--box-after" in words:
        at = words.index("--box-after")
        after = int(words[at + 1])
        words = words[:at] + words[at + 2 :]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", required=True, metavar="PATTERN", help="where the trainer saves, with {step} in the name")
    parser.add_argument("--into", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--progress", metavar="REGEX", help="what its error output says of the step")
    parser.add_argument("--progress-file", type=Path, default=Path("progress.jsonl"))
    options, command = parser.parse_args(words[:at]), words[at + 1 :]
    if "{step}" not in Path(options.files).name or not command:
        parser.error("--files needs {step} in its name, and a command must follow --")
    if os.environ.get("RANK", "0") != "0":
        os.execvp(command[0], command)
    return _run(command, Boxes(options.files, options.into, after), _progress(options, after))


def _progress(options: argparse.Namespace, after: int):
    return Progress(options.progress, options.progress_file, after) if options.progress else None


def _run(command: list, boxes: Boxes, progress) -> int:
    child = subprocess.Popen(command, stderr=subprocess.PIPE if progress else None)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda seen, _: child.send_signal(seen))
    reader = threading.Thread(target=progress.read, args=(child.stderr,), daemon=True) if progress else None
    if reader:
        reader.start()
    while True:
        try:
            code = child.wait(POLL_S)
            break
        except subprocess.TimeoutExpired:
            boxes.move()
    if reader:
        reader.join(POLL_S)
    boxes.move(is_over=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
