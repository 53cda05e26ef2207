"""Keeps copies of AReaL's recoverable state, and puts one back.

    python3 snapshots.py --root ROOT --experiment E --trial T --into FOLDER --inside areal -- COMMAND ... [--snapshot FOLDER/step_120]

AReaL saves into the same files again and again, so that between the first byte and the last there is no state at all. A copy is made
when all of its parts are newer than what they belong to, and is kept only if nothing changed meanwhile. Steps count from 1, as AReaL
prints them.

What the command prints is passed on; steps and rewards in it go to progress.jsonl. Needs Python 3.8, and nothing else.
"""

import argparse
import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

POLL_S = 5.0
SENTINEL = "COMPLETE"
INFO = "recover_info"
LAST = "dataloader_info.pkl"
JSONS = ("step_info", "saver_info", "evaluator_info", "stats_logger_info", "checkpoint_info")
ENGINES = ("default", "critic")
STATE = "recover_checkpoint"

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"Train step (\d+)/\d+ done\.")
_REWARD = re.compile(r"task_reward/avg\W+?([-+]?\d\.\d+e[-+]\d+)")


def step_of(state: Path):
    """The step of a state that is whole, or None."""
    info = state / INFO
    try:
        told = [json.loads((info / f"{name}.json").read_text()) for name in JSONS]
        end_s = (info / LAST).stat().st_mtime
        engines = [state / engine / STATE for engine in ENGINES if (state / engine / STATE).is_dir()]
        for engine in engines:
            metadata_s = (engine / ".metadata").stat().st_mtime
            if metadata_s > end_s or any(shard.stat().st_mtime > metadata_s for shard in engine.glob("*.distcp")):
                return None
        return int(told[0]["global_step"]) + 1 if engines else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def files_of(state: Path) -> dict:
    """Every file of it, with size and time."""
    parts = [state / INFO, *(state / engine / STATE for engine in ENGINES)]
    paths = (path for part in parts if part.is_dir() for path in sorted(part.rglob("*")) if path.is_file())
    return {path.relative_to(state): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


def keep(state: Path, into: Path) -> None:
    """A copy of a state that is whole and has none yet."""
    step = step_of(state)
    if step is None or (into / f"step_{step}").exists():
        return
    draft = into / f".incoming-{step}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        before = files_of(state)
        for path in before:
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(state / path, draft / path)
        unchanged = files_of(state) == before and step_of(state) == step
    except OSError as error:
        print(f"snapshots: step {step} cannot be copied: {error}", flush=True)
        unchanged = False
    if not unchanged:
        shutil.rmtree(draft, ignore_errors=True)
        return
    (draft / SENTINEL).touch()
    draft.rename(into / f"step_{step}")
    print(f"snapshots: step {step} is kept", flush=True)


def put_back(snapshot: Path, state: Path) -> None:
    """Replace AReaL's recovery state by the snapshot, so that AReaL resumes from it. The times of the files are kept, because they
    tell which part is newer."""
    shutil.rmtree(state, ignore_errors=True)
    shutil.copytree(snapshot, state, ignore=shutil.ignore_patterns(SENTINEL))
    if step_of(state) is None:
        sys.exit(f"snapshots: {snapshot} is not whole; AReaL would begin at step 0")


class Progress:
    """Writes one line for each step, with its reward if AReaL's table shows it after the step."""

    def __init__(self, file: Path) -> None:
        self._file, self._step = file, None

    def read(self, stream) -> None:
        for line in stream:
            sys.stdout.write(line)
            sys.stdout.flush()
            plain = _COLOURS.sub("", line)
            step, reward = _STEP.search(plain), _REWARD.search(plain)
            if step:
                self._write({})
                self._step = int(step.group(1))
            elif reward and self._step is not None:
                self._write({"reward": float(reward.group(1))})
        self._write({})

    def _write(self, more: dict) -> None:
        if self._step is not None:
            with self._file.open("a") as file:
                file.write(json.dumps({"step": self._step, **more}) + "\n")
        self._step = None


def main(words: list) -> int:
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--root", "--into"):
        parser.add_argument(name, required=True, type=Path)
    for name in ("--experiment", "--trial"):
        parser.add_argument(name, required=True)
    parser.add_argument("--inside", type=Path, default=Path(), help="folder the command runs in")
    options, command, snapshot = parser.parse_args(words[:at]), words[at + 1 :], None
    if "--snapshot" in command:
        at = command.index("--snapshot")
        snapshot, command = Path(command[at + 1]), command[:at] + command[at + 2 :]
    if not command:
        parser.error("a command must follow --")
    state = options.root / "checkpoints" / getpass.getuser() / options.experiment / options.trial
    options.into.mkdir(parents=True, exist_ok=True)
    if snapshot is not None:
        put_back(snapshot, state)
    return _run(command, state, options)


def _run(command: list, state: Path, options: argparse.Namespace) -> int:
    child = subprocess.Popen(
        command, cwd=options.inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=os.environ
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda seen, _: child.send_signal(seen))
    reader = threading.Thread(target=Progress(Path("progress.jsonl")).read, args=(child.stdout,), daemon=True)
    reader.start()
    while True:
        try:
            code = child.wait(POLL_S)
            break
        except subprocess.TimeoutExpired:
            keep(state, options.into)
    reader.join(POLL_S)
    keep(state, options.into)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
