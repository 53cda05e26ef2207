"""Where a step's time goes, from rows made by hand: one for each possible bottleneck, and for what must not
be concluded.
"""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from prime_train.status.profile import profile_file
from prime_train.trainers.prime_rl.profile.bottlenecks import Bottleneck, Bound, Certainty
from prime_train.trainers.prime_rl.profile.metric_keys import StepPart, thinned
from prime_train.trainers.prime_rl.profile.profile import STEPS_MIN, Profile, profile
from prime_train.trainers.prime_rl.profile.report import page
from prime_train.trainers.prime_rl.profile.trainer_steps import WARM_UP
from tests.trainers.prime_rl.prime_rl_rows import EMPTY, FULL, T0_S, Pace, rows, timing


def of(pace: Pace, *, steps: int = 40) -> Profile:
    return profile(rows(pace, range(1, steps + 1)))


def reported(found: Profile) -> tuple[Bottleneck, Bound, Certainty]:
    return found.diagnosis.bottleneck, found.diagnosis.bound, found.diagnosis.certainty


def gain(found: Profile, words: str) -> float | None:
    """Return the gain of the recommendation with these words."""
    (advice,) = [advice for advice in found.advice if words in advice.what]
    return advice.gain


# ---------------------------------------------------------------------------------------------------------
# what holds a run up


def test_full_engines_hold_the_trainer_up() -> None:
    found = of(Pace(wait=62, train=37, rollouts=timing(80, 10), engines=FULL))
    assert reported(found) == (Bottleneck.INFERENCE, Bound.THROUGHPUT, Certainty.SURE)
    assert gain(found, "twice the inference GPUs") == pytest.approx(2.0)
    assert any("the trainer waits 62 % of a step" in reason for reason in found.diagnosis.reasons)
    assert not [advice for advice in found.advice if "run more rollouts at once" in advice.what]


def test_slow_tools_hold_the_trainer_up_while_engines_are_empty() -> None:
    found = of(Pace(wait=62, train=37, rollouts=timing(10, 60, longest=400), engines=EMPTY))
    assert reported(found) == (Bottleneck.TOOLS, Bound.LATENCY, Certainty.SURE)
    assert gain(found, "run more rollouts at once") == pytest.approx(100 / 38)
    assert gain(found, "make tools and environments twice as fast") == pytest.approx(1 / (1 - 60 / 70 / 2))
    assert gain(found, "time limit") is None
    assert not [advice for advice in found.advice if "inference GPUs" in advice.what]


def test_tools_are_found_out_where_only_what_is_in_flight_is_reported() -> None:
    found = of(
        Pace(
            wait=62,
            train=37,
            engines=EMPTY | {"dispatcher/inflight/train": 100, "concurrency/max_inflight": 100},
        )
    )
    assert reported(found)[:2] == (Bottleneck.TOOLS, Bound.LATENCY)
    assert any("tools and environment take 80 % of a rollout" in reason for reason in found.diagnosis.reasons)
    assert "264 instead of 100" in found.advice[0].what


def test_too_few_rollouts_at_once_hold_the_trainer_up_where_the_model_takes_the_time() -> None:
    found = of(Pace(wait=62, train=37, rollouts=timing(60, 5), engines=EMPTY))
    assert reported(found) == (Bottleneck.CONCURRENCY, Bound.LATENCY, Certainty.SURE)


def test_rollouts_hold_the_trainer_up_and_without_further_figures_no_more_is_reported() -> None:
    found = of(Pace(wait=62, train=37))
    assert reported(found) == (Bottleneck.ROLLOUTS, Bound.UNKNOWN, Certainty.SURE)
    assert found.times is not None
    assert any("num_requests_running" in key for key in found.times.missing)
    assert any("timing/agent/model" in key for key in found.times.missing)
    assert gain(found, "find out what rollouts wait for") == pytest.approx(100 / 38)


def test_a_trainer_that_is_never_waited_for_by_itself_is_the_bottleneck_only_if_batches_wait() -> None:
    found = of(Pace(wait=1, train=60, held=30))
    assert reported(found) == (Bottleneck.TRAINER, Bound.THROUGHPUT, Certainty.SURE)
    assert gain(found, "twice the training GPUs") == pytest.approx(62 / 32)
    even = of(Pace(wait=1, train=60, held=1))
    assert reported(even) == (Bottleneck.BALANCED, Bound.THROUGHPUT, Certainty.SURE)
    assert even.advice == ()
    unknown = of(Pace(wait=1, train=60, held=None))
    assert reported(unknown) == (Bottleneck.TRAINER, Bound.THROUGHPUT, Certainty.LIKELY)


def test_saves_that_the_trainer_stands_still_for() -> None:
    found = of(Pace(wait=1, train=30, save=80, held=25))
    assert reported(found) == (Bottleneck.CHECKPOINTS, Bound.OVERHEAD, Certainty.SURE)
    assert found.times is not None
    assert (found.times.save_every, found.times.saves) == (5, 8)
    assert "saving takes 34 % of the time" in found.diagnosis.reasons
    assert "8 saves of 80.0 s, one in 5 steps" in found.diagnosis.reasons
    assert gain(found, "save every 35 steps instead of 5") == pytest.approx(
        48.84 / (48.84 - 1 - 16.84 * 6 / 7), rel=0.01
    )


def test_saves_behind_which_rollouts_hide_are_no_advice() -> None:
    """The trainer waits in any case: without saves it would wait longer."""
    found = of(Pace(wait=60, train=20, save=50, rollouts=timing(60, 5), engines=FULL))
    assert reported(found)[0] is Bottleneck.INFERENCE
    assert not [advice for advice in found.advice if "save" in advice.what]


def test_weights_that_take_long_to_send() -> None:
    found = of(Pace(wait=1, train=30, send=20, held=20))
    assert reported(found) == (Bottleneck.BROADCAST, Bound.OVERHEAD, Certainty.SURE)
    assert gain(found, "send weights") == pytest.approx(51 / 30)


def test_two_sides_that_wait_for_each_other_take_turns() -> None:
    found = of(Pace(wait=40, train=40, held=40))
    assert reported(found) == (Bottleneck.TURNS, Bound.LATENCY, Certainty.SURE)
    assert gain(found, "further ahead") == pytest.approx(81 / 41)


def test_rollouts_that_come_to_nothing_are_reported_with_what_they_cost() -> None:
    lost = timing(60, 5) | {"train/agg/all/agent/has_error/mean": 0.25, "off_policy/dropped": 32}
    found = of(Pace(wait=62, train=37, rollouts=lost, engines=FULL))
    losses = [advice for advice in found.advice if advice.what == "lose fewer rollouts"]
    assert [advice.gain for advice in losses] == [pytest.approx(4 / 3), pytest.approx(1.25)]


# ------------------------------------------------------------------------------------------------------
# figures behind it all


def test_the_seconds_of_the_two_speakers_are_not_mixed() -> None:
    """Both components write `time/step` for the same step, and either may write last."""
    lines = rows(Pace(wait=10, train=30, send=0), range(1, 31))
    late = [
        json.dumps(
            {
                "step": step,
                "time/step": 500.0,
                "time/save_ckpt": 400.0,
                "reward/all/mean": 0.5,
                "time/pack": 1.0,
            }
        )
        for step in range(1, 31)
    ]
    found = profile([*lines, *late])
    assert found.times is not None
    assert found.times.step.median_s == pytest.approx(40)
    assert found.times.parts[StepPart.SAVE].share == 0
    assert found.times.rollouts is not None
    assert found.times.rollouts.batch_s == pytest.approx(500)


def test_what_no_figure_accounts_for_is_reported_and_doubted() -> None:
    lines = []
    for step in range(1, 41):
        message = {"time/step": 20.0, "time/wait_for_batch": 1.0, "time/forward_backward": 19.0}
        lines.append(json.dumps({"step": step, "time": T0_S + 30 * step, **message}))
    found = profile(lines)
    assert found.times is not None
    assert found.times.parts[StepPart.OTHER].median_s == pytest.approx(10)
    assert found.diagnosis.certainty is Certainty.LIKELY
    assert any(
        "33 % of the time is not explained by any measurement" in doubt for doubt in found.diagnosis.doubts
    )


def test_only_the_last_steps_are_looked_at() -> None:
    before = rows(Pace(wait=62, train=37), range(1, 41))
    after = rows(Pace(wait=0.5, train=60, held=30), range(41, 81), start_s=T0_S + 40 * 100)
    assert profile([*before, *after], steps=30).diagnosis.bottleneck is Bottleneck.TRAINER
    assert profile([*before, *after], steps=70).diagnosis.certainty is Certainty.LIKELY
    assert any(
        "the bottleneck changed during the run" in doubt
        for doubt in profile([*before, *after], steps=70).diagnosis.doubts
    )


def test_the_first_steps_of_every_launch_are_left_out() -> None:
    """The second launch continues from the first one's checkpoint: the later steps of the first launch do not
    count any more.
    """
    first = rows(Pace(wait=1, train=10, held=9), range(1, 21))
    slow = rows(Pace(wait=500, train=300), range(11, 13), start_s=T0_S + 5000)
    again = rows(Pace(wait=1, train=10, held=9), range(13, 31), start_s=T0_S + 5000 + 2 * 801)
    found = profile([*first, *slow, *again])
    assert found.times is not None
    assert (found.times.first_step, found.times.last_step, found.times.steps) == (
        1 + WARM_UP,
        30,
        30 - 2 * WARM_UP,
    )
    assert found.times.step.p90_s == pytest.approx(12)


def test_a_pause_between_two_launches_is_no_part_of_a_step() -> None:
    first = rows(Pace(wait=1, train=10), range(1, 21))
    again = rows(Pace(wait=1, train=10), range(21, 41), start_s=T0_S + 90_000)
    found = profile([*first, *again])
    assert found.times is not None
    assert (found.times.steps, found.times.parts[StepPart.OTHER].share) == (36, 0)


def test_names_of_older_versions_are_read() -> None:
    old: dict[str, object] = {
        "timing/all/generation/mean": 5.0,
        "timing/all/scoring/mean": 45.0,
        "timing/all/total/mean": 50.0,
        "num_turns/all/mean": 1.0,
    }
    load: dict[str, object] = {
        "inference/agg/running_requests": 3.0,
        "inference/agg/waiting_requests": 0.0,
        "inference/agg/kv_cache_usage_mean": 0.05,
    }
    found = of(Pace(wait=62, train=37, rollouts=old, engines=load))
    assert reported(found)[0] is Bottleneck.TOOLS
    several_turns = of(Pace(wait=62, train=37, rollouts=old | {"num_turns/all/mean": 4.0}, engines=load))
    assert reported(several_turns)[0] is Bottleneck.ROLLOUTS


# ------------------------------------------------------------------------------------------------- what must
# not be concluded


def unknown(found: Profile) -> str:
    assert reported(found) == (Bottleneck.UNKNOWN, Bound.UNKNOWN, Certainty.UNKNOWN)
    assert found.advice == ()
    (why,) = found.diagnosis.doubts
    return why


@pytest.mark.parametrize("steps", [0, 1, WARM_UP + STEPS_MIN - 1])
def test_of_too_few_steps_nothing_is_concluded(steps: int) -> None:
    found = of(Pace(wait=62), steps=steps)
    assert (
        "the trainer's metrics do not contain" in unknown(found)
        if steps == 0
        else "too few" in unknown(found)
    )


def test_of_few_steps_it_is_not_sure() -> None:
    found = of(Pace(wait=62, train=37, rollouts=timing(60, 5), engines=FULL), steps=WARM_UP + STEPS_MIN)
    assert found.diagnosis.certainty is Certainty.LIKELY
    assert "only 5 steps" in found.diagnosis.doubts


def test_near_the_line_it_is_not_sure() -> None:
    found = of(Pace(wait=17, train=82, engines=FULL))
    assert found.diagnosis.certainty is Certainty.LIKELY
    assert any("near the threshold of 15 %" in doubt for doubt in found.diagnosis.doubts)


def of_long_waits(*, usual: float) -> Profile:
    """Return rows in which the trainer waits 400 s in every tenth step."""
    now_s, lines = T0_S, list[str]()
    for step in range(1, 51):
        pace = Pace(wait=400 if step % 10 == 0 else usual, train=30, rollouts=timing(80, 10), engines=FULL)
        lines += rows(pace, [step], start_s=now_s)
        now_s += pace.wait + pace.train + pace.send
    return profile(lines)


def test_a_few_long_waits_are_not_taken_for_a_trainer_that_always_waits() -> None:
    found = of_long_waits(usual=0.1)
    assert reported(found) == (Bottleneck.PAUSES, Bound.OVERHEAD, Certainty.LIKELY)
    assert (
        "5 of 48 waits are far longer than the others, and take 57 % of the time" in found.diagnosis.reasons
    )
    assert [advice.what for advice in found.advice] == [
        "evaluate less often, if evaluations are the long waits (orchestrator.eval.interval)"
    ]
    assert found.advice[0].gain == pytest.approx(72.76 / 31.1, rel=0.01)


def test_a_trainer_that_always_waits_and_a_few_times_longer_is_reported_both() -> None:
    found = of_long_waits(usual=60)
    assert reported(found)[0] is Bottleneck.INFERENCE
    assert gain(found, "evaluate less often") == pytest.approx(126.4 / 91, rel=0.01)


@pytest.mark.parametrize("key", ["time/wait_for_batch", "time/forward_backward"])
@pytest.mark.parametrize("value", [None, "12.5", float("nan"), float("inf"), -1.0, True, [1]])
def test_without_the_figures_everything_rests_on_nothing_is_concluded(key: str, value: object) -> None:
    lines = []
    for line in rows(Pace(wait=62), range(1, 41)):
        row = json.loads(line)
        lines.append(json.dumps(row | ({key: value} if key in row else {})))
    assert unknown(profile(lines)) == f"the trainer's metrics do not contain {key}"


def test_steps_that_took_no_time_are_no_steps() -> None:
    assert unknown(of(Pace(wait=0, train=0, send=0))) == "every step took 0 s"


GARBAGE = [
    "",
    "garbage",
    "{",
    "[1]",
    "null",
    '{"step": "x", "time/step": 1}',
    '{"step": 1e400}',
    '{"step": 3, "time/step": {}}',
    '{"step": -1}',
    "\x00",
]


def test_garbage_between_the_rows_changes_nothing() -> None:
    lines = rows(Pace(wait=62, train=37, rollouts=timing(10, 60), engines=EMPTY), range(1, 41))
    mixed = chain.from_iterable((GARBAGE[place % len(GARBAGE)], line) for place, line in enumerate(lines))
    found = profile(mixed)
    assert reported(found) == (Bottleneck.TOOLS, Bound.LATENCY, Certainty.SURE)
    assert found.unread > 0


@given(
    st.lists(
        st.one_of(
            st.text(max_size=40),
            st.sampled_from(rows(Pace(wait=62, rollouts=timing(1, 2), engines=EMPTY), range(1, 9))),
        ),
        max_size=60,
    )
)
def test_whatever_the_lines_are_there_is_an_answer(lines: Sequence[str]) -> None:
    profile(lines)


def test_a_thinned_file_tells_the_same() -> None:
    """The rows of inference servers have many hundreds of figures."""
    full = rows(Pace(wait=62, train=37, rollouts=timing(10, 60), engines=EMPTY), range(1, 41))
    fat = [
        json.dumps(json.loads(line) | {f"inference/server0.0/thing{n}": n for n in range(800)})
        for line in full
    ]
    thin = [line for line in map(thinned, [*GARBAGE, *fat]) if line]
    assert profile(thin) == profile(fat) == profile(full)
    assert sum(map(len, thin)) < sum(map(len, fat)) / 50
    assert thinned('{"step": 3, "loss/other": 1}') == ""


def test_the_longest_prompt_is_measured(tmp_path: Path) -> None:
    lengths = [{"train/agg/all/num_input_tokens/max": tokens} for tokens in (311.0, 874.0, 420.0)]
    lines = [json.dumps({"step": step, "time": T0_S, **one}) for step, one in enumerate(lengths, 1)]
    assert profile([*rows(Pace(), range(1, 41)), *lines]).prompt_tokens == 874
    assert profile(map(thinned, lines)).prompt_tokens == 874
    assert profile(rows(Pace(), range(1, 41))).prompt_tokens is None
    file = tmp_path / "metrics.jsonl"
    file.write_text("\n".join([*rows(Pace(), range(1, 41)), *lines]))
    assert "prompts take up to 874 tokens: trainer.prime_rl.prompt_tokens: 874" in shown(
        page(profile_file(file, steps=50))
    )


def shown(of: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(of)
    return captured.get()
