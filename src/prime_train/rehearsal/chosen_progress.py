"""Which of the numbers that rise is the step of the run: the one that the checkpoints are numbered by."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prime_train.rehearsal.progress_lines import STDOUT, Series, Value, file_of
from prime_train.rehearsal.recording import median
from prime_train.rehearsal.saves import Save, SavesSeen

TOGETHER_S = 0.005
SLACK_S = 0.05
"""Seconds by which a line may have been read after the file that was written next."""


@dataclass(frozen=True)
class ProgressSeen:
    """The number that counts. `offset`: what is to be added to the number reported last before a save to get
    the number in its name; None if they were not compared, because the names have none. `agreed`: the number
    of saves at which it was so.
    """

    series: Series
    offset: int | None = None
    agreed: int = 0

    @property
    def is_matched(self) -> bool:
        return self.agreed > 0

    @property
    def first(self) -> int:
        """0 if the number n says that n + 1 are completed."""
        if self.series.counts == "step" and self.series.distance > 1 and self.offset == 1:
            return 0
        return self.series.first


def chosen(series: Sequence[Series], saves: SavesSeen) -> tuple[ProgressSeen | None, SavesSeen]:
    """Return the number that counts, None if none is found, and the saves with what their names count: epochs
    if these alone agree.
    """
    judged = [
        (_score(one, matched), number, matched)
        for number, one in enumerate(series)
        if not one.is_abbreviated
        and (matched := _matched(one, saves))
        and not _is_of_another_unit(matched, saves)
    ]
    if not judged:
        return None, saves
    best = max(judged, key=lambda row: (row[0], -row[1]))[2]
    if saves.counts and best.is_matched and best.series.counts != saves.counts:
        saves = counting(saves, best.series.counts)
    return best, saves


def by_names(saves: SavesSeen) -> ProgressSeen | None:
    """Return the numbers in the names of the saves themselves as what counts, for a script that reports
    nothing; None if their names have none.
    """
    values = tuple(
        Value(save.closed_s, at, save.number)
        for at, save in enumerate(saves.saves)
        if save.number is not None
    )
    if len(values) < 2:
        return None
    return ProgressSeen(Series("", BY_NAMES, values, counts=saves.counts, named=True))


BY_NAMES = "names"
"""The kind of a series that is in the names of checkpoints."""


def counting(saves: SavesSeen, counts: str) -> SavesSeen:
    """Return the saves with names that count steps, or epochs."""
    return replace(
        saves,
        counts=counts,
        pattern=saves.pattern.replace("{" + saves.counts + "}", "{" + counts + "}"),
        also=tuple(one.replace("{" + saves.counts + "}", "{" + counts + "}") for one in saves.also),
    )


def _matched(series: Series, saves: SavesSeen) -> ProgressSeen:
    """Return the series with how it agrees with the numbers of the saves."""
    if not saves.counts:
        return ProgressSeen(series)
    offsets = [found for save in saves.saves if (found := _offset(series, save)) is not None]
    if not offsets:
        return ProgressSeen(series)
    distance = series.distance
    usual = max(set(offsets), key=offsets.count)
    # A line each ten steps says of step 25 only 20.
    agreed = sum(0 <= one < max(2, distance) for one in offsets)
    if series.counts == "epoch":
        agreed = sum(one in (0, 1) for one in offsets)
    return ProgressSeen(series, usual, agreed if agreed >= len(offsets) - 1 else 0)


def _is_of_another_unit(seen: ProgressSeen, saves: SavesSeen) -> bool:
    """Return whether the number rises much faster or slower than those of the saves: it counts something else,
    such as samples, or epochs beside saves that are numbered by steps.
    """
    if seen.is_matched or not saves.counts or len(saves.saves) < 3:
        return False
    reported = [seen.series.last_before(save.begun_s) for save in saves.saves]
    rows = [
        (value.number, save.number)
        for value, save in zip(reported, saves.saves, strict=True)
        if value is not None and save.number is not None
    ]
    if len(rows) < 2:
        return False
    rise, named = rows[-1][0] - rows[0][0], rows[-1][1] - rows[0][1]
    return abs(rise - named) > 2 * seen.series.distance + named / 10


def slack_s(series: Series) -> float:
    """Return the seconds by which a line may seem later than a file that was written after it: never as much
    as passes from one line to the next.
    """
    apart = [b.at_s - a.at_s for a, b in itertools.pairwise(series.values)]
    # Several processes print one and the same at once.
    return min(SLACK_S, median([one for one in apart if one > TOGETHER_S]) / 3)


def _offset(series: Series, save: Save) -> int | None:
    before = series.last_before(save.begun_s + slack_s(series))
    return None if before is None or save.number is None else save.number - before.number


def _score(series: Series, seen: ProgressSeen) -> float:
    score = 4.0 if seen.is_matched else 0.0
    score += 0.5 if seen.offset in (0, 1) and seen.is_matched else 0.0
    score += 2.0 if series.named else 0.0
    score += 1.0 if series.loss else 0.0
    score -= 3.0 if series.is_mixed else 0.0
    score -= 0.5 if series.is_bar else 0.0
    score += 0.3 if file_of(series) == "" and series.stream == STDOUT else 0.0
    changes = len(set(series.numbers))
    # An epoch that is named in each of its lines has only begun; a line at its end says that it is over.
    if series.counts == "epoch" and not series.is_within_epoch:
        score -= 1.5 if len(series.numbers) > 1.5 * changes else 0.0
        score -= 0.0 if seen.is_matched else 1.0
    return score + min(changes, 200) / 400
