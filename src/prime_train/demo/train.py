"""Train a character-level neural language model, with checkpoints that resume bit for bit.

The same seed, batch size and step give bit-identical weights, whether the run was uninterrupted or resumed at
any checkpoint. That holds on one kind of processor and one numpy build; another kind may round differently in
the last place. Environment variables that select other kernels are removed, so that they have no effect.

Steps count from 1: "step N" means that N updates have been made. A checkpoint is the folder
`OUT/checkpoints/step_<N>` with weights.npz, optimizer.npz, state.json and, written last, the sentinel file
COMPLETE. A folder without it is incomplete and is never loaded.

Exit status: 0 done, 1 an injected fault, 2 wrong options or no usable checkpoint, 143 stopped by SIGTERM
after saving.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

# numpy reads these variables on import. Kernels for another processor round differently, so results must not
# depend on the environment.
for _name in [
    name for name in os.environ if name.startswith(("OPENBLAS_", "NVPL_BLAS_", "BLIS_", "MKL_", "NPY_"))
]:
    del os.environ[_name]
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"  # one thread, so that sums always run in one order

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Params = dict[str, FloatArray]

CONTEXT, EMBED, HIDDEN = 10, 16, 128  # characters seen, size of one embedding, hidden units
HELD_OUT = 5_000  # characters at the end of the corpus that are never trained on
LEARNING_RATE, WARMUP, HALF_LIFE = 0.004, 20, 1_000  # peak rate; steps of warm-up; steps per halving
BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-8  # Adam
SENTINEL = "COMPLETE"


class CheckpointError(Exception):
    """The requested checkpoint is absent, incomplete, damaged or from a different run."""


# ---------------------------------------------------------------- data and model


def load_corpus() -> tuple[IntArray, IntArray, str]:
    """Return (training text, held-out text, alphabet); texts are indices into the sorted alphabet."""
    text = Path(__file__).with_name("corpus.txt").read_text(encoding="ascii")
    alphabet = "".join(sorted(set(text)))
    codes = np.array([alphabet.index(char) for char in text], dtype=np.int64)
    return codes[:-HELD_OUT], codes[-HELD_OUT:], alphabet


def windows(text: IntArray, starts: IntArray, context: int = CONTEXT) -> tuple[IntArray, IntArray]:
    """Return contexts (len(starts), context) and the character after each (len(starts),)."""
    return text[starts[:, None] + np.arange(context)], text[starts + context]


def sample_batch(text: IntArray, seed: int, step: int, size: int) -> tuple[IntArray, IntArray]:
    """Draw the batch of one step; it depends on (seed, step) alone, so a resumed run draws the same."""
    rng = np.random.default_rng([seed, step])
    return windows(text, rng.integers(0, len(text) - CONTEXT, size=size))


def init_params(
    vocab: int, seed: int, context: int = CONTEXT, embed: int = EMBED, hidden: int = HIDDEN
) -> Params:
    """Return fresh weights: a character table, one tanh layer, a softmax layer."""
    rng = np.random.default_rng([seed, 0])
    width = context * embed
    return {
        "embed": rng.standard_normal((vocab, embed)),
        "hidden_w": rng.standard_normal((width, hidden)) / np.sqrt(width),
        "hidden_b": np.zeros(hidden),
        "out_w": rng.standard_normal((hidden, vocab)) * (0.1 / np.sqrt(hidden)),
        "out_b": np.zeros(vocab),
    }


def _forward(params: Params, contexts: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return inputs (batch, context * embed), hidden (batch, hidden), log-probabilities (batch, vocab)."""
    inputs = params["embed"][contexts].reshape(len(contexts), -1)
    hidden = np.tanh(inputs @ params["hidden_w"] + params["hidden_b"])
    logits = hidden @ params["out_w"] + params["out_b"]
    logits -= logits.max(axis=1, keepdims=True)
    return inputs, hidden, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def evaluate(params: Params, contexts: IntArray, targets: IntArray) -> float:
    """Return the mean cross-entropy, in nats per character."""
    logp = _forward(params, contexts)[2]
    return float(-logp[np.arange(len(targets)), targets].mean())


def loss_and_gradients(params: Params, contexts: IntArray, targets: IntArray) -> tuple[float, Params]:
    """Return the mean cross-entropy (nats per character) and its gradient for every parameter."""
    inputs, hidden, logp = _forward(params, contexts)
    rows = np.arange(len(targets))
    d_logits = np.exp(logp)
    d_logits[rows, targets] -= 1.0
    d_logits /= len(targets)
    d_pre = (d_logits @ params["out_w"].T) * (1.0 - hidden * hidden)
    d_embed = np.zeros_like(params["embed"])
    np.add.at(d_embed, contexts.ravel(), (d_pre @ params["hidden_w"].T).reshape(contexts.size, -1))
    gradients = {
        "embed": d_embed,
        "hidden_w": inputs.T @ d_pre,
        "hidden_b": d_pre.sum(axis=0),
        "out_w": hidden.T @ d_logits,
        "out_b": d_logits.sum(axis=0),
    }
    return float(-logp[rows, targets].mean()), gradients


def learning_rate(step: int) -> float:
    """Return the learning rate of a step. It does not depend on --steps, so that a run can be lengthened
    later.
    """
    return float(LEARNING_RATE * min(1.0, step / WARMUP) * 0.5 ** (step / HALF_LIFE))


# ---------------------------------------------------------------- training state


@dataclass
class DemoTrainer:
    """Weights, Adam moments ("m.<name>", "v.<name>") and the state that determines the next batch."""

    params: Params
    moments: Params
    seed: int
    batch_size: int
    step: int = 0
    loss: float = float("nan")

    @classmethod
    def fresh(cls, vocab: int, seed: int, batch_size: int) -> "DemoTrainer":
        """Return a trainer at step 0."""
        params = init_params(vocab, seed)
        moments = {f"{kind}.{name}": np.zeros_like(value) for kind in "mv" for name, value in params.items()}
        return cls(params, moments, seed, batch_size)

    def advance(self, text: IntArray) -> None:
        """Make one Adam update and set `step` and `loss` to describe it (the loss is the one before the
        update).
        """
        self.step += 1
        contexts, targets = sample_batch(text, self.seed, self.step, self.batch_size)
        self.loss, gradients = loss_and_gradients(self.params, contexts, targets)
        rate = learning_rate(self.step) * np.sqrt(1 - BETA2**self.step) / (1 - BETA1**self.step)
        for name, gradient in gradients.items():
            mean, square = self.moments[f"m.{name}"], self.moments[f"v.{name}"]
            mean += (1 - BETA1) * (gradient - mean)
            square += (1 - BETA2) * (gradient * gradient - square)
            self.params[name] -= rate * mean / (np.sqrt(square) + EPSILON)

    def digest(self) -> str:
        """Return the SHA-256, in hex, over the bytes of the weights in the order of their sorted names."""
        return hashlib.sha256(
            b"".join(self.params[name].tobytes() for name in sorted(self.params))
        ).hexdigest()


# ---------------------------------------------------------------- checkpoints


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _write_arrays(path: Path, arrays: Params) -> None:
    """Write an .npz whose bytes depend on the arrays alone: a ZipInfo made by hand is dated 1980-01-01."""
    with path.open("wb") as stream:
        with zipfile.ZipFile(stream, "w") as archive:
            for name in sorted(arrays):
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                    np.lib.format.write_array(member, arrays[name], allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())


def _read_arrays(path: Path, like: Params) -> Params:
    """Read an .npz; raise ValueError unless it has exactly the names, shapes and types of `like`."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: np.ascontiguousarray(stored[name]) for name in stored.files}
    layout = [{name: (a.shape, a.dtype) for name, a in group.items()} for group in (arrays, like)]
    if layout[0] != layout[1]:
        raise ValueError(f"{path.name} does not hold the arrays of this model")
    return arrays


def _remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint, its sentinel file first, so that a half-removed folder never looks complete."""
    (folder / SENTINEL).unlink(missing_ok=True)
    shutil.rmtree(folder)


def save_checkpoint(root: Path, trainer: DemoTrainer) -> Path:
    """Write root/step_<N> from scratch under its final name, sync each file, write the sentinel file last,
    and return the folder.
    """
    folder = root / f"step_{trainer.step}"
    if folder.exists():
        _remove_checkpoint(folder)
    folder.mkdir(parents=True)
    _write_arrays(folder / "weights.npz", trainer.params)
    _write_arrays(folder / "optimizer.npz", trainer.moments)
    rng = {"generator": "numpy.random.default_rng", "next_batch_seed": [trainer.seed, trainer.step + 1]}
    state = {
        "step": trainer.step,
        "loss": trainer.loss,
        "seed": trainer.seed,
        "batch_size": trainer.batch_size,
    }
    _write_text(folder / "state.json", json.dumps({**state, "rng": rng}) + "\n")
    _sync_folder(folder)
    _write_text(folder / SENTINEL, f"{trainer.step}\n")
    _sync_folder(folder)
    _sync_folder(root)
    return folder


def load_checkpoint(root: Path, step: int, vocab: int) -> DemoTrainer:
    """Return the trainer saved at exactly this step. Raises CheckpointError if the checkpoint is absent,
    incomplete or unreadable.
    """
    folder = root / f"step_{step}"
    if not folder.is_dir():
        raise CheckpointError(f"no checkpoint at {folder}")
    if not (folder / SENTINEL).is_file():
        raise CheckpointError(f"checkpoint {folder} is incomplete: it has no {SENTINEL} file")
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        trainer = DemoTrainer.fresh(vocab, int(state["seed"]), int(state["batch_size"]))
        trainer.step, trainer.loss = int(state["step"]), float(state["loss"])
        trainer.params = _read_arrays(folder / "weights.npz", trainer.params)
        trainer.moments = _read_arrays(folder / "optimizer.npz", trainer.moments)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"checkpoint {folder} cannot be read: {error!r}") from error
    if trainer.step != step:
        raise CheckpointError(f"checkpoint {folder} holds step {trainer.step}, not step {step}")
    return trainer


def prune_checkpoints(root: Path, newest: Path, keep: int) -> None:
    """Delete all checkpoints except `newest` and the keep - 1 written last before it; folders without a
    sentinel file are deleted first.
    """

    def age(folder: Path) -> tuple[bool, int]:
        sentinel = folder / SENTINEL
        return sentinel.exists(), (sentinel if sentinel.exists() else folder).stat().st_mtime_ns

    folders = (path for path in root.glob("step_*") if path.is_dir() and path.name[5:].isdecimal())
    others = sorted((path for path in folders if path != newest), key=age)
    for folder in others[: max(0, len(others) - (keep - 1))]:
        _remove_checkpoint(folder)


# ---------------------------------------------------------------- faults for testing a supervisor

FAULT_TEXTS = {
    "exit": "RuntimeError: training loop stopped unexpectedly",
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this process has 22.47 "
    "GiB memory in use. Of the allocated memory 21.30 GiB is allocated by PyTorch, and 806.12 MiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
    "Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    "files": "OSError: [Errno 24] Too many open files: '/dev/shm/torch_2174_1840553912_1019'",
    "disk": "OSError: [Errno 28] No space left on device: 'weights.npz'",
    "import": "ModuleNotFoundError: No module named 'flash_attn'",
    "cuda": "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
    "might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
}
FAULTS = (*FAULT_TEXTS, "hang", "kill", "sigterm-ignore")


def first_time(flag: Path | None) -> bool:
    """Return whether the fault is still due: always True without a flag file, otherwise True once, and create
    the file.
    """
    if flag is None:
        return True
    flag.parent.mkdir(parents=True, exist_ok=True)
    try:
        flag.open("x").close()
    except FileExistsError:
        return False
    return True


def strike(fault: str) -> None:
    """Inject a fault. Returns only for sigterm-ignore; a hang ends only by SIGKILL."""
    if fault in {"hang", "sigterm-ignore"}:  # the other faults are visible by themselves
        print(f"injected fault: {fault}", flush=True)
    if fault == "sigterm-ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    while fault == "hang":
        time.sleep(3600)
    trace = f'Traceback (most recent call last):\n  File "{__file__}", line 1, in <module>\n    main()\n'
    sys.stderr.write(f"{trace}{FAULT_TEXTS[fault]}\n")
    sys.exit(1)


# ---------------------------------------------------------------- the run


class StopFlag:
    """Flag set by SIGTERM; the training loop checks it between steps."""

    def __init__(self) -> None:
        """Install the SIGTERM handler for the rest of the process."""
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, *_: object) -> None:
        self.requested = True

    def wait_until(self, moment: float) -> None:
        """Sleep until `moment` (seconds of time.monotonic()) or until a stop is requested."""
        while not self.requested and (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))


def report_step(trainer: DemoTrainer, options: argparse.Namespace, progress: TextIO | None) -> None:
    """Append the step to the progress file, and print a line every ten steps."""
    rate = learning_rate(trainer.step)
    record: dict[str, float] = {"step": trainer.step, "loss": trainer.loss, "lr": rate, "time": time.time()}
    if options.reward_constant is not None:
        record["reward"] = options.reward_constant
    if progress is not None:
        progress.write(json.dumps(record) + "\n")
        progress.flush()
    if trainer.step % 10 == 0:
        print(f"step {trainer.step}/{options.steps} loss {trainer.loss:.4f} lr {rate:.5f}", flush=True)


def train(
    trainer: DemoTrainer, text: IntArray, options: argparse.Namespace, stop: StopFlag, progress: TextIO | None
) -> bool:
    """Train to the last step, saving checkpoints on the way. Return False if SIGTERM stopped it earlier."""
    root = options.out / "checkpoints"
    while trainer.step < options.steps:
        if trainer.step + 1 == options.fail_at_step and first_time(options.fail_once):
            strike(options.fail_how)
        earliest_end = time.monotonic() + options.step_seconds
        trainer.advance(text)
        stop.wait_until(earliest_end)
        report_step(trainer, options, progress)
        due = trainer.step % options.save_every == 0 or trainer.step == options.steps
        if due or stop.requested:
            prune_checkpoints(root, save_checkpoint(root, trainer), options.keep)
            if stop.requested:
                print(f"saved step {trainer.step} on SIGTERM", flush=True)
                return bool(trainer.step == options.steps)
    return True


def start(options: argparse.Namespace, vocab: int) -> DemoTrainer:
    """Return a fresh trainer, or the one at --resume-step. Raises CheckpointError if the checkpoint does not
    match the options.
    """
    if options.resume_step is None:
        return DemoTrainer.fresh(vocab, options.seed or 0, options.batch_size or 128)
    trainer = load_checkpoint(options.out / "checkpoints", options.resume_step, vocab)
    if trainer.step > options.steps:
        raise CheckpointError(f"the checkpoint is at step {trainer.step}, past --steps {options.steps}")
    for name, expected, saved in (
        ("--seed", options.seed, trainer.seed),
        ("--batch-size", options.batch_size, trainer.batch_size),
    ):
        if expected is not None and expected != saved:
            raise CheckpointError(f"the checkpoint was made with {name} {saved}, not {expected}")
    print(f"resumed from step {trainer.step}", flush=True)
    return trainer


def finish(trainer: DemoTrainer, out: Path) -> None:
    """Write out/final.json atomically and print the closing line."""
    final = {"step": trainer.step, "loss": trainer.loss, "sha256": trainer.digest()}
    partial = out / "final.json.partial"
    _write_text(partial, json.dumps(final) + "\n")
    partial.replace(out / "final.json")
    print(f"done step {trainer.step} loss {trainer.loss:.4f} sha256 {final['sha256']}", flush=True)


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Invalid arguments end the process with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m prime_train.demo.train", description="Train a small model."
    )
    add = parser.add_argument
    add("--steps", type=_positive, default=300, help="last step (default 300)")
    add("--out", type=Path, required=True, help="output folder")
    add(
        "--save-every", type=_positive, default=25, metavar="K", help="steps between checkpoints (default 25)"
    )
    add("--resume-step", type=_positive, metavar="N", help="continue from OUT/checkpoints/step_N")
    add("--step-seconds", type=float, default=0.0, metavar="S", help="least wall time of a step (default 0)")
    add("--seed", type=int, help="default 0, or the checkpoint's")
    add("--batch-size", type=_positive, help="contexts per step: default 128, or the checkpoint's")
    add("--keep", type=_positive, default=3, help="checkpoints left on disk (default 3)")
    add("--progress", type=Path, metavar="FILE", help="append one JSON object a step to this file")
    add("--reward-constant", type=float, metavar="X", help='put "reward": X in every progress line')
    add(
        "--fail-at-step",
        type=_positive,
        metavar="N",
        help="fail in place of step N (steps up to N - 1 are done)",
    )
    add(
        "--fail-how", choices=FAULTS, default="exit", help="sigterm-ignore: ignore SIGTERM and go on training"
    )
    add("--fail-once", type=Path, metavar="FILE", help="fail only if FILE is absent, and create it")
    options = parser.parse_args(arguments)
    if options.seed is not None and options.seed < 0:
        parser.error("argument --seed: must be 0 or more")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trainer and return its exit status."""
    options = parse_options(arguments)
    stop = StopFlag()
    text, held_out, alphabet = load_corpus()
    try:
        trainer = start(options, len(alphabet))
    except CheckpointError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    if options.progress is None:
        done = train(trainer, text, options, stop, None)
    else:
        options.progress.parent.mkdir(parents=True, exist_ok=True)
        with options.progress.open("a", encoding="utf-8") as progress:
            done = train(trainer, text, options, stop, progress)
    if not done:
        return 128 + signal.SIGTERM
    held_out_loss = evaluate(trainer.params, *windows(held_out, np.arange(HELD_OUT - CONTEXT)))
    print(f"held-out loss {held_out_loss:.4f} nats per character", flush=True)
    finish(trainer, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
