"""`prime-train page RUN`, as a user calls it."""

from pathlib import Path

import pytest

from prime_train.buckets.keys import METRICS_STREAM, stream_prefix
from prime_train.runs.run import Change, RunState
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.chromium import chromium
from tests.cli.inside import Inside


@pytest.fixture(name="inside")
def _inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def ended(inside: Inside) -> None:
    """Return a run that has succeeded; its machine left a log, its metrics, and a file with an invalid
    name.
    """
    inside.home.mkdir()
    store = SqliteStore(inside.home / "control.sqlite")
    spec = b.spec(trainer={"steps": 10, "progress": {"file": "progress.jsonl"}})
    run = b.run(RunState.SUCCEEDED, spec=spec, version=2)
    assert store.create(b.run())
    assert store.save(
        Change(
            run,
            lease=b.lease(run, version=1),
            lease_version=0,
            events=(b.history_event("it went <b>well</b>"),),
        )
    )
    store.close()
    kept = inside.home / "bucket" / "evidence" / b.RUN_ID / "e1"
    kept.mkdir(parents=True)
    (kept / "trainer.log").write_text("step 9\n\x1b]0;owned\x07<script>alert(1)</script>\n")
    (kept / "metrics.jsonl").write_text(
        "".join(f'{{"step": {n}, "loss": {1 / n}, "reward": {n / 10}}}\n' for n in range(1, 11))
    )


def test_a_run_is_written_to_one_file_with_its_log_and_its_curves(inside: Inside) -> None:
    ended(inside)
    assert inside.ok("page", "tiny").strip().endswith("tiny-1.html")
    shown = (inside.here / "tiny-1.html").read_text()
    for words in (
        "it went &lt;b&gt;well&lt;/b&gt;",
        "loss over steps",
        "reward over steps",
        "\\x1b]0;owned",
        "metrics.jsonl",
        "it has finished",
    ):
        assert words in shown
    assert "<script" not in shown
    assert inside.ok("page", "tiny-1", "--out", "made/here.html").strip().endswith("made/here.html")
    assert (inside.here / "made" / "here.html").exists()


def test_a_run_whose_machine_was_lost_without_evidence_has_the_curves_of_what_it_had_streamed(
    inside: Inside,
) -> None:
    ended(inside)
    (inside.home / "bucket" / "evidence" / b.RUN_ID / "e1" / "metrics.jsonl").unlink()
    streamed = stream_prefix(b.RUN_ID, 1, b.run(RunState.SUCCEEDED).attempts[0].identity, METRICS_STREAM)
    piece = inside.home / "bucket" / f"{streamed}000000001"
    piece.parent.mkdir(parents=True)
    rows = "".join(f"{n},{n}.5,{1 / n},,{1_700_000_000 + 2 * n}\n" for n in range(1, 11))
    piece.write_text(f"step,time_s,loss,reward,time\n{rows}")
    inside.ok("page", "tiny")
    shown = (inside.here / "tiny-1.html").read_text()
    assert "loss over steps" in shown
    assert streamed.removesuffix("/") in shown
    assert "a step takes 2.0 s (median)" in inside.ok("profile", "tiny")


def test_a_page_that_cannot_be_written_is_reported_with_what_to_do(inside: Inside) -> None:
    ended(inside)
    (inside.here / "file").write_text("")
    done = inside.run("page", "tiny", "--out", "file/below.html")
    assert done.returncode == 2
    assert "--out FILE" in done.stderr
    done = inside.run("page", "nobody")
    assert "there is no run nobody" in done.stderr


def test_a_bucket_that_is_away_leaves_a_page_that_says_so(inside: Inside) -> None:
    ended(inside)
    done = inside.run("page", "tiny", PRIME_TRAIN_BUCKET=(inside.here / "nowhere").as_uri())
    assert done.returncode == 0
    assert "not checked: the checkpoints: " in done.stderr
    assert "Not checked: the checkpoints: " in (inside.here / "tiny-1.html").read_text()


LONG = (
    "requesting local-spot (spot, $0.60/h) from local; $31 to the end: 48.0 h of training at $0.60/h, "
    + "x" * 80
)


def test_the_history_is_read_on_a_phone_without_scrolling_sideways(inside: Inside) -> None:
    ended(inside)
    inside.ok("page", "tiny")
    page = inside.here / "tiny-1.html"
    text = page.read_text()
    row = text[
        text.index(
            "<tr>", text.index("id=part-history") + text[text.index("id=part-history") :].index("<tbody>")
        ) :
    ]
    row = row[: row.index("</tr>") + 5]
    page.write_text(text.replace(row, row + row[: row.rindex("<td>")] + f"<td>{LONG}</td></tr>", 1))
    with chromium(inside.here) as browser:
        browser.open(page.as_uri(), width=390, scheme="light")
        assert browser.value("document.documentElement.scrollWidth") <= 390
        wide = (
            "[...document.querySelectorAll('#part-history .wide')].filter(t => t.scrollWidth > t.clientWidth "
            "+ 1).length"
        )
        assert browser.value(wide) == 0
        words = "[...document.querySelectorAll('#part-history td:last-child')].map(t => t.clientWidth)"
        assert min(browser.value(words)) > 300, (
            "a sentence has the width of the page, and not a column of a few letters"
        )


def test_the_page_is_legible_in_a_browser_light_and_dark_narrow_and_wide(inside: Inside) -> None:
    ended(inside)
    inside.ok("page", "tiny")
    with chromium(inside.here) as browser:
        for width in (400, 1400):
            for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 22, 30)")):
                browser.open((inside.here / "tiny-1.html").as_uri(), width=width, scheme=scheme)
                assert browser.value("getComputedStyle(document.body).backgroundColor") == ground
                assert browser.value("document.documentElement.scrollWidth") <= width
                assert (
                    browser.value(
                        "[...document.querySelectorAll('section')].filter(s => s.scrollWidth > s.clientWidth "
                        "+ 1).length"
                    )
                    == 0
                )
        # Its policy has kept nothing from it, and it has asked for nothing.
        assert browser.complaints() == []
        assert browser.value("performance.getEntriesByType('resource').length") == 0
