"""Print the end of the demo: timeline, ledger, the hashes of the final weights and of those of an
uninterrupted run, and the path of the page.
"""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from prime_train.clock import wall_s
from prime_train.demo.ending import result_of, write_page
from prime_train.demo.stage import Stage
from prime_train.demo.story import Story
from prime_train.exit_codes import Exit
from prime_train.outputs.logs.log_tail import stored_log
from prime_train.runs.figures import figures
from prime_train.runs.run import RunState
from prime_train.terminal.tables import attempts, ledger_table, lines

LOG_LINES = 20
"""The number of lines of the trainer's log that are shown if the demo fails."""


def show_end(here: Stage, story: Story, console: Console, *, out: Path, killed: bool) -> Exit:
    """Print the results and write the page. Return OK only if the outcome is good."""
    run = story.run
    found = result_of(here, story, killed=killed)
    _print_tables(story, console)
    console.print(f"final weights\n  {found.weights or 'none'}", soft_wrap=True, highlight=False)
    console.print(f"uninterrupted run\n  {found.reference or 'none'}\n", soft_wrap=True, highlight=False)
    page = write_page(story, found, out)
    if run.state is not RunState.SUCCEEDED:
        name, text = stored_log(here.home.bucket(), run, LOG_LINES)
        console.print(
            f"--- {name or 'no log was saved'}\n{text}", markup=False, highlight=False, soft_wrap=True
        )
    for good, words in found.checks:
        console.print(
            Text.assemble(("yes  ", "bold green") if good else ("NO   ", "bold red"), words), soft_wrap=True
        )
    console.print(f"\nchart: {page.absolute()}", soft_wrap=True, highlight=False)
    return Exit.OK if found.is_good else Exit.FINDINGS


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
