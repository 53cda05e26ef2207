"""The end of the demo: timeline, ledger, the hash of the final weights beside that of an uninterrupted run, and the page with the chart."""

import json
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from prime_train.checkpoints.catalog import point_of
from prime_train.checkpoints.restore import RestoreFailed, restore
from prime_train.cli.demo.play import Story
from prime_train.cli.demo.stage import REFERENCE_S_MAX, Stage
from prime_train.cli.tables import attempts, ledger_table, lines
from prime_train.control_plane.reconcile import read_manifests
from prime_train.control_plane.wiring.home import wall_s
from prime_train.core.exit_codes import Exit
from prime_train.core.figures import figures
from prime_train.core.run import RunState
from prime_train.operations.run_logs.log_tail import kept_log
from prime_train.ports import Bucket, PermanentError
from prime_train.reports.charts import timeline_svg
from prime_train.reports.pages import page_html

LOG_LINES = 20
"""The number of lines of the trainer's log that are shown if the demo fails."""


def show_end(here: Stage, story: Story, console: Console, *, out: Path, killed: bool) -> Exit:
    """Print the results and write the page. Return OK only if the run succeeded, resumed from a durable step, and has the same final
    weights as the uninterrupted run."""
    run = story.run
    weights = final_weights(here.home.bucket(), run.run_id, run.spec.trainer.steps or 0)
    reference = reference_weights(here)
    checks = _checks(story, weights, reference, killed=killed)
    _print_tables(story, console)
    console.print(f"final weights\n  {weights or 'none'}", soft_wrap=True, highlight=False)
    console.print(f"uninterrupted run\n  {reference or 'none'}\n", soft_wrap=True, highlight=False)
    page = _write_page(story, out, {"final weights": weights or "", "uninterrupted run": reference or ""})
    if run.state is not RunState.SUCCEEDED:
        name, text = kept_log(here.home, run, LOG_LINES)
        console.print(f"--- {name or 'no log was kept'}\n{text}", markup=False, highlight=False, soft_wrap=True)
    for good, words in checks:
        console.print(Text.assemble(("yes  ", "bold green") if good else ("NO   ", "bold red"), words), soft_wrap=True)
    console.print(f"\npicture: {page.absolute()}", soft_wrap=True, highlight=False)
    return Exit.OK if all(good for good, _ in checks) else Exit.FINDINGS


def final_weights(bucket: Bucket, run_id: str, step: int) -> str | None:
    """Return the hash of the weights in the last checkpoint in the bucket, loaded by the trainer's own code; None if there is none. Raises
    PermanentError if the checkpoint cannot be read."""
    from prime_train.demo.train import CheckpointError, load_checkpoint, load_corpus

    manifest = next((m for m in read_manifests(bucket, run_id) if m.step == step), None)
    if manifest is None:
        return None
    with tempfile.TemporaryDirectory(prefix="prime-train-") as folder:
        try:
            restore(bucket, run_id, point_of(manifest), Path(folder) / "checkpoints", pattern="step_{step}")
            return load_checkpoint(Path(folder) / "checkpoints", step, len(load_corpus()[2])).digest()
        except (CheckpointError, RestoreFailed) as error:
            raise PermanentError(f"the last checkpoint in the bucket cannot be read: {error}") from error


def reference_weights(here: Stage) -> str | None:
    """Return the hash of the weights of the uninterrupted training, or None if it did not finish in time."""
    try:
        here.reference.wait(REFERENCE_S_MAX)
        return str(json.loads((here.reference_folder / "out" / "final.json").read_text())["sha256"])
    except (subprocess.TimeoutExpired, OSError, ValueError, KeyError):
        return None


def _checks(story: Story, weights: str | None, reference: str | None, *, killed: bool) -> list[tuple[bool, str]]:
    run = story.run
    checks = [(run.state is RunState.SUCCEEDED, f"the run succeeded: {run.why}")]
    if killed:
        checks.append((story.taken is not None, "its machine was taken away in mid-training"))
        later = [attempt.resumed_step for attempt in run.attempts[1:]]
        from_durable = bool(later) and min(later) >= story.committed_then > 0
        where = f"from step {later[0]}; newest durable step at that time: {story.committed_then}" if later else "never"
        checks.append((from_durable, f"it went on on another machine, {where}"))
    same = weights is not None and weights == reference
    checks.append((same, "the final weights are those of an uninterrupted run, bit for bit"))
    return checks


def _print_tables(story: Story, console: Console) -> None:
    run = story.run
    now = figures(run, None, wall_s())
    for title, table in (
        ("Timeline", lines(story.lines(), run.created_s)),
        ("Attempts", attempts(now)),
        ("Ledger", ledger_table(now)),
    ):
        console.print(Text(f"\n{title}", style="bold"))
        console.print(table)
    console.print()


def _write_page(story: Story, out: Path, extra: dict[str, str]) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    page = out / "demo.html"
    page.write_text(page_html(story.run, story.lines(), story.points, story.commits, extra), encoding="utf-8")
    (out / "demo.svg").write_text(timeline_svg(story.run, story.lines(), story.points, story.commits), encoding="utf-8")
    return page
