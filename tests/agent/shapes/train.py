"""A training whose state depends on every step so far, saved and resumed in one of the usual ways: `python
train.py SHAPE [arguments]`.

With STOP_AT in the environment, it hangs before that step. Standard library only, because a machine gets this
file alone.
"""

import hashlib
import json
import os
import pickle
import re
import sys
import time
from pathlib import Path
from typing import Any

STEPS, EVERY = 12, 3
PADDING = b"x" * 20_000
State = dict[str, Any]


def fresh() -> State:
    return {"step": 0, "chain": ""}


def after(state: State) -> State:
    step = state["step"] + 1
    return {"step": step, "chain": hashlib.sha256(f"{state['chain']}{step}".encode()).hexdigest()}


def final() -> State:
    state = fresh()
    while state["step"] < STEPS:
        state = after(state)
    return state


def write(path: Path, state: State) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = pickle.dumps((state, PADDING))
    with path.open("wb") as file:
        file.write(data[:9000])
        file.flush()
        time.sleep(0.02)
        file.write(data[9000:])


def read(path: Path | str) -> State:
    state: State = pickle.loads(Path(path).read_bytes())[0]
    return state


def flag(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def numbers(pattern: str) -> list[int]:
    """Return the last number in the name of each file that matches."""
    return sorted(int(re.findall(r"\d+", path.name)[-1]) for path in Path().glob(pattern))


class Shape:
    """Prints a line for each step, from 1."""

    def save(self, state: State) -> None:
        raise NotImplementedError

    def load(self) -> State | None:
        path = flag("--resume")
        return read(path) if path else None

    def report(self, step: int) -> None:
        print(f"step {step} loss {1 / step:.3f}", flush=True)


class FixedFile(Shape):
    """One file of a fixed name; a word says that it resumes; it counts from 0."""

    FILE = Path("out/model.pt")

    def save(self, state: State) -> None:
        write(self.FILE, state)

    def load(self) -> State | None:
        return read(self.FILE) if "--continue" in sys.argv else None

    def report(self, step: int) -> None:
        print(f"iter {step - 1}: loss {1 / step:.3f}", flush=True)


class PaddedFiles(Shape):
    """A file for each save, and one of the same bytes from which it resumes by itself; a line follows a bar
    on the same line.
    """

    FOLDER = Path("runs/exp")

    def save(self, state: State) -> None:
        for name in (f"ckpt-{state['step']:06d}.pt", "latest.pt"):
            write(self.FOLDER / name, state)
        for old in sorted(self.FOLDER.glob("ckpt-*.pt"))[:-2]:
            old.unlink()

    def load(self) -> State | None:
        return read(self.FOLDER / "latest.pt") if (self.FOLDER / "latest.pt").exists() else None

    def report(self, step: int) -> None:
        sys.stderr.write(
            f"\r{100 * step // STEPS}%|{'#' * step}| {step}/{STEPS} [00:00<00:01, 9.9it/s, loss=0.5]"
        )
        sys.stderr.flush()
        super().report(step)


class TrainerFolders(Shape):
    """Folders of several files, a small one last; a bar that is redrawn on stderr."""

    def save(self, state: State) -> None:
        folder = Path(f"results/checkpoint-{state['step']}")
        write(folder / "model.bin", state)
        write(folder / "optimizer.bin", state)
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": state["step"]}))

    def load(self) -> State | None:
        folder = flag("--resume_from_checkpoint")
        return read(f"{folder}/optimizer.bin") if folder else None

    def report(self, step: int) -> None:
        sys.stderr.write(f"\r{100 * step // STEPS}%|{'#' * step}| {step}/{STEPS} [00:00<00:01, 9.9it/s]")
        sys.stderr.flush()


class EpochAndStep(Shape):
    """Files with epoch and step in the name, renamed into place in a folder with another number at each
    launch; a table that counts from 0.
    """

    LOGS = "logs"

    def __init__(self) -> None:
        self.run = Path(f"{self.LOGS}/version_{len(list(Path().glob(f'{self.LOGS}/version_*')))}")
        self.before: Path | None = None

    def save(self, state: State) -> None:
        path = self.run / f"checkpoints/epoch={state['step'] // 5}-step={state['step']}.ckpt"
        for name in (path, path.with_name("last.ckpt")):
            write(name.with_name(f"{name.name}.part"), state)
            name.with_name(f"{name.name}.part").replace(name)
        if self.before is not None:
            self.before.unlink()
        self.before = path

    def report(self, step: int) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        table = self.run / "metrics.csv"
        is_new = not table.exists()
        with table.open("a") as file:
            file.write(
                f"{'epoch, step, loss' + chr(10) if is_new else ''}{step // 5}, {step - 1}, {1 / step:.3f}\n"
            )


class LightningsDefault(EpochAndStep):
    """The same in the default folder of Lightning."""

    LOGS = "lightning_logs"

    def load(self) -> State | None:
        path = flag("--ckpt_path")
        return read(path) if path else None


class LastAndBest(Shape):
    """`last.pt` and `best.pt` of each epoch, in exp, exp2 ...; a table that counts from 0, and is gone on
    with without a header.
    """

    def __init__(self) -> None:
        path, number = flag("--resume"), len(list(Path().glob("runs/exp*"))) + 1
        self.run = Path(path).parent.parent if path else Path(f"runs/exp{number if number > 1 else ''}")
        self.is_new = not path

    def save(self, state: State) -> None:
        write(self.run / "weights/last.pt", state)
        if state["step"] == EVERY:
            write(self.run / "weights/best.pt", state)

    def report(self, step: int) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        with (self.run / "results.csv").open("a") as file:
            file.write(f"{'epoch, train/loss' + chr(10) if self.is_new else ''}{step - 1}, {1 / step:.3f}\n")
        self.is_new = False


class EpochFiles(Shape):
    """A file for the end of each epoch, from 0; lines name epoch and batch."""

    def save(self, state: State) -> None:
        write(Path(f"output_dir/checkpoint-{state['step'] - 1}.pth"), state)

    def report(self, step: int) -> None:
        for batch in (0, 9):
            print(f"Epoch: [{step - 1}]  [ {batch}/10]  eta: 0:00:01  loss: 1.0", flush=True)


class Group(Shape):
    """Several files of one number; a step says from which it resumes."""

    def save(self, state: State) -> None:
        number = f"{state['step']:06d}"
        write(Path(f"log/model_{number}.pt"), state)
        Path(f"log/meta_{number}.json").write_text(json.dumps({"step": state["step"]}))
        write(Path(f"log/optim_{number}_rank0.pt"), state)

    def load(self) -> State | None:
        step = flag("--step")
        if not step:
            return None
        meta = json.loads(Path(f"log/meta_{int(step):06d}.json").read_text())
        return read(f"log/optim_{meta['step']:06d}_rank0.pt")


class FoldersAndText(Shape):
    """Folders, and a file that names the newest; without it, it begins at the beginning."""

    FOLDER = Path("ckpts")

    def save(self, state: State) -> None:
        folder = self.FOLDER / f"global_step{state['step']}"
        write(folder / "weights.pt", state)
        (folder / "DONE").touch()
        (self.FOLDER / "latest").write_text(folder.name)

    def load(self) -> State | None:
        pointer = self.FOLDER / "latest"
        return read(self.FOLDER / pointer.read_text() / "weights.pt") if pointer.exists() else None


class FoldersAndLink(Shape):
    """Folders that are renamed into place, and a relative link to the newest."""

    LINK = Path("save/latest")

    def save(self, state: State) -> None:
        folder = self.LINK.with_name(f"step{state['step']}")
        write(folder.with_name(f"{folder.name}-tmp") / "weights.pt", state)
        folder.with_name(f"{folder.name}-tmp").rename(folder)
        self.LINK.unlink(missing_ok=True)
        self.LINK.symlink_to(folder.name)

    def load(self) -> State | None:
        return read(self.LINK / "weights.pt") if self.LINK.exists() else None


class Archives(Shape):
    """An archive for so many steps of an environment, and a file beside it; a table; it resumes from the
    newest pair.
    """

    def save(self, state: State) -> None:
        write(Path(f"models/rl_model_{state['step'] * 100}_steps.zip"), state)
        write(Path(f"models/rl_model_stats_{state['step'] * 100}_steps.pkl"), state)

    def load(self) -> State | None:
        found = numbers("models/rl_model_stats_*_steps.pkl")
        return read(f"models/rl_model_stats_{found[-1]}_steps.pkl") if found else None

    def report(self, step: int) -> None:
        print(
            f"-----------\n| time/            |     |\n|    total_timesteps | {step * 100} |\n-----------",
            flush=True,
        )


class Pair(Shape):
    """Two files of one number, of which it finds the newest of each by itself."""

    def save(self, state: State) -> None:
        for prefix in "GD":
            write(Path(f"gan/{prefix}_{state['step']}.pth"), state)

    def load(self) -> State | None:
        newest = [numbers(f"gan/{prefix}_*.pth")[-1:] for prefix in "GD"]
        assert newest[0] == newest[1], "two steps would be mixed"
        return read(f"gan/D_{newest[0][0]}.pth") if newest[0] else None


class FileAndPath(Shape):
    """A numbered file, and a file with its absolute path."""

    POINTER = Path("work_dir/last_checkpoint")

    def save(self, state: State) -> None:
        path = self.POINTER.with_name(f"iter_{state['step']}.pth").resolve()
        write(path, state)
        self.POINTER.write_text(str(path))

    def load(self) -> State | None:
        return read(self.POINTER.read_text()) if "--resume" in sys.argv else None


SHAPES: dict[str, type[Shape]] = {
    "fixed_file": FixedFile,
    "padded_files": PaddedFiles,
    "trainer_folders": TrainerFolders,
    "epoch_and_step": EpochAndStep,
    "last_and_best": LastAndBest,
    "epoch_files": EpochFiles,
    "group": Group,
    "folders_and_text": FoldersAndText,
    "folders_and_link": FoldersAndLink,
    "archives": Archives,
    "pair": Pair,
    "file_and_path": FileAndPath,
    "lightnings_default": LightningsDefault,
}


def main() -> None:
    shape = SHAPES[sys.argv[1]]()
    state = shape.load() or fresh()
    Path("begun_at").write_text(str(state["step"]))
    stop_at = int(os.environ.get("STOP_AT", "0"))
    while state["step"] < STEPS:
        if state["step"] + 1 == stop_at:
            time.sleep(3600)
        state = after(state)
        time.sleep(0.15)
        shape.report(state["step"])
        if state["step"] % EVERY == 0:
            shape.save(state)


if __name__ == "__main__":
    main()
