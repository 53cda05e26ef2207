"""Which number in a script's lines is its step, and that an agent with the config made of it reads it."""

import math
from collections.abc import Callable, Iterable

import pytest

from prime_train.rehearsal.chosen_progress import ProgressSeen, chosen
from prime_train.rehearsal.progress_lines import series_in
from prime_train.rehearsal.saves import SavesSeen
from prime_train.rehearsal.seen_saves import saves_seen
from prime_train.rehearsal.trial import progress_of, reports_in
from tests.rehearsal.recorded import Recorder, json_line, state

Lines = Callable[[int], Iterable[str]]
"""The lines that are printed at a step, the first of which is 1."""
STEPS, EVERY, BATCHES = 66, 20, 20


def loss(step: int) -> float:
    return 2 * math.exp(-step / 50)


def trained(lines: Lines, name: Callable[[int], str], *, stream: str = "stdout") -> Recorder:
    """Return the recording of steps of a tenth of a second, after each twentieth of which `name` is saved."""
    made = Recorder()
    for step in range(1, STEPS + 1):
        made.after(0.1)
        for line in lines(step):
            made.line(line, stream)
        made.after(0.01)
        if step % EVERY == 0:
            made.write(name(step), state(step))
    return made


def found_in(made: Recorder) -> tuple[ProgressSeen | None, SavesSeen]:
    return chosen(series_in(made.recording), saves_seen(made.recording))


def steps_read(made: Recorder) -> list[tuple[int, bool]]:
    """Return each step that an agent reads, with whether it reads a loss."""
    progress, saves = found_in(made)
    assert progress is not None
    rows = reports_in(
        made.recording.lines,
        progress_of(progress),
        stream=progress.series.stream,
        header=progress.series.header,
        epochs="epoch" in (saves.counts, progress.series.counts),
    )
    return [(row.step, row.loss is not None) for _, row in rows]


def bar(text: str, at: int, total: int) -> str:
    return f"{text}{100 * at // total:3d}%|{'#' * 3}| {at}/{total} [00:0{at % 10}<00:05, 10.0it/s]"


PLAIN: dict[str, Lines] = {
    "words": lambda step: [f"step {step} loss {loss(step):.4f}"],
    "from 0": lambda step: [f"iter {step - 1}: loss {loss(step):.4f}, time {100 + step % 7}.12ms, mfu 1.2%"],
    "a date, a time and places in front": lambda step: [
        f"2026-11-27 21:0{step % 10}:{step % 60:02d}.{step * 7 % 1000:03d} | INFO     | __main__:train:42 - "
        f"Step {step}/1000 | loss={loss(step):.4f} | lr=1.00e-04"
    ],
    "a short date": lambda step: [
        f"I1127 21:08:{step % 60:02d}.123456 12345 solver.cpp:200] Iteration {step}, loss = {loss(step):.5g}"
    ],
    "a dictionary": lambda step: [
        str({"loss": round(loss(step), 4), "step": step, "epoch": round(step / 30, 2)})
    ],
    "JSON": lambda step: [json_line(step=step, loss=loss(step), time=step * 0.1)],
    "brackets": lambda step: [f"[{step}/1000] loss: {loss(step):.3f}"],
    "colours": lambda step: [
        f"\x1b[32mstep\x1b[0m: \x1b[1m{step}\x1b[0m \x1b[33mloss\x1b[0m: {loss(step):.3f}"
    ],
    "many numbers": lambda step: [
        f"[11/27 21:08:{step % 60:02d} d2.utils.events]:  eta: 0:10:{60 - step % 60:02d}  iter: {step - 1}  "
        f"total_loss: {loss(step):.3f}  loss_cls: 0.31  time: 0.1  data_time: 0.01  lr: 0.0002  max_mem: 123M"
    ],
    "the loss before it": lambda step: [
        f"2026-11-27 21:08:{step % 60:02d} | INFO | train_inner | epoch 001:     {step} / 1000 "
        f"loss={loss(step):.3f}, ppl=12.3, wps=1234, ups=10, wpb=12, bsz=8, num_updates={step}, lr=0.0001"
    ],
    "tokens beside it": lambda step: [
        f"step {step} tokens {step * 4096} loss {loss(step):.3f} tok/s {40_000 + step}"
    ],
    "an epoch of its own": lambda step: [f"Epoch [1][{step}/1000]\tlr: 1.0e-02, loss: {loss(step):.4f}"],
}


@pytest.mark.parametrize("name", PLAIN)
def test_the_step_is_found_in_lines_with(name: str) -> None:
    made = trained(PLAIN[name], "ckpt_{}.pt".format)
    progress, saves = found_in(made)

    assert progress is not None
    assert (progress.agreed, saves.counts) == (3, "step")
    assert steps_read(made) == [(step, True) for step in range(1, STEPS + 1)]


def test_each_process_may_print_its_lines() -> None:
    made = trained(
        lambda step: [
            f"[rank{rank}]: [2026-11-27 21:08:0{step % 10},123] step={step}, lr=[0.1]" for rank in (0, 1)
        ],
        "ckpt_{}.pt".format,
    )
    progress, _ = found_in(made)

    assert [step for step, _ in steps_read(made)] == [step for step in range(1, STEPS + 1) for _ in (0, 1)]
    assert progress is not None
    assert progress.series.step_s == pytest.approx(0.11, abs=0.02)


@pytest.mark.parametrize("factor", [4, 64, 100, 512])
def test_a_step_may_count_samples_with_separators(factor: int) -> None:
    made = trained(
        lambda step: [f"| total_timesteps | {step * factor:,} |"],
        lambda step: f"rl_{step * factor}_steps.zip",
    )

    assert [step for step, _ in steps_read(made)] == [step * factor for step in range(1, STEPS + 1)]


def test_a_number_below_a_thousand_may_have_separators_later() -> None:
    made = trained(lambda step: [f"step {step:,} loss {loss(step):.3f}"], "ckpt_{}.pt".format)
    made.line("step 1,234 loss 0.1")

    assert steps_read(made)[-1] == (1234, True)


@pytest.mark.parametrize(
    ("training", "evaluation"),
    [("", ""), ("Train: ", "Eval: "), ("Training: ", "Validation: ")],
)
def test_bars_of_evaluations_are_not_that_of_the_training(training: str, evaluation: str) -> None:
    made = trained(
        lambda step: [
            bar(training, step, 200),
            *(bar(evaluation, at, 8) for at in range(1, 9) if step % EVERY == 0),
        ],
        "ckpt_{}.pt".format,
        stream="stderr",
    )

    assert [step for step, _ in steps_read(made)] == list(range(1, STEPS + 1))


EPOCHS: dict[str, tuple[Lines, Callable[[int], str], int]] = {
    "the end of each": (
        lambda step: [f"Epoch {step // 20}/50 - train loss: {loss(step):.4f} - acc: 0.5"] * (step % 20 == 0),
        lambda step: f"model_epoch_{step // 20}.pt",
        3,
    ),
    "the end of each, from 0": (
        lambda step: [f"epoch {step // 20 - 1} loss {loss(step):.4f}"] * (step % 20 == 0),
        lambda step: f"model_{step // 20 - 1}.pt",
        3,
    ),
    "batches in brackets": (
        lambda step: [
            f"Epoch: [{(step - 1) // 20}]  [{(step - 1) % 20:>2}/20]  eta: 0:00:10  lr: 0.0001  "
            f"loss: {loss(step):.4f} (1.0)"
        ],
        lambda step: f"checkpoint-{step // 20 - 1}.pth",
        4,
    ),
    "a word that is not epoch": (
        lambda step: [f"Train: {(step - 1) // 20} [{(step - 1) % 20:>4d}/20 (  0%)]  Loss: {loss(step):.3f}"],
        lambda step: f"checkpoint-{step // 20 - 1}.pth.tar",
        4,
    ),
    "a bar each": (
        lambda step: [bar(f"Epoch {1 + (step - 1) // 20}/50: ", (step - 1) % 20 + 1, 20)],
        lambda step: f"epoch_{step // 20}.pth",
        4,
    ),
}


@pytest.mark.parametrize("name", EPOCHS)
def test_epochs_are_counted_as_the_names_do(name: str) -> None:
    lines, saved, last = EPOCHS[name]
    made = trained(lines, saved)
    progress, saves = found_in(made)

    assert progress is not None
    assert (saves.counts, progress.series.counts, progress.agreed) == ("epoch", "epoch", 3)
    assert steps_read(made)[-1][0] == last


OTHERS: dict[str, Lines] = {
    "an abbreviated step": lambda step: [
        f"step:{step * 100 if step < 10 else f'{step / 10:.1f}K'} loss:{loss(step):.3f}"
    ],
    "samples beside names of steps": lambda step: [f"seen {step * 64} samples, loss {loss(step):.3f}"],
    "epochs beside names of steps": lambda step: [f"ep:{step // 2} loss:{loss(step):.3f}"],
    "a percentage": lambda step: [f"Training {step / 10:.1f}% done, loss {loss(step):.3f}"],
    "an evaluation": lambda step: [f"val loss {loss(step):.3f}"] * (step % 10 == 0),
    "nothing": lambda step: [],
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_number_that_the_names_do_not_count_is_no_step(name: str) -> None:
    made = trained(OTHERS[name], lambda step: f"ckpt_{step * 100}.pt")

    progress, saves = found_in(made)

    assert progress is None
    assert saves.numbers == [2000, 4000, 6000]


def test_an_abbreviated_step_is_known_as_one() -> None:
    made = trained(OTHERS["an abbreviated step"], lambda step: f"ckpt_{step * 100}.pt")

    assert [one.example for one in series_in(made.recording) if one.is_abbreviated]


def test_a_step_is_known_by_the_save_that_a_thread_began_at_it() -> None:
    made = Recorder()
    for step in range(1, STEPS + 1):
        made.after(0.1)
        made.line(f"step {step}")
        if step % EVERY == 0:
            made.begin(f"ckpt_{step}.pt")
        if step > EVERY and step % EVERY == 4:
            made.write(f"ckpt_{step - 4}.pt", state(step))

    progress, _ = found_in(made)

    assert progress is not None
    assert (progress.offset, progress.agreed) == (0, 3)


def test_the_lines_of_a_traceback_are_no_steps() -> None:
    made = Recorder()
    made.line("Traceback (most recent call last):", "stderr")
    for number in (120, 350, 470, 812):
        made.line(
            f'  File "/usr/lib/python3/site-packages/frame.py", line {number}, in __setitem__', "stderr"
        )
        made.line("    self._set_values(key, value)", "stderr")
    made.line("TypeError: Invalid value", "stderr")
    assert series_in(made.recording) == []
