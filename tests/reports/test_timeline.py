"""The chart shows what a reader needs: every attempt, the loss, the fence, the restore, the checkpoints, and
the use of the money.
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from prime_train.pages.charts.timeline import timeline_svg
from prime_train.pages.charts.timeline_data import TAKEN, TAKEN_AT, Point
from prime_train.pages.demo import demo_page_html
from prime_train.runs.figures import PARTS
from prime_train.runs.run import HistoryEvent, Run, RunState
from prime_train.spec.causes import Cause
from tests.builders import T0_S, new_attempt, offer, run, spec

SVG = "{http://www.w3.org/2000/svg}"


def story() -> tuple[Run, list[HistoryEvent], list[Point], list[Point]]:
    """Return a run in which step 132 is reached, 125 is committed, the machine is lost, and another one takes
    over and ends at 300.
    """
    first = replace(
        new_attempt(1, RunState.TRAINING),
        launched_s=T0_S,
        first_heartbeat_s=T0_S + 2,
        first_step_s=T0_S + 4,
        last_sign_s=T0_S + 17,
        fenced_s=T0_S + 20,
        ended_s=T0_S + 20,
        cause=Cause.PREEMPTED,
        last_step=132,
        durable_step=125,
    )
    second = replace(
        first,
        number=2,
        offer=offer("local-on-demand", spot=False, usd_per_hour=1.8),
        launched_s=T0_S + 20,
        first_heartbeat_s=T0_S + 22,
        first_step_s=T0_S + 24,
        last_sign_s=T0_S + 42,
        fenced_s=T0_S + 42,
        ended_s=T0_S + 43,
        cause=Cause.FINISHED,
        resumed_step=125,
        best_step_before=132,
        last_step=300,
        durable_step=300,
    )
    made = Run(
        "tiny-1",
        spec(trainer={"steps": 300}),
        T0_S,
        RunState.SUCCEEDED,
        attempt=2,
        attempts=(first, second),
        best_step=300,
    )
    made = replace(made, durable_step=300, why="finished at step 300", ended_s=T0_S + 42)
    points = [Point(T0_S + 4 + n / 10, n, 1) for n in range(133)] + [
        Point(T0_S + 24 + n / 10, 125 + n, 2) for n in range(176)
    ]
    commits = [Point(T0_S + 4.4 + n / 10, n, 1) for n in range(25, 126, 25)] + [Point(T0_S + 26.9, 150, 2)]
    history = [
        HistoryEvent("tiny-1", T0_S, 1, "launching", "asking local for <local-spot>"),
        HistoryEvent(
            "tiny-1", T0_S + 17, 1, TAKEN, "the machine is gone", 132, {TAKEN_AT: str(T0_S + 17.25)}
        ),
        HistoryEvent("tiny-1", T0_S + 20, 1, "lost", "machine preempted", 132),
        HistoryEvent("tiny-1", T0_S + 42, 2, "succeeded", "finished at step 300", 300),
    ]
    return made, history, points, commits


def drawn() -> ET.Element:
    return ET.fromstring(timeline_svg(*story()))


def classed(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def words(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def test_each_attempt_has_a_line_of_its_own_colour() -> None:
    lines = classed(drawn(), "steps")
    assert [line.get("data-attempt") for line in lines] == ["1", "2"]
    assert len({line.get("stroke") for line in lines}) == 2
    assert "attempt 1 (spot, $0.36/h)" in words(drawn())
    assert "attempt 2 (on-demand, $1.80/h)" in words(drawn())


def test_steps_rise_from_left_to_right() -> None:
    for line in classed(drawn(), "steps"):
        places = [tuple(map(float, place.split(","))) for place in (line.get("points") or "").split()]
        assert len(places) > 50
        assert places == sorted(places)
        assert places[-1][1] < places[0][1]


def test_the_loss_the_fence_and_the_restore_are_marked_in_their_order() -> None:
    root = drawn()
    assert {
        "machine lost at step 132",
        "fenced: machine preempted",
        "restored: resumed from step 125",
    } <= set(words(root))
    marks = [float(mark.get("x1") or 0) for mark in classed(root, "mark")]
    assert marks == sorted(marks)
    assert len(set(marks)) == 3


def test_time_without_training_and_steps_done_again_are_shaded() -> None:
    root = drawn()
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "no training: 6.8 s" in titles  # taken at 17.25, training again at 24
    assert "repeated steps: 0.7 s" in titles  # 7 steps of a tenth of a second


def test_every_committed_checkpoint_is_a_dot_never_before_its_step() -> None:
    root = drawn()
    dots = [
        dot for dot in classed(root, "dot") if dot.get("r") == "5" and dot.find(f"{SVG}title") is not None
    ]
    assert len(dots) == 6
    first_line = classed(root, "steps")[0]
    start = float((first_line.get("points") or "").split(",", maxsplit=1)[0])
    assert all(float(dot.get("cx") or 0) > start for dot in dots)


def test_the_bar_splits_all_that_was_paid() -> None:
    root = drawn()
    pieces = {
        piece.get("data-part"): float(piece.get("width") or 0)
        for piece in root.iter()
        if piece.get("data-part")
    }
    assert set(pieces) <= set(PARTS)
    assert sum(pieces.values()) == pytest.approx(1160 - 72 - 24, abs=0.1)
    assert pieces["useful"] == max(pieces.values())
    assert "recomputed" in words(root)
    assert "43 s paid, $0.0135, 70% of it useful" in words(root)


def test_axes_say_what_they_measure() -> None:
    message = words(drawn())
    assert {"step", "time since the launch", "0 s", "40 s", "0", "300"} <= set(message)


def test_the_chart_needs_nothing_from_elsewhere() -> None:
    for text in (timeline_svg(*story()), demo_page_html(*story())):
        assert not re.findall(r"(?:href|src)=|url\(|<script|@import", text)
        assert "prefers-color-scheme: dark" in text


def test_the_page_has_tables_and_what_is_written_in_them_is_only_text() -> None:
    page = demo_page_html(*story(), extra={"final weights": "ab<cd"})
    assert "asking local for &lt;local-spot&gt;" in page
    assert "ab&lt;cd" in page
    assert all(title in page for title in ("Ledger", "Attempts", "Timeline", "succeeded"))
    assert "<local-spot>" not in page


def test_the_page_says_what_the_terminal_says() -> None:
    page = demo_page_html(*story())
    message = re.findall(r"<th[^>]*>([^<]*)</th>", page)
    assert message[:5] == ["paid for", "what it is", "time", "share", "dollars"]
    assert message[5:13] == [
        "attempt",
        "machine",
        "from step",
        "to step",
        "durable",
        "paid",
        "spent",
        "ended by",
    ]
    assert page.count("machine preempted") >= 2  # in the picture and in the table of attempts
    assert not {"preempted", "committed"} & set(re.findall(r">\s*([^<]*?)\s*<", page))


def test_a_table_that_is_wider_than_the_page_scrolls_by_itself() -> None:
    page = demo_page_html(*story())
    assert ".wide { overflow-x: auto; }" in page
    assert (
        page.count("<table>")
        == page.count("<div class=wide tabindex=0><table>")
        == page.count("</table></div>")
        == 4
    )
    assert re.search(r"<td class=kind>local-on-demand, on-demand, \$1.80/h</td>", page)


@pytest.mark.parametrize("state", list(RunState))
def test_a_run_in_any_state_has_a_chart(state: RunState) -> None:
    made = run(state) if state is not RunState.QUEUED else run(state, attempt=0)
    ET.fromstring(timeline_svg(made, [], []))
    assert made.run_id in demo_page_html(made, [], [])


def test_a_run_that_was_lost_many_times_is_still_readable() -> None:
    made, history, _, _ = story()
    one = made.attempts[0]
    many = tuple(
        replace(
            one,
            number=n,
            launched_s=T0_S + 30 * n,
            first_heartbeat_s=T0_S + 30 * n + 2,
            first_step_s=T0_S + 30 * n + 4,
            last_sign_s=T0_S + 30 * n + 20,
            fenced_s=T0_S + 30 * n + 24,
            ended_s=T0_S + 30 * n + 26,
        )
        for n in range(1, 61)
    )
    root = ET.fromstring(
        timeline_svg(
            replace(made, attempts=many, attempt=60, state=RunState.TRAINING, ended_s=None), history, []
        )
    )
    assert len(classed(root, "mark")) == 60
    assert 0 < len(classed(root, "halo")) < 60  # words only where they fit
    height = float((root.get("viewBox") or "").split()[-1])
    assert height < 720
