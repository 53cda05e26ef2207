"""Judge the demo by its end: the final weights beside those of the uninterrupted training, and what should
have happened.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import point_of
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.checkpoints.restore import RestoreFailed, restore
from prime_train.demo.stage import REFERENCE_S_MAX, Stage
from prime_train.demo.story import Story
from prime_train.demo.train import CheckpointError, load_checkpoint, load_corpus
from prime_train.errors import PermanentError
from prime_train.pages.charts.timeline import timeline_svg
from prime_train.pages.demo import demo_page_html
from prime_train.runs.run import RunState
from prime_train.spec.checkpoint_names import CheckpointNames


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo. `weights` and `reference`: the hash of the final weights of the run and of the
    uninterrupted training; None if there are none. `checks`: what should be true at the end, and whether it
    is.
    """

    weights: str | None
    reference: str | None
    checks: tuple[tuple[bool, str], ...]

    @property
    def is_good(self) -> bool:
        return all(good for good, _ in self.checks)


def result_of(here: Stage, story: Story, *, killed: bool) -> DemoResult:
    """Return the outcome: whether the run succeeded, resumed from a durable step if its machine was preempted
    (`killed`), and has the same final weights as the uninterrupted training. Raises PermanentError if the
    last checkpoint cannot be read.
    """
    run = story.run
    weights = _final_weights(here.home.bucket(), run.run_id, run.spec.trainer.steps or 0)
    reference = _reference_weights(here)
    return DemoResult(weights, reference, tuple(_checks(story, weights, reference, killed=killed)))


def write_page(story: Story, found: DemoResult, out: Path) -> Path:
    """Write the page and the chart into the folder, and return the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    page = out / "demo.html"
    extra = {"final weights": found.weights or "", "uninterrupted run": found.reference or ""}
    page.write_text(
        demo_page_html(story.run, story.lines(), story.points, story.commits, extra), encoding="utf-8"
    )
    (out / "demo.svg").write_text(
        timeline_svg(story.run, story.lines(), story.points, story.commits), encoding="utf-8"
    )
    return page


def _final_weights(bucket: Bucket, run_id: str, step: int) -> str | None:
    """Return the hash of the weights in the last checkpoint in the bucket, loaded by the trainer's own code;
    None if there is none. Raises PermanentError if the checkpoint cannot be read.
    """
    manifest = next((m for m in read_manifests(bucket, run_id) if m.step == step), None)
    if manifest is None:
        return None
    with tempfile.TemporaryDirectory(prefix="prime-train-") as folder:
        try:
            restore(
                bucket,
                run_id,
                point_of(manifest),
                Path(folder) / "checkpoints",
                names=CheckpointNames("step_{step}"),
            )
            return load_checkpoint(Path(folder) / "checkpoints", step, len(load_corpus()[2])).digest()
        except (CheckpointError, RestoreFailed) as error:
            raise PermanentError(f"the last checkpoint in the bucket cannot be read: {error}") from error


def _reference_weights(here: Stage) -> str | None:
    """Return the hash of the weights of the uninterrupted training, or None if it did not finish in time."""
    try:
        here.reference.wait(REFERENCE_S_MAX)
        return str(json.loads((here.reference_folder / "out" / "final.json").read_text())["sha256"])
    except (subprocess.TimeoutExpired, OSError, ValueError, KeyError):
        return None


def _checks(
    story: Story, weights: str | None, reference: str | None, *, killed: bool
) -> list[tuple[bool, str]]:
    run = story.run
    checks = [(run.state is RunState.SUCCEEDED, f"the run succeeded: {run.why}")]
    if killed:
        checks.append((story.taken is not None, "its machine was preempted in the middle of the training"))
        later = [attempt.resumed_step for attempt in run.attempts[1:]]
        from_durable = bool(later) and min(later) >= story.committed_then > 0
        where = (
            f"it resumed from step {later[0]}; newest durable step at the preemption: {story.committed_then}"
            if later
            else "never"
        )
        checks.append((from_durable, f"it resumed on another machine, {where}"))
    same = weights is not None and weights == reference
    checks.append((same, "the final weights are identical to those of an uninterrupted run, bit for bit"))
    return checks
