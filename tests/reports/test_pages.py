"""A run's page shows what is known, states what is not, and gives text from machines and other people no
effect.
"""

import math
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from prime_train.outputs.results.criteria import LOSS, Reported, judged
from prime_train.pages.charts.curves import Curve, curve_svg
from prime_train.pages.charts.metric_curves import METRICS, Metric, curves_of, heading, unreported
from prime_train.pages.document import Live
from prime_train.pages.run_page import CheckpointSummary, LogEnd, RunPage, RunSources, run_page_html
from prime_train.pages.runs_page import runs_page_html
from prime_train.runs.run import HistoryEvent, RunState
from prime_train.runs.store import RunRecord
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind
from prime_train.status.run_status import RunFacts, status_of
from prime_train.trainers.of_spec import Progress
from tests import builders as b

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e&<b>"
SECRET = "hf_" + "a1B2" * 6
NOW_S = b.T0_S + 700
LIVE = Live("tiny-1/events", 15)


class Reader(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._in = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._in, []).append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(
    record: RunRecord | None = None, sources: RunSources | None = None, *history: HistoryEvent
) -> RunPage:
    return RunPage(record if record is not None else b.record(), NOW_S, history, sources)


def everything(text: str = "fine") -> RunSources:
    """Return a page in which every text is `text`."""
    return RunSources(
        checkpoints=(CheckpointSummary(10, 1, 4, 2**20, b.T0_S + 100),),
        curves=(Curve("loss", ((1, 2.5), (2, 2.25))), Curve("reward", ((1, 0.0), (2, 0.5)))),
        curves_from=text,
        log=LogEnd(text, text),
        diagnoses=(Diagnosis(DiagnosisKind.WELL, text, text, text),),
        evidence=(text,),
        tracker_url=text,
        notes=(text,),
    )


def test_everything_that_is_known_is_on_the_page() -> None:
    shown = run_page_html(page(None, everything("the end of it"), b.history_event("asked for a machine")))
    titles = re.findall(r"<h2>([^<]+)</h2>", shown)
    wanted = [
        "Diagnosis",
        "Steps over time",
        heading(),
        "Attempts",
        "Time and money",
        "Checkpoints",
        "Log",
        "History",
        "Facts",
    ]
    assert titles == wanted
    for words in (
        "<b>10</b><span>step</span>",
        "loss over steps",
        "reward over steps",
        "1.0 MiB",
        "asked for a machine",
        "local-spot",
    ):
        assert words in shown
    assert not re.search(r"There (is|are) no", shown)


def test_what_there_is_none_of_is_reported_plainly() -> None:
    shown = run_page_html(page(b.record(b.run(RunState.QUEUED)), RunSources()))
    for words in (
        "No step has been completed yet.",
        "There are no metrics:",
        "No machine has been rented yet.",
        "Nothing has been paid yet.",
        "There is no checkpoint in the bucket.",
        "There is no log yet.",
        "Nothing has happened yet.",
    ):
        assert words in shown
    assert "The data is being fetched." in run_page_html(page())


def test_a_metric_is_one_row_from_which_its_curve_its_file_name_and_the_heading_follow() -> None:
    metrics = (*METRICS[:2], Metric("KL divergence", lambda made: made.others.get("kl")))
    (curve,) = curves_of(
        [
            Progress(1, others={"kl": 10.0}),
            Progress(2, others={"kl": 1e31}),
            Progress(1, others={"kl": 12.0}),
        ],
        metrics,
    )
    assert (curve.name, curve.slug, curve.points) == ("KL divergence", "kl_divergence", ((1, 12.0),))
    assert heading(metrics) == "Loss, reward and KL divergence"
    assert unreported([curve], metrics) == ["loss", "reward"]


def test_the_page_draws_every_metric_or_names_it_as_not_reported() -> None:
    for metric in METRICS:
        drawn = run_page_html(page(None, replace(everything(), curves=(Curve(metric.name, ((1, 2.0),)),))))
        others = ", ".join(other.name for other in METRICS if other is not metric)
        assert f"<figcaption>{metric.name}</figcaption>" in drawn
        assert f"Not reported: {others}." in drawn


@pytest.mark.parametrize("live", [None, LIVE])
def test_what_strangers_wrote_is_only_text(live: Live | None) -> None:
    run = replace(b.run(RunState.TRAINING), why=HOSTILE, commit=HOSTILE)
    run = replace(
        run,
        spec=run.spec.model_copy(
            update={"trainer": run.spec.trainer.model_copy(update={"command": HOSTILE})}
        ),
    )
    offer = replace(run.attempts[0].offer, offer_id=HOSTILE)
    run = replace(run, attempts=(replace(run.attempts[0], offer=offer, detail=HOSTILE),))
    shown = run_page_html(
        page(b.record(run), everything(HOSTILE), b.history_event(HOSTILE, kind=HOSTILE)), live
    )
    read = Reader(shown)
    assert len(read.named("script")) == (live is not None)
    assert not read.named("img")
    assert not [
        name
        for _, attributes in read.elements
        for name in attributes
        if name.startswith("on") or name == "style"
    ]
    assert not set("\x1b\x07\u202e") & set(shown)
    assert "\\x1b]52;c" in shown
    assert "&lt;script&gt;alert(1)" in shown


def test_what_looks_like_a_secret_is_not_on_the_page() -> None:
    shown = run_page_html(page(None, everything(f"export HF_TOKEN={SECRET}"), b.history_event(SECRET)))
    assert SECRET not in shown
    assert "HF_TOKEN=(hidden)" in shown


def test_a_file_needs_nothing_from_elsewhere_and_may_not_ask_for_it() -> None:
    shown = run_page_html(page(None, everything()))
    assert not re.findall(r"(?:href|src)=|url\(|<script|@import", shown)
    assert "prefers-color-scheme: dark" in shown
    policy = next(
        meta["content"]
        for meta in Reader(shown).named("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy


def test_every_style_and_script_is_named_by_its_hash() -> None:
    shown = run_page_html(page(None, everything()), LIVE)
    texts = re.findall(r"<style>(.*?)</style>", shown, re.DOTALL) + re.findall(
        r"<script>(.*?)</script>", shown, re.DOTALL
    )
    assert len(texts) >= 5
    for text in texts:
        assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in shown


def test_a_served_page_says_where_it_hears_of_changes() -> None:
    (document,) = Reader(run_page_html(page(), LIVE)).named("html")
    assert (document["data-events"], document["data-every-s"]) == ("tiny-1/events", "15")


def test_the_criteria_of_the_config_are_on_the_page_with_the_values_they_were_judged_by() -> None:
    wanted = b.spec(success={"loss_below": 3.2, "reward_above": 0.5}).success
    assert wanted is not None
    shown = run_page_html(
        page(sources=replace(everything(), criteria=judged(wanted, {LOSS: Reported(2.25, 1000)})))
    )
    assert "loss below 3.2</td><td>met: 2.25 at step 1,000" in shown
    assert "reward above 0.5</td><td>unknown: there is no such value in the metrics" in shown
    assert "by the last value reported" not in run_page_html(page(sources=everything()))


def test_the_list_links_every_run_and_says_how_it_stands() -> None:
    runs = [
        status_of(RunFacts(b.record(b.run(RunState.TRAINING, run_id=name)), NOW_S)) for name in ("one", "two")
    ]
    shown = runs_page_html(runs, NOW_S, Live("", 10), left_out=7)
    assert [link["href"] for link in Reader(shown).named("a")] == ["runs/one", "runs/two"]
    assert "2 runs, 2 still going, 7 older ones not listed" in shown
    assert "There are no runs yet." in runs_page_html([], NOW_S, Live("", 10))


@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [2.0, 2.0],
        [0.0, 0.0],
        [-1e30, 1e30],
        [1e-9, 2e-9],
        [float(n % 7) for n in range(20_000)],
        [5.0, 1e6, 5.1],
    ],
)
def test_a_curve_of_any_values_is_within_its_chart(values: list[float]) -> None:
    root = ET.fromstring(curve_svg(Curve("loss", tuple(enumerate(values, 1)))))
    width, height = (float(side) for side in (root.get("viewBox") or "").split()[2:])
    (line,) = (element for element in root.iter() if element.get("class") == "curve")
    places = [tuple(map(float, place.split(","))) for place in (line.get("points") or "").split()]
    assert 0 < len(places) <= 1000
    assert all(math.isfinite(x) and 0 <= x <= width and 0 <= y <= height for x, y in places)
    assert places == sorted(places, key=lambda place: place[0])


def test_a_peak_of_a_long_curve_is_not_lost() -> None:
    values = [1.0] * 20_000
    values[7_777] = 9.0
    root = ET.fromstring(curve_svg(Curve("loss", tuple(enumerate(values)))))
    (line,) = (element for element in root.iter() if element.get("class") == "curve")
    heights = {round(float(place.split(",")[1])) for place in (line.get("points") or "").split()}
    assert len(heights) == 2


def test_a_long_curve_has_its_trend_and_a_short_one_needs_none() -> None:
    noisy = tuple((n, 5 - n / 1000 + (-1) ** n) for n in range(4000))
    root = ET.fromstring(curve_svg(Curve("loss", noisy)))
    (trend,) = (element for element in root.iter() if element.get("class") == "trend")
    heights = [float(place.split(",")[1]) for place in (trend.get("points") or "").split()]
    assert heights == sorted(heights)  # downward on a screen, without the noise
    assert 'class="trend"' not in curve_svg(Curve("loss", noisy[:100]))
