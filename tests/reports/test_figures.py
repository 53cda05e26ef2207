"""Numbers about a run never contradict each other: every output is parsed and compared with the others."""

import io
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from prime_train.alerts.card import card_of
from prime_train.github.pull_request import run_comment
from prime_train.pages.demo import demo_page_html
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.figures import figures
from prime_train.runs.headline import headline
from prime_train.runs.run import ACTIVE_STATES, Attempt, Orphan, RunState, Totals, with_heartbeat
from prime_train.runs.store import RunRecord
from prime_train.runs.verdict import Healthy
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.status.diagnosis.diagnosis_model import Facts
from prime_train.status.diagnosis.explanations import diagnosis_of
from prime_train.status.run_status import RunFacts, status_of
from prime_train.terminal.tables import all_runs, one_run
from prime_train.text.formatting import percents, span, spans, usd, usds
from tests import builders as b
from tests.core.given import PROPERTY

_UNIT_S = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
STATES = (
    RunState.QUEUED,
    RunState.STARTING,
    RunState.TRAINING,
    RunState.STOPPED,
    RunState.FAILED,
    RunState.SUCCEEDED,
)
CAUSES = (Cause.PREEMPTED, Cause.SILENT, Cause.NO_CAPACITY, Cause.STALLED)


@st.composite
def runs(draw: st.DrawFn) -> RunRecord:
    """Draw any run: attempts that overlap in steps, cheap and expensive machines, some not yet proven gone, a
    budget that may be tiny.
    """
    state = draw(
        st.sampled_from(
            [
                RunState.QUEUED,
                RunState.STARTING,
                RunState.TRAINING,
                RunState.STOPPED,
                RunState.FAILED,
                RunState.SUCCEEDED,
            ]
        )
    )
    count, at_s, best, durable = draw(st.integers(1, 4)), b.T0_S, 0, 0
    attempts = []
    for attempt in range(1, count + 1):
        live = attempt == count and state in ACTIVE_STATES
        resumed = draw(st.integers(0, durable))
        steps, lived_s = draw(st.integers(0, 300)), draw(st.integers(1, 90_000))
        marks = sorted(draw(st.lists(st.integers(0, lived_s), min_size=4, max_size=4)))
        offer = b.offer(usd_per_hour=draw(st.sampled_from([0.0, 0.001, 0.36, 1.77, 88.0])))
        made = Attempt(
            attempt,
            offer,
            at_s,
            pod_id=f"pod-{attempt}",
            resumed_step=resumed,
            best_step_before=best,
            last_step=resumed,
        )
        made = replace(
            made,
            first_heartbeat_s=at_s + marks[0],
            first_step_s=at_s + marks[1] if steps and state is not RunState.STARTING else None,
        )
        if not live:
            kept = draw(st.integers(resumed, resumed + steps))
            made = replace(
                made,
                last_step=resumed + steps,
                durable_step=kept,
                last_sign_s=at_s + marks[2],
                fenced_s=at_s + marks[3],
            )
            made = replace(
                made,
                cause=draw(st.sampled_from(CAUSES)),
                ended_s=draw(st.sampled_from([None, at_s + lived_s])),
            )
            best, durable = max(best, made.last_step), max(durable, kept)
        attempts.append(made)
        at_s += draw(st.integers(lived_s, lived_s + 500))
    folded = draw(
        st.sampled_from(
            [
                Totals(),
                Totals(attempts=3, paid_s=4000, useful_s=1500, recomputed_s=500, detection_s=2000, usd=0.07),
            ]
        )
    )
    orphan = Orphan("pod-x", "pt-tiny-1-e1", at_s, at_s, created_s=b.T0_S + 7, usd_per_hour=0.36)
    run = b.run(
        state,
        attempt=count,
        attempts=tuple(attempts),
        folded=folded,
        best_step=best,
        durable_step=durable,
        orphans=draw(st.sampled_from([(), (orphan,)])),
        spec=b.spec(
            budget={"usd": draw(st.sampled_from([0.0004, 0.003, 5.0, 1234.5]))}, trainer={"steps": 5000}
        ),
    )
    if state not in ACTIVE_STATES:
        return b.record(run, heartbeat=None)
    step = attempts[-1].resumed_step + draw(st.integers(0, 300))
    heartbeat = b.heartbeat(9, attempt=count, step=step, phase=Phase.TRAIN)
    return b.record(run, heartbeat=heartbeat, heartbeat_s=at_s, committed_step=draw(st.integers(0, step)))


def printed(what: object) -> str:
    text = io.StringIO()
    Console(file=text, width=400, highlight=False).print(what)
    return text.getvalue()


def dollars(text: str) -> list[Decimal]:
    return [Decimal(found.replace(",", "")) for found in re.findall(r"\$([\d,]+\.\d+)", text)]


def seconds(text: str) -> int:
    """Return the seconds from the output of `span`."""
    return (
        0
        if text.startswith("under")
        else sum(int(n) * _UNIT_S[unit] for n, unit in re.findall(r"(\d+) (d|h|min|s)\b", text))
    )


def row(text: str, name: str) -> str:
    """Return the line of a terminal table that begins with this name."""
    return next(line for line in text.splitlines() if re.match(rf"{name}\b", line))


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def terminal(record: RunRecord, now_s: int) -> str:
    return printed(one_run(status_of(RunFacts(record, now_s)), []))


NOW_S = st.integers(b.T0_S + 1, b.T0_S + 500_000)


@settings(PROPERTY, max_examples=30)
@given(record=runs(), after_s=st.integers(0, 50_000))
def test_what_is_read_on_one_terminal_sums_and_agrees(record: RunRecord, after_s: int) -> None:
    now_s = record.run.attempts[-1].launched_s + after_s + 100_000
    message = terminal(record, now_s)
    spent, budget = dollars(row(message, "spent"))
    assert budget > 0
    table = message.split("paid for")[1]
    parts = [
        cells(row(table, name))
        for name in ("provision", "restore", "useful", "recomputed", "detection", "teardown")
    ]
    complete = cells(row(table, "all"))
    assert sum(dollars(part[3])[0] for part in parts) == dollars(complete[-1])[0] == spent
    assert (
        sum(seconds(part[1]) for part in parts)
        == seconds(complete[1])
        == seconds(row(message, "spent").split(",", 1)[1])
    )
    assert sum(int(part[2].rstrip("%")) for part in parts) == 100
    rows = [
        cells(line)
        for line in message.split("attempt  ")[1].split("paid for")[0].splitlines()[1:]
        if "$" in line
    ]
    assert sum(dollars(" ".join(line).split("/h")[-1])[-1] for line in rows) == spent


@settings(PROPERTY, max_examples=30)
@given(record=runs(), after_s=st.integers(0, 50_000))
def test_all_faces_say_the_same_step_checkpoint_restarts_and_money(record: RunRecord, after_s: int) -> None:
    run, now_s = record.run, record.run.attempts[-1].launched_s + after_s + 100_000
    message, page, line = (
        terminal(record, now_s),
        run_comment(run, record.lease, now_s),
        headline(run, record.lease, now_s),
    )
    one = status_of(RunFacts(record, now_s))
    card = card_of(b.alert(kind=AlertKind.STOPPED), run, now_s, lease=record.lease)
    web = demo_page_html(with_heartbeat(run, record.lease), [], [])
    money = re.search(r"\$[\d,]+\.\d+ of \$[\d,]+\.\d+", row(message, "spent"))
    assert money is not None
    assert all(money[0] in text for text in (page, line, dict(card.facts)["Spent"], printed(all_runs([one]))))
    step = re.search(r"([\d,]+)/5,000", row(message, "step"))
    assert step is not None
    assert f"step {step[1]} of 5,000" in line
    assert f"| {step[1]} of 5,000" in page
    assert f"{one.step:,}" == step[1]
    durable = re.search(r"newest checkpoint: (?:step ([\d,]+)|none yet)", row(message, "step"))
    assert durable is not None
    assert (
        f"**Newest checkpoint in the bucket** | {f'step {durable[1]}' if durable[1] else 'none yet'}" in page
    )
    reached = re.search(r"step ([\d,]+) was reached before", row(message, "step"))
    furthest = int((reached or step)[1].replace(",", ""))
    assert furthest == one.best_step >= max(one.step, one.durable_step)
    assert f"<b>{one.best_step:,}</b>" in web
    restarts = re.match(r"restarts +(\d+|none)", row(message, "restarts"))
    assert restarts is not None
    count = 0 if restarts[1] == "none" else int(restarts[1])
    assert (f"{count} restart{'' if count == 1 else 's'}:" in line) == (count > 0)
    assert (f"**Restarts** | {count}:" in page) == (count > 0)
    assert count == one.attempts - (run.is_over or run.state in ACTIVE_STATES)


@settings(PROPERTY, max_examples=30)
@given(record=runs(), after_s=st.integers(0, 50_000))
def test_what_is_useful_while_an_attempt_runs_is_what_it_will_have_been(
    record: RunRecord, after_s: int
) -> None:
    """The ledger of the live run equals the ledger of the same run fenced at the same second."""
    now_s = record.run.attempts[-1].launched_s + after_s
    live = figures(record.run, record.lease, now_s)
    newest = live.run.attempts[-1]
    step = max(newest.last_step, newest.durable_step)
    fenced = (
        replace(newest, last_step=step, last_sign_s=now_s, fenced_s=now_s, ended_s=now_s)
        if newest.fenced_s is None
        else newest
    )
    ended = replace(record.run, attempts=(*record.run.attempts[:-1], fenced))
    assert figures(ended, record.lease, now_s).totals == live.totals


def test_the_share_that_is_useful_counts_the_steps_of_the_attempt_that_trains() -> None:
    """It resumed at step 100 of 120 that were reached, and has made 200 more: 20 of them again."""
    run = b.run(RunState.TRAINING, attempt=2, best_step=120, durable_step=100)
    second = replace(run.attempts[1], resumed_step=100, best_step_before=120, last_step=101)
    second = replace(second, first_heartbeat_s=second.launched_s, first_step_s=second.launched_s)
    record = b.record(
        replace(run, attempts=(replace(run.attempts[0], last_step=120), second)),
        heartbeat=b.heartbeat(9, attempt=2, step=300),
    )
    now = figures(record.run, record.lease, second.launched_s + 1000)
    assert (now.totals.useful_s, now.totals.recomputed_s) == (540 + 900, 100)


def test_a_run_that_resumed_far_back_is_not_reported_to_have_more_durable_than_it_has_made() -> None:
    run = b.run(
        RunState.TRAINING, attempt=2, best_step=130, durable_step=120, spec=b.spec(trainer={"steps": 400})
    )
    record = b.record(
        replace(run, attempts=(run.attempts[0], replace(run.attempts[1], last_step=1))),
        heartbeat=b.heartbeat(9, attempt=2, step=1),
    )
    message = row(terminal(record, b.T0_S + 2 * b.ATTEMPT_S), "step")
    assert "1/400 (step 130 was reached before), newest checkpoint: step 120" in message
    assert "of which" not in message


def test_a_run_that_failed_at_its_third_attempt_had_two_restarts() -> None:
    run = b.run(RunState.FAILED, attempt=3)
    assert figures(run, None, b.T0_S + 90_000).restarts == 2
    assert len(status_of(RunFacts(b.record(run), b.T0_S + 90_000)).restarts) == 2


def test_diagnose_and_status_say_the_same_step() -> None:
    run = b.run(RunState.TRAINING, attempt=1)
    record = b.record(run, heartbeat=b.heartbeat(9, step=77), committed_step=70, heartbeat_s=b.T0_S + 90)
    facts = Facts(record, b.T0_S + 100, Healthy(Phase.TRAIN, 77))
    assert facts.step == status_of(RunFacts(record, b.T0_S + 100)).step == 77
    assert any("step 77" in one.because for one in diagnosis_of(facts))


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        (0, "$0.00"),
        (0.003, "$0.0030"),
        (0.00002, "$0.000020"),
        (0.064, "$0.0640"),
        (1234.5, "$1,234.50"),
        (-2.5, "$-2.50"),
    ],
)
def test_no_amount_but_nothing_reads_as_nothing(amount: float, message: str) -> None:
    assert usd(amount) == message.replace("$-", "-$")


@PROPERTY
@given(
    parts=st.lists(st.integers(0, 400_000), min_size=1, max_size=8),
    price=st.sampled_from([0.0, 1e-7, 0.0001, 0.013]),
)
def test_parts_read_to_their_sum(parts: list[int], price: float) -> None:
    paid = [part * price for part in parts]
    assert sum(dollars(" ".join(usds(paid, sum(paid))))) == dollars(usd(sum(paid)))[0]
    assert sum(map(seconds, spans(parts, sum(parts)))) == seconds(span(sum(parts)))
    shares = percents(parts)
    assert set(shares) == {"-"} if not sum(parts) else sum(int(share.rstrip("%")) for share in shares) == 100
