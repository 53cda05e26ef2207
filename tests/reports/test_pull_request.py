"""The comment about a run, as a person reads it in each state."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from prime_train.github.pull_request import run_comment
from prime_train.outputs.results.comparison import PullResults, compared
from prime_train.outputs.results.comparison_texts import RequirementCheck, check_of
from prime_train.outputs.results.numbers import Number, ResultSource, RunResults, number
from prime_train.runs.headline import headline
from prime_train.runs.run import Attempt, DesiredState, Lease, Origin, Run, RunState, Totals
from prime_train.spec.causes import Cause
from prime_train.spec.requirements import parse_requirement
from tests import builders as b
from tests.reports.test_markdown import HOSTILE

S = RunState
NOW_S = b.T0_S + 3600
ORIGIN = Origin(
    "acme/models",
    "0123456789abcdef" * 2,
    "configs/tiny.yaml",
    "key",
    7,
    1,
    "ann",
    "https://github.com/acme/models/actions/runs/1",
)
SECRET = "hf_" + "a1B2c3D4" * 4


def run(state: RunState, *, attempt: int | None = None, **changes: Any) -> Run:
    fields: dict[str, Any] = {"origin": ORIGIN, "spec": b.spec(trainer={"steps": 1000}, budget={"usd": 5.0})}
    return b.run(state, attempt=attempt, **(fields | changes))


def page(of: Run, now_s: int = NOW_S, **lease: Any) -> str:
    return run_comment(of, b.lease(of, **lease), now_s)


def rows(text: str) -> dict[str, str]:
    """Return the value beside each name of the table at the top."""
    found = (
        re.match(r"\| (?:\*\*)?([^|*]+?)(?:\*\*)? \| (.*) \|$", line)
        for line in text.split("<details>", maxsplit=1)[0].splitlines()
    )
    return {match[1]: match[2] for match in found if match}


# ------------------------------------------------------------------------------------------------------------
# each state


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (S.QUEUED, "waits for a machine"),
        (S.LAUNCHING, "requests a machine"),
        (S.BOOTING, "waits for its machine to boot"),
        (S.STARTING, "sets its machine up"),
        (S.TRAINING, "is training"),
        (S.DRAINING, "saves, and gives back its machine"),
        (S.SUCCEEDED, "has succeeded"),
        (S.FAILED, "has failed"),
        (S.CANCELLED, "was cancelled"),
        (S.STOPPED, "has stopped and needs a person"),
    ],
)
def test_the_first_line_says_how_it_is(state: RunState, title: str) -> None:
    of = run(state)
    text = page(of)
    assert re.fullmatch(rf"### \S+ `{b.RUN_ID}` {title}", text.splitlines()[0])
    assert headline(of, b.lease(of), NOW_S).startswith(title)
    assert set(rows(text)) >= {"Step", "Newest checkpoint in the bucket", "Spent", "Restarts"}
    assert "`configs/tiny.yaml` at 0123456789ab, requested by ann" in text.splitlines()[-1]


def test_before_the_first_machine_there_is_nothing_but_what_is_requested() -> None:
    text = page(run(S.QUEUED), b.T0_S + 10)
    assert rows(text) == {
        "Step": "0 of 1,000 (0%)",
        "Newest checkpoint in the bucket": "none yet",
        "Spent": "$0.00 of $5.00 (0%), 0 s of paid time",
        "Restarts": "none",
    }
    assert "<details>" not in text
    assert "mermaid" not in text


def test_a_run_that_trains_says_how_far_it_is_what_it_cost_and_where() -> None:
    of = run(S.TRAINING, attempt=3, durable_step=200)
    now_s = b.T0_S + 2 * b.ATTEMPT_S + 1800
    text = page(
        of, now_s, heartbeat=b.heartbeat(9, attempt=3, step=250, loss=1.23456, reward=0.5), committed_step=240
    )
    assert rows(text) == {
        "Step": "250 of 1,000 (25%)",
        "Newest checkpoint in the bucket": "step 240",
        "Spent": "$0.31 of $5.00 (6%), 51 min 20 s of paid time",
        "Machine": "attempt 3: no GPU, local, spot, $0.36 an hour",
        "Restarts": "2: machine preempted ×2",
        "Trainer says": "loss 1.235, reward 0.5",
    }
    assert (
        headline(of, b.lease(of), now_s)
        == "is training, step 10 of 1,000 (1%), $0.31 of $5.00, 2 restarts: machine preempted ×2"
    )
    assert "| 3 | no GPU, local, spot, $0.36 an hour | 0 to 250 | $0.18 | goes on |" in text


def test_the_ledger_says_where_time_went_and_leaves_out_what_took_none() -> None:
    text = page(run(S.SUCCEEDED))
    assert re.findall(r"^\| ([a-z -]+|\*\*in all\*\*) \| (\S.*?) \|", text, re.MULTILINE) == [
        ("what for", "time"),
        ("useful training", "9 min"),
        ("waiting for machines to start", "20 s"),
        ("setup and restore", "40 s"),
        ("until a lost machine was detected", "20 s"),
        ("until machines were gone", "20 s"),
        ("**in all**", "**10 min 40 s**"),
        ("attempt", "machine"),
    ]


@pytest.mark.parametrize(
    ("of", "restarts"),
    [
        (run(S.SUCCEEDED), "none"),
        (run(S.FAILED), "none"),
        (run(S.STOPPED, attempt=2), "1: machine preempted"),
        (run(S.QUEUED, attempt=1), "1: machine preempted"),
        (run(S.TRAINING), "none"),
    ],
)
def test_the_end_of_a_run_is_no_restart(of: Run, restarts: str) -> None:
    assert rows(page(of))["Restarts"] == restarts
    assert ("restart" in headline(of, b.lease(of), NOW_S)) == (restarts != "none")


def results(of: Run, *numbers: Number, **changes: Any) -> RunResults:
    fields: dict[str, Any] = {
        "run": of.run_id,
        "attempt": 1,
        "state": of.state.value,
        "config": "tiny",
        "config_sha256": "a" * 64,
    }
    return RunResults(**(fields | {"ended_s": NOW_S - 7200, "step": 1000, "numbers": numbers} | changes))


def test_the_criteria_are_judged_by_the_results_and_unknown_without_them() -> None:
    wanted = b.spec(success={"loss_below": 3.2, "reward_above": 0.6, "tokens_per_s_min": 1000})
    of = run(S.SUCCEEDED, spec=wanted)
    made = PullResults(results(of, number("loss", 2.1, step=1000), number("reward", math.nan, step=1000)))
    heartbeat = b.heartbeat(9, step=1000, loss=9.1, reward=9.9)
    seen = rows(run_comment(of, b.lease(of, heartbeat=heartbeat), NOW_S, found=made))
    assert seen["Wanted: loss below 3.2"] == "met: 2.1 at step 1,000"
    assert seen["Wanted: reward above 0.6"] == "not met: the last value is not a finite number (step 1,000)"
    assert seen["Wanted: tokens per second at least 1000"] == "unknown: there is no such value in the metrics"
    unread = run_comment(of, b.lease(of), NOW_S, found=PullResults(unread="the bucket does not answer"))
    assert (
        rows(unread)["Wanted: loss below 3.2"]
        == "unknown: the results cannot be read: the bucket does not answer"
    )
    assert not [
        name
        for name in rows(page(run(S.TRAINING, spec=wanted), heartbeat=heartbeat))
        if name.startswith("Wanted")
    ]


PROPOSED = replace(ORIGIN, branch="change", base="main")
BASE = RunResults(
    run="base-1",
    attempt=1,
    state="succeeded",
    config="tiny",
    config_sha256="a" * 64,
    commit="b" * 40,
    ended_s=NOW_S - 7200,
    step=900,
    numbers=(number("loss", 2.0, step=900), number("acc", 0.9, ResultSource.AFTER, by="evaluate")),
)  # fmt: skip


def proposed(state: RunState, *required: str) -> Run:
    return run(state, spec=b.spec(require=list(required)), origin=PROPOSED)


def test_the_comment_compares_the_run_with_the_base_and_the_check_fails_for_what_is_not_met() -> None:
    of = proposed(S.SUCCEEDED, "loss <= base * 1.02", "acc >= 0.5")
    this = results(of, number("loss", 2.5, step=1000), number("acc", 0.95, ResultSource.AFTER, by="evaluate"))
    found = PullResults(this, compared([this], [BASE], list(map(parse_requirement, of.spec.require))))
    text = run_comment(of, b.lease(of), NOW_S, found=found)
    assert (
        f"Base: `base-1`, step 900 at commit `{'b' * 12}`, ended 2 h ago. One run is compared with one run"
        in text
    )
    assert "| `loss` | 2 | 2.5 | +0.5 (+25.0%) | `loss <= base * 1.02` (2.04) | ❌ not met |" in text
    assert "| `acc` | 0.9 | 0.95 | +0.05 (+5.6%) | `acc >= 0.5` | ✅ met |" in text
    assert check_of(of, found) == RequirementCheck(
        "failure", "not met: loss <= base * 1.02 (it is 2.5, the limit is 2.04)"
    )


def test_without_a_base_or_a_result_the_check_is_pending_and_says_so() -> None:
    of = proposed(S.SUCCEEDED, "loss <= base", "loss < 3")
    this = results(of, number("loss", 2.5, step=1000))
    alone = PullResults(this, compared([this], [], list(map(parse_requirement, of.spec.require))))
    assert "There is no base to compare with" in run_comment(of, b.lease(of), NOW_S, found=alone)
    assert check_of(of, alone) == RequirementCheck(
        "pending", "not known yet: loss <= base (there is no base run to compare with)"
    )
    assert check_of(of, PullResults()) == RequirementCheck("pending", "tiny-1 has ended without any result")
    assert check_of(proposed(S.TRAINING, "loss < 3"), PullResults()) == RequirementCheck(
        "pending", "tiny-1 has not ended"
    )
    unread = check_of(of, PullResults(unread="no answer"))
    assert unread == RequirementCheck("pending", "the results of tiny-1 cannot be read: no answer")


def test_a_run_that_is_not_on_a_pull_request_or_not_the_newest_or_requires_nothing_sets_no_check() -> None:
    assert check_of(run(S.SUCCEEDED, spec=b.spec(require=["loss < 3"])), PullResults()) is None
    assert check_of(proposed(S.SUCCEEDED), PullResults()) is None
    assert check_of(proposed(S.SUCCEEDED, "loss < 3"), PullResults(is_newest=False)) is None


def test_who_requested_a_stop_is_notified_that_it_is_heard_and_then_that_it_is_done() -> None:
    assert "> A stop is requested." in page(run(S.TRAINING, desired=DesiredState.STOP))
    ended = page(run(S.STOPPED, desired=DesiredState.STOP, why="stopped by the user; flushed"))
    assert "was stopped at the user's request" in ended.splitlines()[0]
    assert "> stopped by the user; flushed" in ended
    assert "needs a person" not in ended


def test_of_seventy_attempts_a_dozen_is_shown_and_the_rest_counted() -> None:
    many = run(S.TRAINING, attempt=70)
    many = replace(
        many, attempts=many.attempts[6:], folded=Totals(attempts=6, paid_s=3840, useful_s=3240, usd=0.38)
    )
    text = page(many, b.T0_S + 70 * b.ATTEMPT_S)
    assert rows(text)["Restarts"] == "69: machine preempted ×63, earlier ones ×6"
    assert "<summary>Attempts (70)</summary>" in text
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [*range(59, 71)]
    assert "… and 58 earlier ones" in text
    assert len(text) < 8000


# ------------------------------------------------------------------------------------------------------------
# odd and hostile


def test_without_a_number_of_steps_only_the_step_is_reported() -> None:
    of = run(S.TRAINING, spec=b.spec())
    assert rows(page(of))["Step"] == "10"
    assert "0 to 10" in page(of)


@pytest.mark.parametrize(
    ("loss", "message"),
    [(float("inf"), "loss inf"), (float("nan"), "loss nan"), (1e300, "loss 1e+300"), (-0.0, "loss -0")],
)
def test_a_loss_that_is_no_number_is_reported_as_it_is(loss: float, message: str) -> None:
    heartbeat = replace_loss(loss)
    assert rows(page(run(S.TRAINING), heartbeat=heartbeat))["Trainer says"] == message


def replace_loss(loss: float) -> Any:
    return b.heartbeat(9, step=20).model_copy(update={"loss": loss})


@pytest.mark.parametrize("usd", [0.01, 1e-9, 1e9])
def test_any_budget_has_its_share(usd: float) -> None:
    of = run(S.TRAINING, spec=b.spec(trainer={"steps": 1}, budget={"usd": usd}))
    text = page(of)
    assert rows(text)["Step"] == "10 of 1 (1000%)"
    assert "$0.36 of" in rows(text)["Spent"]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_machine_says_the_page_keeps_its_shape(text: str) -> None:
    good = run(S.FAILED, attempt=2)
    bad = replace(
        good,
        why=text,
        attempts=tuple(
            replace(a, detail=text, offer=replace(a.offer, gpu=text, gpu_count=1)) for a in good.attempts
        ),
    )
    assert bad.origin is not None
    bad = replace(bad, origin=replace(bad.origin, actor=text, config=text))
    kept, reported = (
        shape(run_comment(good, Lease(good.run_id), NOW_S)),
        shape(run_comment(bad, Lease(bad.run_id), NOW_S)),
    )
    assert reported == kept


def shape(text: str) -> list[str]:
    """Return how lines begin, how many cells each has, and all HTML."""
    made = []
    for line in text.splitlines():
        if line.startswith("> "):
            continue
        bare = re.sub(r"`[^`]*`|<code>[^<]*</code>|\\.", "", line)
        bars, tags = bare.count("|"), re.findall(r"<[^ ][^>]*>|<!--", bare)
        made.append(f"{line[:2] if not line.startswith('|') else '|'} {bars} {tags}")
    return [line for line in made if line.strip() != "0 []"]


def test_what_looks_like_a_secret_is_not_repeated() -> None:
    of = run(S.FAILED, why=f"login {SECRET} refused")
    attempt = replace(
        of.attempts[0],
        detail=f"`curl -H 'Authorization: {SECRET}'` ended with code 1",
        cause=Cause.SETUP_FAILED,
    )
    text = run_comment(replace(of, attempts=(attempt,)), Lease(of.run_id), NOW_S)
    assert SECRET not in text
    assert text.count("hidden") == 2
    wanted = replace(
        of,
        spec=b.spec(require=["loss < 3"], success={"loss_below": 3}),
        origin=proposed(S.FAILED).origin,
        why="",
    )
    unread = PullResults(unread=f"the key {SECRET} is not known to the bucket")
    assert SECRET not in run_comment(replace(wanted, attempts=()), Lease(of.run_id), NOW_S, found=unread)
    assert SECRET not in str(check_of(wanted, unread))


def test_a_run_that_is_tracked_has_a_link_to_where() -> None:
    of = run(S.TRAINING, spec=b.spec(wandb={"project": "a](b", "entity": "acme"}))
    assert "(https://wandb.ai/acme/a%5D%28b/runs/tiny-1)</sub>" in page(of)
    assert "wandb.ai" not in page(run(S.TRAINING))


def test_a_run_from_nowhere_has_a_page_too() -> None:
    text = run_comment(
        run(S.TRAINING, origin=None),
        Lease(b.RUN_ID),
        NOW_S,
        links={"log": "https://example.com/1", "none": ""},
    )
    assert text.splitlines()[-1].startswith("<sub>as of 1970-01-12")
    assert "[log](https://example.com/1)" in text
    assert "none]" not in text


def test_an_attempt_that_made_no_step_says_none() -> None:
    attempt: Attempt = b.new_attempt(
        1, S.QUEUED, first_step_s=None, last_step=0, cause=Cause.SETUP_FAILED, detail=""
    )
    assert "| none | $0.0640 | a setup command failed |" in page(run(S.FAILED, attempts=(attempt,)))
