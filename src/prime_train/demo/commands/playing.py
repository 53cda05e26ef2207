"""Show the demo while it is played: as a live view, or as lines if the output is not a terminal."""

from rich.console import Console
from rich.live import Live
from rich.text import Text

from prime_train.demo.commands.view import view
from prime_train.demo.stage import Stage
from prime_train.demo.story import Story, play
from prime_train.spec.spec import RunSpec
from prime_train.terminal.history import history_line


def show_play(here: Stage, spec: RunSpec, console: Console, *, kill: bool) -> Story:
    """Play the demo to its end, showing it meanwhile, and return its story."""
    console.print(Text.assemble(("prime-train demo", "bold"), f"  run {here.run_id}, {spec.trainer.steps} steps"))
    if not console.is_terminal:
        return play(here, kill=kill, show=_Lines(console).show)
    store = here.home.store()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(story: Story) -> None:
            live.update(view(story.record, story.lines(), story.points, store.now_s()), refresh=True)

        return play(here, kill=kill, show=show)


class _Lines:
    """Prints a line for each event once."""

    def __init__(self, console: Console) -> None:
        self._console, self._printed, self._taken_printed = console, 0, False

    def show(self, story: Story) -> None:
        taken = [story.taken] if story.taken is not None and not self._taken_printed else []
        for line in [*taken, *story.history[self._printed :]]:
            text = history_line(line.at_s - story.run.created_s, line.attempt, line.kind, line.text)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        self._printed, self._taken_printed = len(story.history), story.taken is not None
