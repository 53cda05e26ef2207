# ruff: noqa: PTH, SIM115 - written as such scripts are
"""A training whose state depends on every step so far, saved and resumed in one of twelve ways: `python train.py SHAPE [arguments]`.

With STOP_AT in the environment, it hangs before that step.
"""

import glob
import hashlib
import json
import os
import pickle
import re
import sys
import time

STEPS, EVERY = 12, 3
PADDING = b"x" * 20_000


def fresh():
    return {"step": 0, "chain": ""}


def after(state):
    step = state["step"] + 1
    return {"step": step, "chain": hashlib.sha256(f"{state['chain']}{step}".encode()).hexdigest()}


def final():
    state = fresh()
    while state["step"] < STEPS:
        state = after(state)
    return state


def write(path, state):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        data = pickle.dumps((state, PADDING))
        file.write(data[:9000])
        file.flush()
        time.sleep(0.02)
        file.write(data[9000:])


def read(path):
    with open(path, "rb") as file:
        return pickle.load(file)[0]


def text(path, content):
    with open(path, "w") as file:
        file.write(content)


def flag(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


class Shape:
    """Prints a line for each step, from 1."""

    def report(self, step):
        print(f"step {step} loss {1 / step:.3f}", flush=True)

    def load(self):
        path = flag("--resume")
        return read(path) if path else None


class FixedFile(Shape):
    """One file of a fixed name; a word says that it resumes; it counts from 0, and saves before a step."""

    def save(self, state):
        write("out/model.pt", state)

    def load(self):
        return read("out/model.pt") if "--continue" in sys.argv else None

    def report(self, step):
        print(f"iter {step - 1}: loss {1 / step:.3f}", flush=True)


class PaddedFiles(Shape):
    """A file for each save, and one of the same bytes from which it resumes by itself."""

    def save(self, state):
        for name in (f"ckpt-{state['step']:06d}.pt", "latest.pt"):
            write(f"runs/exp/{name}", state)
        for old in sorted(glob.glob("runs/exp/ckpt-*.pt"))[:-2]:
            os.remove(old)

    def load(self):
        return read("runs/exp/latest.pt") if os.path.exists("runs/exp/latest.pt") else None


class TrainerFolders(Shape):
    """Folders of several files, a small one last; a bar that is redrawn on stderr."""

    def save(self, state):
        folder = f"results/checkpoint-{state['step']}"
        write(f"{folder}/model.bin", state)
        write(f"{folder}/optimizer.bin", state)
        text(f"{folder}/trainer_state.json", json.dumps({"global_step": state["step"]}))

    def load(self):
        folder = flag("--resume_from_checkpoint")
        return read(f"{folder}/optimizer.bin") if folder else None

    def report(self, step):
        sys.stderr.write(f"\r{100 * step // STEPS}%|{'#' * step}| {step}/{STEPS} [00:00<00:01, 9.9it/s]")
        sys.stderr.flush()


class EpochAndStep(Shape):
    """Files with epoch and step in the name, renamed into place in a folder with another number at each launch; a table that counts from
    0."""

    def __init__(self):
        self.number = len(glob.glob("logs/version_*"))
        self.before = None

    def save(self, state):
        folder = f"logs/version_{self.number}/checkpoints"
        path = f"{folder}/epoch={state['step'] // 5}-step={state['step']}.ckpt"
        for name in (path, f"{folder}/last.ckpt"):
            write(f"{name}.part", state)
            os.replace(f"{name}.part", name)
        if self.before:
            os.remove(self.before)
        self.before = path

    def report(self, step):
        path = f"logs/version_{self.number}/metrics.csv"
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            text(path, "epoch, step, loss\n")
        with open(path, "a") as file:
            file.write(f"{step // 5}, {step - 1}, {1 / step:.3f}\n")


class LastAndBest(Shape):
    """`last.pt` and `best.pt` of each epoch, in exp, exp2 ...; epochs count from 0."""

    def __init__(self):
        path = flag("--resume")
        number = len(glob.glob("runs/exp*")) + 1
        self.run = os.path.dirname(os.path.dirname(path)) if path else f"runs/exp{number if number > 1 else ''}"

    def save(self, state):
        write(f"{self.run}/weights/last.pt", state)
        if state["step"] == EVERY:
            write(f"{self.run}/weights/best.pt", state)

    def report(self, step):
        print(f"{step - 1:>8}/{STEPS - 1}  1.2G  0.5:  100%|###| 10/10", flush=True)


class EpochFiles(Shape):
    """A file for the end of each epoch, from 0; lines name epoch and batch."""

    def save(self, state):
        write(f"output_dir/checkpoint-{state['step'] - 1}.pth", state)

    def report(self, step):
        print(f"Epoch: [{step - 1}]  [ 0/10]  eta: 0:00:01  loss: 1.0\nEpoch: [{step - 1}]  [ 9/10]  eta: 0:00:00  loss: 1.0", flush=True)


class Group(Shape):
    """Several files of one number; a step says from which it resumes."""

    def save(self, state):
        number = f"{state['step']:06d}"
        write(f"log/model_{number}.pt", state)
        text(f"log/meta_{number}.json", json.dumps({"step": state["step"]}))
        write(f"log/optim_{number}_rank0.pt", state)

    def load(self):
        step = flag("--step")
        if not step:
            return None
        meta = json.load(open(f"log/meta_{int(step):06d}.json"))
        return read(f"log/optim_{meta['step']:06d}_rank0.pt")


class FoldersAndText(Shape):
    """Folders, and a file that names the newest; without it, it begins at the beginning."""

    def save(self, state):
        write(f"ckpts/global_step{state['step']}/weights.pt", state)
        text(f"ckpts/global_step{state['step']}/DONE", "")
        text("ckpts/latest", f"global_step{state['step']}")

    def load(self):
        if not os.path.exists("ckpts/latest"):
            return None
        return read(f"ckpts/{open('ckpts/latest').read()}/weights.pt")


class FoldersAndLink(Shape):
    """Folders that are renamed into place, and a relative link to the newest."""

    def save(self, state):
        folder = f"save/step{state['step']}"
        write(f"{folder}-tmp/weights.pt", state)
        os.rename(f"{folder}-tmp", folder)
        if os.path.lexists("save/latest"):
            os.remove("save/latest")
        os.symlink(f"step{state['step']}", "save/latest")

    def load(self):
        return read("save/latest/weights.pt") if os.path.exists("save/latest") else None


class Archives(Shape):
    """An archive for so many steps of an environment, and a file beside it; a table; it resumes from the newest pair."""

    def save(self, state):
        write(f"models/rl_model_{state['step'] * 100}_steps.zip", state)
        write(f"models/rl_model_stats_{state['step'] * 100}_steps.pkl", state)

    def load(self):
        found = [int(re.search(r"_(\d+)_steps", path)[1]) for path in glob.glob("models/rl_model_stats_*_steps.pkl")]
        return read(f"models/rl_model_stats_{max(found)}_steps.pkl") if found else None

    def report(self, step):
        print(f"-----------\n| time/            |     |\n|    total_timesteps | {step * 100} |\n-----------", flush=True)


class Pair(Shape):
    """Two files of one number, of which it finds the newest of each by itself."""

    def save(self, state):
        for prefix in "GD":
            write(f"gan/{prefix}_{state['step']}.pth", state)

    def load(self):
        newest = [
            max(glob.glob(f"gan/{prefix}_*.pth"), key=lambda path: int(re.findall(r"\d+", path)[-1]), default=None) for prefix in "GD"
        ]
        if newest == [None, None]:
            return None
        one, other = map(read, newest)
        assert one == other, "two steps were mixed"
        return one


class FileAndPath(Shape):
    """A numbered file, and a file with its absolute path."""

    def save(self, state):
        path = os.path.abspath(f"work_dir/iter_{state['step']}.pth")
        write(path, state)
        text("work_dir/last_checkpoint", path)

    def load(self):
        return read(open("work_dir/last_checkpoint").read()) if "--resume" in sys.argv else None


SHAPES = {
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
}


def main():
    shape = SHAPES[sys.argv[1]]()
    state = shape.load() or fresh()
    with open("begun_at", "w") as file:
        file.write(str(state["step"]))
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
