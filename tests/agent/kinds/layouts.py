"""Where the trainer of each kind writes a checkpoint, in which order, how it is told to resume, and how it
reports a step.

The files have the names and formats of the real ones. Most of them contain the step, and the generation of
the save.
"""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from tests.agent.checkpoints.formats import tensors, zipped

STEPS, EVERY = 12, 4
_DCP = Path(__file__).parents[2] / "data" / "dcp" / "step_10" / "trainer"
_ZIPPED = (".pt", ".pth", ".ckpt", ".npz", "")


@dataclass(frozen=True)
class Layout:
    """A trainer of one kind. `checkpoint` returns the files of a step in the order in which they are written,
    relative to the folder of checkpoints; `resumed` returns the step that the arguments, or the files there,
    say to resume from; `report` writes progress.
    """

    checkpoint: Callable[[int], Sequence[str]]
    resumed: Callable[[Sequence[str], Path], int | None]
    report: Callable[[int], str]
    folder: Callable[[Sequence[str]], str] = lambda words: _after(words, "--out", "--output_dir") or ""
    progress_file: str = ""
    header: str = ""
    loading: str = ""
    """What it prints when it loads a checkpoint."""
    scratch: str = ""
    """What it prints when it was to load one, and begins from scratch."""
    counts_anew: bool = False


def marker(step: int, generation: int) -> bytes:
    return f"step {step} generation {generation};".encode()


MARKER = re.compile(rb"step (\d+) generation (\d+);")


def content(path: str, step: int, generation: int) -> bytes:
    """Return the content of a file of this name."""
    own, name = marker(step, generation), PurePosixPath(path)
    if name.suffix == ".distcp":
        return _dcp(name.name) + own
    if name.name == ".metadata":
        return _dcp(name.name)
    if name.name == "COMPLETE":
        return b""
    if name.suffix == ".safetensors":
        return tensors(own * 50)
    if name.suffix == ".json":
        return b'{"global_step": %d, "made": "%s"}' % (step - 1, own)
    if name.suffix == ".pkl":
        return pickle.dumps(own)
    assert name.suffix in _ZIPPED, path
    return zipped(own * 50)


@cache
def _dcp(name: str) -> bytes:
    return (_DCP / name).read_bytes()


def _after(words: Sequence[str], *flags: str) -> str | None:
    """Return the word after the first of these flags that is there."""
    return next((words[words.index(flag) + 1] for flag in flags if flag in words), None)


def _setting(words: Sequence[str], key: str) -> str | None:
    """Return the last value of a setting in the form of hydra."""
    found = [word.lstrip("+").partition("=")[2] for word in words if word.lstrip("+").startswith(f"{key}=")]
    return found[-1] if found else None


def _number(text: str | None) -> int | None:
    found = re.findall(r"\d+", text or "")
    return int(found[-1]) if found else None


def _flag(*flags: str) -> Callable[[Sequence[str], Path], int | None]:
    return lambda words, folder: _number(PurePosixPath(_after(words, *flags) or "").name)


def _lightning_resumed(words: Sequence[str], folder: Path) -> int | None:
    path = _after(words, "--ckpt_path")
    return None if path is None else _saved_step(Path(path))


def _saved_step(file: Path) -> int | None:
    """Return the step of the checkpoint that a file belongs to."""
    found = MARKER.search(file.read_bytes()) if file.is_file() else None
    return int(found[1]) if found else None


def _areal_resumed(words: Sequence[str], folder: Path) -> int | None:
    """Return the step of the state that is in place; nothing tells AReaL to resume."""
    return _saved_step(folder / AREAL / "recover_info/step_info.json")


def _trm_resumed(words: Sequence[str], folder: Path) -> int | None:
    path = _setting(words, "load_checkpoint")
    return None if path is None else _saved_step(Path(path))


AREAL = "areal/checkpoints/areal/tiny/run"
_AREAL_FILES = (
    *(f"default/recover_checkpoint/{name}" for name in ("__0_0.distcp", "__1_0.distcp", ".metadata")),
    *(
        f"recover_info/{name}_info.json"
        for name in ("step", "saver", "evaluator", "stats_logger", "checkpoint")
    ),
    "recover_info/dataloader_info.pkl",
)
_SHARDS = ("__0_0.distcp", "__1_0.distcp", ".metadata")
_HF_FILES = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")
_VERL_PARTS = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]


def _bar(step: int) -> str:
    return f"  {step}%|#   | {step}/{STEPS} [00:01<00:02,  1.00it/s]"


LAYOUTS: Mapping[str, Layout] = {
    "command": Layout(
        lambda step: [f"step_{step}/{name}" for name in ("weights.npz", "optimizer.pt", "COMPLETE")],
        _flag("--resume-step"),
        lambda step: f'{{"step": {step}, "loss": 1.0}}',
        progress_file="progress.jsonl",
    ),
    "torchrun": Layout(
        lambda step: [f"step_{step}/{name}" for name in _SHARDS],
        _flag("--resume"),
        lambda step: f'{{"step": {step}, "loss": 1.0}}',
        progress_file="progress.jsonl",
    ),
    "hf": Layout(
        lambda step: [f"checkpoint-{step}/{name}" for name in _HF_FILES],
        _flag("--resume_from_checkpoint"),
        lambda step: f"{{'loss': '2.1', 'epoch': '0.01'}}\n{_bar(step)}",
    ),
    "lightning": Layout(
        lambda step: [f"epoch=0-step={step}.ckpt"],
        _lightning_resumed,
        lambda step: f"0,{step - 1},1.0",
        progress_file="lightning_logs/version_0/metrics.csv",
        header="epoch,step,train_loss",
    ),
    "torchtitan": Layout(
        lambda step: [f"step-{step}/{name}" for name in _SHARDS],
        _flag("--checkpoint.load_step"),
        lambda step: (
            f"[titan] 2026-11-23 10:00:00,123 - root - INFO - step: {step}  loss:  8.14231  grad_norm:  "
            "1.4217"
        ),
        folder=lambda words: _after(words, "--checkpoint.folder") or "",
        scratch="[titan] 2026-11-23 10:00:00,123 - root - INFO - Training starts at step 1",
    ),
    "verl": Layout(
        lambda step: [f"global_step_{step}/{name}" for name in (*_VERL_PARTS, "data.pt")],
        lambda words, folder: _number(_setting(words, "trainer.resume_from_path")),
        lambda step: f"step:{step} - actor/pg_loss:0.0123 - critic/score/mean:0.41",
        folder=lambda words: _setting(words, "trainer.default_local_dir") or "",
        scratch="Training from scratch",
    ),
    "areal": Layout(
        lambda step: [f"{AREAL}/{name}" for name in _AREAL_FILES],
        _areal_resumed,
        lambda step: f"Epoch 1/1 Step {step}/{STEPS} Train step {step}/{STEPS} done.",
        folder=lambda words: str(Path(_setting(words, "cluster.fileroot") or "").parent),
    ),
    "trm": Layout(
        lambda step: [f"step_{step}"],
        _trm_resumed,
        _bar,
        folder=lambda words: _setting(words, "checkpoint_path") or "",
        loading="Loading checkpoint weights",
        counts_anew=True,
    ),
    "prime_rl": Layout(
        lambda step: [
            f"step_{step}/orchestrator/progress.pt",
            *(f"step_{step}/trainer/{name}" for name in _SHARDS),
        ],
        _flag("--resume.step"),
        lambda step: f'{{"step": {step}, "loss/mean": 1.0}}',
        folder=lambda words: f"{_after(words, '--output-dir')}/{_after(words, '--run.name')}/checkpoints",
        progress_file="outputs/tiny/metrics.jsonl",
    ),
}


def cuts(files: Sequence[str], step: int, generation: int) -> Iterator[dict[str, bytes]]:
    """Yield states in which a save can be interrupted: before each file, at its beginning, in its middle, and
    right before its end.
    """
    done: dict[str, bytes] = {}
    for path in files:
        data = content(path, step, generation)
        yield done
        for length in sorted({0, len(data) // 2, len(data) - 1} & set(range(len(data)))):
            yield {**done, path: data[:length]}
        done = {**done, path: data}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files one after the other, each in place if it is there."""
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("r+b" if target.exists() else "wb") as file:
            file.truncate(0)
            file.write(data)
