"""The demo's trainer, as it runs in reality: one process for each run, real signals, real files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from prime_train.demo import train
from tests.exhaustive import some_of
from tests.waiting import HANG_S

SOURCE = Path(train.__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}


def command(out: Path, *options: object) -> list[str]:
    return [sys.executable, "-m", "prime_train.demo.train", "--out", str(out), *map(str, options)]


def run(
    out: Path, *options: object, expect: int = 0, variables: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    environment = {**ENVIRONMENT, **variables}
    result = subprocess.run(
        command(out, *options), env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert result.returncode == expect, result.stderr + result.stdout
    return result


class Running:
    """A trainer in progress, which writes its progress lines to its standard output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen = ""

    def await_line(self, start: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen += line
            if line.startswith(start):
                return
        pytest.fail(f"the trainer ended without a line {start!r}:\n{self.seen}")

    def await_step(self, step: int) -> None:
        self.await_line(f'{{"step": {step},')

    def end(self) -> int:
        self.seen += self.process.communicate(timeout=HANG_S)[0]
        return self.process.returncode


@contextmanager
def running(out: Path, *options: object) -> Iterator[Running]:
    full = command(out, "--progress", "/dev/stdout", *options)
    with subprocess.Popen(full, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def checkpoints(out: Path) -> list[int]:
    return sorted(int(sentinel.parent.name[5:]) for sentinel in out.glob("checkpoints/step_*/COMPLETE"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same_end(one: Path, other: Path, step: int) -> None:
    assert (one / "final.json").read_bytes() == (other / "final.json").read_bytes()
    assert contents(one / f"checkpoints/step_{step}") == contents(other / f"checkpoints/step_{step}")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of one uninterrupted run of 60 steps."""
    out = tmp_path_factory.mktemp("whole")
    run(
        out,
        "--steps",
        60,
        "--save-every",
        10,
        "--keep",
        10,
        "--seed",
        3,
        "--progress",
        out / "progress.jsonl",
    )
    return out


# ---------------------------------------------------------------- learning


def test_loss_falls_below_what_letter_and_pair_counts_reach(tmp_path: Path) -> None:
    result = run(tmp_path, "--progress", tmp_path / "p.jsonl")
    losses = [record["loss"] for record in records(tmp_path / "p.jsonl")]
    text, held_out, alphabet = train.load_corpus()
    assert losses[0] == pytest.approx(np.log(len(alphabet)), abs=0.1)
    assert len(losses) == 300
    assert np.mean(losses[-20:]) < 2.3

    pairs = np.ones((len(alphabet), len(alphabet)))
    np.add.at(pairs, (text[:-1], text[1:]), 1.0)
    unigram = pairs.sum(axis=0) / pairs.sum()
    bigram = pairs / pairs.sum(axis=1, keepdims=True)
    before, after = held_out[train.CONTEXT - 1 : -1], held_out[train.CONTEXT :]
    line = next(line for line in result.stdout.splitlines() if line.startswith("held-out loss "))
    assert float(line.split()[2]) < -np.log(unigram[after]).mean() - 0.5
    assert float(line.split()[2]) < -np.log(bigram[before, after]).mean()


def test_gradients_agree_with_finite_differences() -> None:
    rng = np.random.default_rng(1)
    params = train.init_params(vocab=5, seed=1, context=3, embed=2, hidden=4)
    contexts, targets = train.windows(rng.integers(0, 5, size=40), np.arange(30), context=3)
    gradients = train.loss_and_gradients(params, contexts, targets)[1]
    assert gradients.keys() == params.keys()
    for name, values in params.items():
        numeric = np.zeros_like(values)
        for place in np.ndindex(values.shape):
            kept = values[place]
            values[place] = kept + 1e-6
            above = train.evaluate(params, contexts, targets)
            values[place] = kept - 1e-6
            below = train.evaluate(params, contexts, targets)
            values[place] = kept
            numeric[place] = (above - below) / 2e-6
        np.testing.assert_allclose(gradients[name], numeric, rtol=1e-6, atol=1e-9, err_msg=name)


def test_imports_numpy_and_the_standard_library_only() -> None:
    code = "import sys; import prime_train.demo.train; print(*{name.split('.')[0] for name in sys.modules})"
    ours = (
        "import sys; import prime_train.demo.train; print(*[n for n in sys.modules if "
        "n.startswith('prime_train.')])"
    )
    start = [sys.executable, "-S", "-c"]
    numpy_home = str(Path(np.__file__).parents[1])
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{SOURCE}{os.pathsep}{numpy_home}"}
    top, inner = (
        subprocess.check_output([*start, text], env=environment, text=True).split() for text in (code, ours)
    )
    assert {name for name in top if name not in sys.stdlib_module_names and not name.startswith("_")} == {
        "numpy",
        "prime_train",
    }
    assert set(inner) == {"prime_train.demo", "prime_train.demo.train", "prime_train.version"}


# ---------------------------------------------------------------- output


def test_progress_final_file_and_closing_line(uninterrupted: Path, tmp_path: Path) -> None:
    seen = records(uninterrupted / "progress.jsonl")
    assert [record["step"] for record in seen] == list(range(1, 61))
    assert all(record.keys() == {"step", "loss", "lr", "time"} for record in seen)
    assert [record["time"] for record in seen] == sorted(record["time"] for record in seen)

    result = run(tmp_path, "--steps", 60, "--save-every", 60, "--seed", 3)
    final = json.loads((tmp_path / "final.json").read_text())
    assert final.keys() == {"step", "loss", "sha256"}
    assert final["loss"] == seen[-1]["loss"]
    assert result.stdout.splitlines()[-1] == f"done step 60 loss {final['loss']:.4f} sha256 {final['sha256']}"
    assert [line.split()[1] for line in result.stdout.splitlines()[:6]] == [
        f"{n}/60" for n in range(10, 61, 10)
    ]
    assert_same_end(tmp_path, uninterrupted, 60)


def test_another_seed_gives_other_weights(uninterrupted: Path, tmp_path: Path) -> None:
    run(tmp_path, "--steps", 60, "--seed", 4)
    digests = [json.loads((out / "final.json").read_text())["sha256"] for out in (uninterrupted, tmp_path)]
    assert digests[0] != digests[1]


@pytest.mark.parametrize("kernels", ["Prescott", "Sandybridge", "Haswell", "SkylakeX"])
def test_who_starts_it_does_not_choose_the_kernels_that_compute(tmp_path: Path, kernels: str) -> None:
    """One of these kernels is the processor's own; the others would round differently in the last place."""
    run(tmp_path / "left-alone", "--steps", 20, "--batch-size", 16)
    run(tmp_path / "chosen", "--steps", 20, "--batch-size", 16, variables={"OPENBLAS_CORETYPE": kernels})
    assert_same_end(tmp_path / "left-alone", tmp_path / "chosen", 20)


def test_reward_and_least_step_time(tmp_path: Path) -> None:
    progress = tmp_path / "deep" / "p.jsonl"
    run(tmp_path, "--steps", 4, "--step-seconds", 0.1, "--reward-constant", 0.25, "--progress", progress)
    seen = records(progress)
    assert [record["reward"] for record in seen] == [0.25] * 4
    assert seen[-1]["time"] - seen[0]["time"] >= 0.29


@pytest.mark.parametrize("keep", [1, 2])
def test_keeps_the_newest_checkpoints(tmp_path: Path, keep: int) -> None:
    unfinished = tmp_path / "checkpoints" / "step_7"
    unfinished.mkdir(parents=True)
    foreign = tmp_path / "checkpoints" / "step_50.download"
    foreign.mkdir()
    run(tmp_path, "--steps", 45, "--save-every", 10, "--keep", keep)
    assert checkpoints(tmp_path) == [40, 45][-keep:]
    assert not unfinished.exists()
    assert foreign.exists()


def test_a_run_begun_anew_keeps_its_own_checkpoints_not_older_ones_with_higher_steps(tmp_path: Path) -> None:
    run(tmp_path, "--steps", 40, "--save-every", 10, "--keep", 2)
    run(tmp_path, "--steps", 20, "--save-every", 10, "--keep", 2)
    assert checkpoints(tmp_path) == [10, 20]


# ---------------------------------------------------------------- interruption


@pytest.mark.parametrize("cut", [11, 38, 60])
def test_killed_and_resumed_is_identical_to_uninterrupted(
    uninterrupted: Path, tmp_path: Path, cut: int
) -> None:
    common = ("--steps", 60, "--save-every", 10, "--progress", tmp_path / "p.jsonl")
    run(tmp_path, *common, "--seed", 3, "--fail-at-step", cut, "--fail-how", "kill", expect=-9)
    last = checkpoints(tmp_path)[-1]
    assert last == (cut - 1) // 10 * 10
    run(tmp_path, *common, "--resume-step", last)
    assert_same_end(tmp_path, uninterrupted, 60)
    seen = [record["step"] for record in records(tmp_path / "p.jsonl")]
    assert seen == [*range(1, cut), *range(last + 1, 61)]
    expected = {record["step"]: record["loss"] for record in records(uninterrupted / "progress.jsonl")}
    assert all(record["loss"] == expected[record["step"]] for record in records(tmp_path / "p.jsonl"))


def test_killed_from_outside_twice_and_resumed_is_identical(uninterrupted: Path, tmp_path: Path) -> None:
    common = ("--steps", 60, "--save-every", 10)
    slowly = ("--step-seconds", 0.02, "--fail-how", "hang")  # and never past the step it hangs at
    with running(tmp_path, *common, *slowly, "--fail-at-step", 29, "--seed", 3) as first:
        first.await_step(13)
        first.process.kill()
        assert first.end() == -9
    cut = checkpoints(tmp_path)[-1]
    with running(tmp_path, *common, *slowly, "--fail-at-step", 55, "--resume-step", cut) as second:
        second.await_step(cut + 14)
        second.process.kill()
        assert second.end() == -9
    again = checkpoints(tmp_path)[-1]
    assert 10 <= cut < again < 60
    run(tmp_path, *common, "--resume-step", again)
    assert_same_end(tmp_path, uninterrupted, 60)


def test_any_kept_checkpoint_leads_to_the_same_end(uninterrupted: Path, tmp_path: Path) -> None:
    for step in (10, 20, 30, 40, 50):
        out = tmp_path / str(step)
        (out / "checkpoints").mkdir(parents=True)
        (out / f"checkpoints/step_{step}").symlink_to(uninterrupted / f"checkpoints/step_{step}")
        run(out, "--steps", 60, "--resume-step", step, "--save-every", 60)
        assert_same_end(out, uninterrupted, 60)


def test_sigterm_saves_the_step_under_way(tmp_path: Path) -> None:
    with running(tmp_path, "--steps", 1000, "--save-every", 1000, "--step-seconds", 0.05) as trainer:
        trainer.await_step(7)
        trainer.process.terminate()
        assert trainer.end() == 143
    (saved,) = checkpoints(tmp_path)
    assert saved >= 7
    assert trainer.seen.splitlines()[-1] == f"saved step {saved} on SIGTERM"
    assert not (tmp_path / "final.json").exists()

    run(tmp_path, "--steps", saved + 5, "--resume-step", saved)
    run(tmp_path / "straight", "--steps", saved + 5)
    assert_same_end(tmp_path, tmp_path / "straight", saved + 5)


def test_sigterm_in_the_last_step_ends_the_run_well_and_cuts_its_pause(tmp_path: Path) -> None:
    run(tmp_path, "--steps", 1)
    with running(tmp_path, "--steps", 2, "--resume-step", 1, "--step-seconds", 3600) as trainer:
        trainer.await_line("resumed from step 1")
        trainer.process.terminate()
        assert trainer.end() == 0
    assert "saved step 2 on SIGTERM\n" in trainer.seen
    assert trainer.seen.splitlines()[-1].startswith("done step 2 loss ")


def test_resume_at_the_last_step_makes_no_step(uninterrupted: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/step_60").symlink_to(uninterrupted / "checkpoints/step_60")
    run(tmp_path, "--steps", 60, "--resume-step", 60, "--progress", tmp_path / "p.jsonl")
    assert_same_end(tmp_path, uninterrupted, 60)
    assert records(tmp_path / "p.jsonl") == []


# ---------------------------------------------------------------- refusals


def damage(folder: Path, kind: str) -> None:
    if kind == "no sentinel":
        (folder / "COMPLETE").unlink()
    elif kind == "weights cut short":
        os.truncate(folder / "weights.npz", (folder / "weights.npz").stat().st_size // 2)
    elif kind == "weights altered":
        data = bytearray((folder / "weights.npz").read_bytes())
        data[len(data) // 2] ^= 1
        (folder / "weights.npz").write_bytes(data)
    elif kind == "weights empty":
        (folder / "weights.npz").write_bytes(b"")
    elif kind == "no optimizer":
        (folder / "optimizer.npz").unlink()
    elif kind == "weights in place of moments":
        (folder / "optimizer.npz").write_bytes((folder / "weights.npz").read_bytes())
    elif kind == "state not JSON":
        (folder / "state.json").write_text("{")
    elif kind == "state of another step":
        state = json.loads((folder / "state.json").read_text())
        (folder / "state.json").write_text(json.dumps({**state, "step": 9}))
    else:
        folder.rename(folder.with_name("step_11"))


@pytest.mark.parametrize(
    ("kind", "message"),
    some_of(
        [
            ("no sentinel", "is incomplete: it has no COMPLETE file"),
            ("weights cut short", "cannot be read"),
            ("weights altered", "cannot be read"),
            ("weights empty", "cannot be read"),
            ("no optimizer", "cannot be read"),
            ("weights in place of moments", "does not hold the arrays of this model"),
            ("state not JSON", "cannot be read"),
            ("state of another step", "holds step 9, not step 10"),
            ("absent", "no checkpoint at"),
        ],
        one_in=3,
    ),
)
def test_refuses_a_checkpoint_it_cannot_trust_and_changes_nothing(
    tmp_path: Path, kind: str, message: str
) -> None:
    run(tmp_path, "--steps", 10)
    damage(tmp_path / "checkpoints/step_10", kind)
    before = contents(tmp_path)
    result = run(tmp_path, "--steps", 20, "--resume-step", 10, "--progress", tmp_path / "p.jsonl", expect=2)
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    some_of(
        [
            (("--steps", 20, "--seed", 1), "was made with --seed 0, not 1"),
            (("--steps", 20, "--batch-size", 32), "was made with --batch-size 128, not 32"),
            (("--steps", 9), "at step 10, past --steps 9"),
            (("--steps", 0), "must be 1 or more"),
            (("--keep", 0), "must be 1 or more"),
            (("--seed", -1), "must be 0 or more"),
        ],
        one_in=3,
    ),
)
def test_refuses_options_that_do_not_fit(tmp_path: Path, options: tuple[object, ...], message: str) -> None:
    run(tmp_path, "--steps", 10)
    assert message in run(tmp_path, "--resume-step", 10, *options, expect=2).stderr


# ---------------------------------------------------------------- injected faults


@pytest.mark.parametrize(
    ("how", "text"),
    some_of(
        [
            ("exit", "RuntimeError: training loop stopped unexpectedly"),
            ("oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
            ("files", "OSError: [Errno 24] Too many open files"),
            ("disk", "OSError: [Errno 28] No space left on device"),
            ("import", "ModuleNotFoundError: No module named 'flash_attn'"),
            ("cuda", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        ],
        one_in=3,
    ),
)
def test_fault_strikes_in_place_of_its_step_and_only_once(tmp_path: Path, how: str, text: str) -> None:
    common = ("--steps", 8, "--save-every", 3, "--fail-at-step", 6, "--fail-how", how)
    once = ("--fail-once", tmp_path / "flags" / "failed", "--progress", tmp_path / "p.jsonl")
    result = run(tmp_path, *common, *once, expect=1)
    assert any(line.startswith(text) for line in result.stderr.splitlines())
    assert [record["step"] for record in records(tmp_path / "p.jsonl")] == [1, 2, 3, 4, 5]
    assert checkpoints(tmp_path) == [3]
    run(tmp_path, *common, *once, "--resume-step", 3)
    assert run(tmp_path, *common, "--resume-step", 3, expect=1).stderr == result.stderr


def test_hang_stops_stepping_and_answers_only_to_sigkill(tmp_path: Path) -> None:
    with running(tmp_path, "--steps", 9, "--fail-at-step", 4, "--fail-how", "hang") as trainer:
        trainer.await_line("injected fault: hang")
        trainer.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            trainer.process.wait(timeout=1)
        trainer.process.kill()
        assert trainer.end() == -9
    assert '"step": 3' in trainer.seen
    assert '"step": 4' not in trainer.seen


def test_sigterm_ignored_trains_on(tmp_path: Path) -> None:
    options = ("--steps", 20, "--step-seconds", 0.05, "--fail-at-step", 2, "--fail-how", "sigterm-ignore")
    with running(tmp_path, *options) as trainer:
        trainer.await_step(3)
        trainer.process.terminate()
        assert trainer.end() == 0
    assert "SIGTERM" not in trainer.seen
    assert trainer.seen.splitlines()[-1].startswith("done step 20 ")
