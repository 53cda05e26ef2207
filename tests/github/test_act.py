"""act's results are parsed correctly, and what it hides is detected."""

from pathlib import Path

import pytest

from tests.github import scratch
from tests.github.act import VERSION, Act, Annotation, Step, limits_broken, needs_act
from tests.github.files import ROOT

TALKATIVE = """\
on: [push]
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
      - id: said
        run: |
          echo "plain"
          echo "::error file=configs/a.yaml,line=3,title=t%2C::bad %0A two"
          printf 'o<<EOF\\na\\nb\\nEOF\\n' >> "$GITHUB_OUTPUT"
          printf '# hi\\nthere\\n' >> "$GITHUB_STEP_SUMMARY"
          git rev-parse HEAD
  two:
    if: github.event_name == 'never'
    runs-on: ubuntu-latest
    steps: [{run: "true"}]
  three:
    runs-on: a-label-that-nobody-maps
    steps: [{run: "true"}]
"""


@needs_act
def test_a_step_is_reported_with_all_that_it_reported(act: Act, tmp_path: Path) -> None:
    repository = scratch.repository(tmp_path / "models", {".github/workflows/w.yml": TALKATIVE})
    ran = act.run(repository, "w.yml", "push", {})
    step = ran.step("one", "said")
    assert step.result == "success"
    assert step.text.startswith("plain\n")
    assert step.text.endswith(scratch.git(repository, "rev-parse", "HEAD") + "\n")
    assert step.outputs == {"o": "a\nb"}
    assert step.summary == "# hi\nthere\n"
    assert step.annotations == [Annotation("error", "bad \n two", "configs/a.yaml", 3, "t,")]


@needs_act
def test_a_job_that_did_not_run_is_not_among_those_that_did(act: Act, tmp_path: Path) -> None:
    repository = scratch.repository(tmp_path / "models", {".github/workflows/w.yml": TALKATIVE})
    ran = act.run(repository, "w.yml", "push", {})
    assert ran.code == 0
    assert ran.jobs == {"one": "success"}


@pytest.mark.parametrize(("count", "broken"), [(10, False), (11, True)])
def test_more_annotations_than_are_shown_are_noticed(count: int, broken: bool) -> None:
    step = Step(
        "job",
        "verb",
        annotations=[Annotation("warning", "m", "", None, "")] * count
        + [Annotation("error", "m", "", None, "")],
    )
    assert bool(list(limits_broken([step]))) is broken


@pytest.mark.parametrize(("length", "broken"), [(1 << 20, False), ((1 << 20) + 1, True)])
def test_a_summary_that_would_be_dropped_is_noticed(length: int, broken: bool) -> None:
    assert bool(list(limits_broken([Step("job", "verb", summary="x" * length)]))) is broken


def test_the_version_that_is_fetched_is_the_one_that_is_requested() -> None:
    assert f"github.com/nektos/act@{VERSION}\n" in (ROOT / "Makefile").read_text()
