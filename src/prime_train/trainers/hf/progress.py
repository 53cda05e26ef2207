"""Progress of the Trainer, parsed from its output.

Its lines of figures do not contain the step, but its progress bar does, and is drawn again right after each of them:

    {'loss': '2.105', 'grad_norm': '2.135', 'learning_rate': '4.994e-05', 'epoch': '0.01'}
      2%|▏         | 12/500 [00:03<02:05,  3.88it/s]

Other bars look the same, such as that of an evaluation, and have another total. So a bar counts only if its total is the number of steps:
the one of the config, or that of the bar below a line of figures of training. Versions before 5 do not quote the numbers.
"""

from prime_train.text.finite import number_of
from prime_train.trainers.log_lines import clean
from prime_train.trainers.patterns import matches
from prime_train.trainers.progress import Progress, names_not_finite, true_loss

_BAR = r"^\s*\d+%\|[^|]*\|\s*(?P<step>\d{1,12})/(?P<total>\d{1,12}) \["
_FIGURE = r"'(?P<name>loss|reward|grad_norm|learning_rate)': '?(?P<value>[-+.\w]+)'?"


class HfReader:
    """Reader of the Trainer's output. `steps` is the number of steps if it is known."""

    def __init__(self, steps: int | None) -> None:
        self._total = steps
        self._figures: dict[str, str] = {}

    def read(self, line: str) -> Progress | None:
        text = clean(line)
        if text.lstrip().startswith("{"):
            self._figures |= {found["name"]: found["value"] for found in matches(_FIGURE, text)}
            return None
        bar = next(matches(_BAR, text), None)
        return None if bar is None else self._drawn(int(bar["step"]), int(bar["total"]))

    def _drawn(self, step: int, total: int) -> Progress | None:
        if self._figures:
            self._total = total
        if total != self._total or step == 0:
            return None
        figures, self._figures = self._figures, {}
        loss, reward, norm = true_loss(figures.get("loss"), figures.get("grad_norm")), figures.get("reward"), figures.get("grad_norm")
        return Progress(
            step,
            number_of(loss),
            number_of(reward),
            not_finite=names_not_finite({**figures, "loss": loss}),
            grad_norm=number_of(norm),
            learning_rate=number_of(figures.get("learning_rate")),
        )
