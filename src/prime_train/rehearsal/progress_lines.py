"""Which of the script's lines say how far it is: in its output, in a progress bar, in a table or in lines of
JSON.

Lines that differ only in their numbers are one template. A number that rises from line to line by whole
steps, beside a word such as step, may be the step; what the checkpoints are numbered by shows which one is.
"""

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from prime_train.rehearsal.recording import OutputLine, Recording, median
from prime_train.trainers.log_lines import clean, unglued

VALUES_MIN = 3
SLOTS_MAX = 24
TEMPLATES_MAX = 500
STDOUT, STDERR = "stdout", "stderr"
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![A-Za-z0-9_.]*[A-Za-z_][A-Za-z0-9_]*=)"
)
_BAR_END = re.compile(r"\|\s{0,9}(?P<at>[\d,]{1,20})/(?P<total>[\d,]{1,20})\s{0,9}\[")
_PERCENT = re.compile(r"\d{1,3}%$")
_TRACEBACK = re.compile(r"""File ".{1,500}", line \d+""")
_STEP = re.compile(
    r"(?:^|[^a-z])(?:global[ _]?)?(?:step|iter|iteration|it|update|num_timesteps|total_timesteps)s?\W*"
    r"(?:\((?:train|training)\)\W*)?$",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(?:^|[^a-z])(?:epoch|ep)s?\W*$", re.IGNORECASE)
_NEVER = re.compile(
    r"(?:time|eta|elapsed|sec|seconds|ms|lr|rate|mem|memory|seed|speed|fps|params|tokens|rank|port|pid|version|"
    r"size|workers|gpu|cuda|best|patience|acc|accuracy|score)\W*$",
    re.IGNORECASE,
)
_LOSS = re.compile(r"(?:^|[^a-z])(?:train[_ /]?)?loss(?:_[a-z]{1,2})?\W*$", re.IGNORECASE)
_REWARD = re.compile(r"(?:reward|return|score)\W*$", re.IGNORECASE)
_KEYS = (
    "step",
    "global_step",
    "iteration",
    "iter",
    "iter_num",
    "it",
    "update",
    "num_updates",
    "total_timesteps",
    "_step",
)
_EPOCH_KEYS = ("epoch", "ep", "epochs")
_LOSS_KEYS = ("loss", "train_loss", "train/loss", "training_loss", "loss/train")
_REWARD_KEYS = ("reward", "mean_reward", "train/reward", "rollout/ep_rew_mean", "ep_rew_mean")


@dataclass(frozen=True)
class Value:
    """One number that was reported. `line`: which line it was in."""

    at_s: float
    line: int
    number: int
    loss: float | None = None


@dataclass(frozen=True)
class Series:
    """A number that is reported again and again. `kind`: regex, csv, jsonl. `pattern`: for regex, with the
    groups of a config. `key`: the name of the column for the others, `loss` that of the loss. `counts`: step
    or epoch. `total`: what it rises to, if the lines say so. `is_bar`: a progress bar. `batches`: for a
    number that starts again in each epoch.
    """

    stream: str
    kind: str
    values: tuple[Value, ...]
    pattern: str = ""
    key: str = ""
    loss: str = ""
    counts: str = "step"
    named: bool = False
    total: int | None = None
    is_bar: bool = False
    is_within_epoch: bool = False
    is_mixed: bool = False
    """Epochs are counted from 0 and their batches from 1, or the other way round, which no config can say."""
    example: str = ""
    lead: str = ""
    """The word before the number in lines of text."""
    header: str = ""
    """The first line of a table."""
    is_abbreviated: bool = False
    """From a thousand on, the lines say the number only roughly, such as 1.5K."""

    @property
    def numbers(self) -> list[int]:
        return [value.number for value in self.values]

    @property
    def distance(self) -> int:
        """How much the number rises from one line to the next, usually."""
        rises = [b - a for a, b in zip(self.numbers, self.numbers[1:], strict=False) if b > a]
        return int(median(rises)) or 1

    @property
    def first(self) -> int:
        """0 if the number n says that n + 1 are completed, as far as the lines show; else 1."""
        start = self.numbers[0]
        if start == 0:
            return 0
        return 0 if self.distance > 1 and start % self.distance == self.distance - 1 else 1

    @property
    def step_s(self) -> float:
        """Seconds for one step."""
        # Several processes may report the same step.
        first = list({value.number: value for value in reversed(self.values)}.values())[::-1]
        pairs = itertools.pairwise(first)
        return median([(b.at_s - a.at_s) / (b.number - a.number) for a, b in pairs if b.number > a.number])

    def last_before(self, at_s: float) -> Value | None:
        """Return what was reported last up to that time."""
        return next((value for value in reversed(self.values) if value.at_s <= at_s), None)

    def loss_at(self, number: int) -> float | None:
        return next((value.loss for value in self.values if value.number == number), None)


_BarRow = tuple[OutputLine, str, int, int]
"""A bar as it was drawn: its line, the text before it, where it was, and its total."""


@dataclass
class _Group:
    lines: list[tuple[OutputLine, list[tuple[int, int, str]], str]] = field(default_factory=list)


def series_in(recording: Recording) -> list[Series]:
    """Return every number that is reported again and again and rises, in no order."""
    streams: dict[str, list[OutputLine]] = {}
    for line in list(recording.lines):
        streams.setdefault(line.stream, []).append(line)
    found: list[Series] = []
    for stream, lines in streams.items():
        if stream.endswith((".csv", ".tsv")):
            found += _of_table(stream, lines)
            continue
        objects = list(_objects(lines))
        if len(objects) >= VALUES_MIN - 1:
            found += _of_objects(stream, objects)
        are_objects = {line.number for line, _ in objects}
        found += _of_text(stream, [line for line in lines if line.number not in are_objects])
    return [one for one in map(_in_order, _without_abbreviated(found)) if _rises(one)]


# ------------------------------------------------------------------------------------------------------------
# JSON and tables


def _objects(lines: Iterable[OutputLine]) -> Iterator[tuple[OutputLine, Mapping[str, object]]]:
    for line in lines:
        text = clean(line.text).strip()
        if text.startswith("{") and text.endswith("}"):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield line, value


def _of_objects(stream: str, rows: Sequence[tuple[OutputLine, Mapping[str, object]]]) -> Iterator[Series]:
    return _of_rows(stream, "jsonl", [(line, {str(k): v for k, v in row.items()}) for line, row in rows])


def _of_table(stream: str, lines: Sequence[OutputLine]) -> Iterator[Series]:
    header: list[str] = []
    first = ""
    rows: list[tuple[OutputLine, Mapping[str, object]]] = []
    for line in lines:
        try:
            cells = [cell.strip() for cell in next(csv.reader([clean(line.text)]), [])]
        except csv.Error:
            continue
        if not header or (len(cells) == len(header) and cells == header):
            header, first = cells, clean(line.text)
        elif len(cells) == len(header):
            rows.append((line, dict(zip(header, cells, strict=True))))
    return (replace(one, header=first) for one in _of_rows(stream, "csv", rows))


def _of_rows(
    stream: str, kind: str, rows: Sequence[tuple[OutputLine, Mapping[str, object]]]
) -> Iterator[Series]:
    names = dict.fromkeys(name for _, row in rows for name in row)
    loss = next(
        (name for name in (*_LOSS_KEYS, *(n for n in names if "loss" in n.lower())) if name in names), ""
    )
    for name in names:
        lowered = name.lower()
        is_epoch = lowered in _EPOCH_KEYS
        if not (lowered in _KEYS or is_epoch or lowered.endswith(("step", "iter", "iteration"))):
            continue
        values = tuple(
            Value(line.at_s, line.number, number, _float(row.get(loss)))
            for line, row in rows
            if (number := _integer(row.get(name))) is not None
        )
        file = "" if stream in (STDOUT, STDERR) else stream
        if values:
            yield Series(
                stream,
                kind,
                values,
                key=name,
                loss=loss,
                counts="epoch" if is_epoch else "step",
                named=True,
                example=clean(rows[-1][0].text) if not file else "",
            )


def _integer(value: object) -> int | None:
    number = _float(value)
    return int(number) if number is not None and number == int(number) and 0 <= number < 10**12 else None


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


# ------------------------------------------------------------------------------------------------------------
# lines of text


def _of_text(stream: str, lines: Sequence[OutputLine]) -> list[Series]:
    groups: dict[str, _Group] = {}
    bars: dict[tuple[str, int], list[_BarRow]] = {}
    for line in lines:
        for piece in unglued(line.text):
            text = clean(piece).strip()
            bar = _BAR_END.search(text)
            if bar is not None and "|" in text[: bar.start()]:
                lead = _PERCENT.sub("", text.partition("|")[0].strip()).strip()
                key = re.sub(r"\s+", " ", re.sub(r"[-+]?[\d.,]+(?:e[-+]?\d+)?", "#", lead))
                row = (line, lead, _whole(bar["at"]), _whole(bar["total"]))
                bars.setdefault((key, row[3]), []).append(row)
                continue
            numbers = [(found.start(), found.end(), found[0]) for found in _NUMBER.finditer(text)]
            if not numbers or len(text) > 1000 or _TRACEBACK.match(text):
                continue
            key = _shape(text, numbers)
            if key in groups or len(groups) < TEMPLATES_MAX:
                groups.setdefault(key, _Group()).lines.append((line, numbers, text))
    found: list[Series] = []
    for group in groups.values():
        if len(group.lines) >= VALUES_MIN - 1:
            found += _of_template(stream, group)
    for name, rows in bars.items():
        found += _of_bar(stream, rows, [other for other in bars if other != name])
    return found


def _whole(text: str) -> int:
    return int(text.replace(",", "").lstrip("+-") or 0)


def _shape(text: str, numbers: Sequence[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, _ in numbers:
        parts.append(re.sub(r"\s+", " ", text[at:start]))
        at = end
    return "#".join([*parts, re.sub(r"\s+", " ", text[at:])])


def _of_template(stream: str, group: _Group) -> Iterator[Series]:
    _, first_numbers, text = group.lines[0]
    slots = [
        (slot, text[first_numbers[slot - 1][1] if slot else 0 : start], text[end : end + 1])
        for slot, (start, end, _) in enumerate(first_numbers[:SLOTS_MAX])
    ]
    loss_slot = next((slot for slot, before, _ in slots if _LOSS.search(before)), None)
    epoch = next((slot for slot, before, _ in slots if _EPOCH.search(before)), _unnamed_epoch(group))
    for slot, before, after in slots:
        if slot == loss_slot or after == "%" or _NEVER.search(before):
            continue
        if after in _THOUSANDS and _STEP.search(before):
            yield _abbreviated(stream, group, slot, before)
            continue
        whole = all(
            "." not in numbers[slot][2] and "e" not in numbers[slot][2].lower()
            for _, numbers, _ in group.lines
        )
        if not whole:
            continue
        is_total = slot > 0 and before.strip() == "/"
        if is_total:
            continue
        values = tuple(
            Value(
                line.at_s,
                line.number,
                _whole(numbers[slot][2]),
                _float(numbers[loss_slot][2]) if loss_slot is not None else None,
            )
            for line, numbers, _ in group.lines
        )
        total = _total(group, slot)
        counts = "epoch" if slot == epoch else "step"
        named = bool(_STEP.search(before)) or slot == epoch
        pattern = _pattern(group, {slot: counts}, loss_slot)
        one = Series(
            stream, "regex", values, pattern, loss="loss" if loss_slot is not None else "", counts=counts,
            named=named, total=total, example=text, lead=_last_words(before).strip(),
        )  # fmt: skip
        is_batch = _starts_again(one.numbers) or not _STEP.search(before)
        if epoch is not None and slot != epoch and total is not None and is_batch:
            yield _over_epochs(one, group, slot, epoch, loss_slot)
        yield one


def _unnamed_epoch(group: _Group) -> int | None:
    """Return the place of a number that rises by one whenever a later one in the line starts again."""
    count = min(len(numbers) for _, numbers, _ in group.lines[:VALUES_MIN])
    rows = [
        [number[2] for number in numbers[:SLOTS_MAX]]
        for _, numbers, _ in group.lines
        if len(numbers) == count
    ]
    columns = [
        [int(text) for text in column] if all(text.isdigit() for text in column) else []
        for column in zip(*rows, strict=False)
    ]
    for slot, column in enumerate(columns):
        rises = [b - a for a, b in itertools.pairwise(column)]
        if set(rises) != {0, 1}:
            continue
        for other in columns[slot + 1 :]:
            falls = [b < a for a, b in itertools.pairwise(other)]
            if falls and falls == [rise == 1 for rise in rises]:
                return slot
    return None


_THOUSANDS = frozenset("kKmM")


def _abbreviated(stream: str, group: _Group, slot: int, before: str) -> Series:
    values = tuple(
        Value(line.at_s, line.number, round(1000 * (_float(numbers[slot][2]) or 0)))
        for line, numbers, _ in group.lines
    )
    return Series(
        stream, "regex", values, key=_last_words(before).strip(), named=True, is_abbreviated=True,
        example=group.lines[0][2],
    )  # fmt: skip


def _without_abbreviated(found: Sequence[Series]) -> list[Series]:
    """Return the series without those that go on as abbreviated ones."""
    names = {one.key for one in found if one.is_abbreviated}
    return [one for one in found if one.is_abbreviated or one.lead not in names]


def _total(group: _Group, slot: int) -> int | None:
    """Return the constant number after a slash behind this one."""
    totals = set()
    for _, numbers, text in group.lines:
        if slot + 1 >= len(numbers) or text[numbers[slot][1] : numbers[slot + 1][0]].strip() not in (
            "/",
            "of",
            "|",
        ):
            return None
        totals.add(numbers[slot + 1][2])
    text = totals.pop() if len(totals) == 1 else ""
    return _whole(text) if text.replace(",", "").isdigit() else None


def _starts_again(numbers: Sequence[int]) -> bool:
    return any(b < a for a, b in itertools.pairwise(numbers))


def _over_epochs(one: Series, group: _Group, slot: int, epoch: int, loss_slot: int | None) -> Series:
    """Return the series counted on over all epochs."""
    start = min(_whole(numbers[epoch][2]) for _, numbers, _ in group.lines)
    first = 0 if start == 0 else 1
    values = tuple(
        replace(value, number=(_whole(numbers[epoch][2]) - first) * (one.total or 1) + value.number)
        for value, (_, numbers, _) in zip(one.values, group.lines, strict=True)
    )
    pattern = _pattern(group, {epoch: "epoch", slot: "batch", slot + 1: "batches"}, loss_slot)
    is_mixed = (min(one.numbers) == 0) != (first == 0)
    return replace(
        one, values=values, pattern=pattern, named=True, total=None, is_within_epoch=True, is_mixed=is_mixed
    )


def _pattern(group: _Group, groups: Mapping[int, str], loss_slot: int | None) -> str:
    """Return a regular expression for the numbers that count in lines like these, each with the text right
    before it.
    """
    _, numbers, text = group.lines[0]
    wanted = dict(groups)
    if loss_slot is not None:
        wanted[loss_slot] = "loss"
    expression, past = r"^\s*" if 0 in wanted and not text[: numbers[0][0]].strip() else "", -1
    for slot in sorted(wanted):
        start, _, _ = numbers[slot]
        before = text[numbers[slot - 1][1] if slot else 0 : start]
        if past < 0:
            lead = before if slot == 0 and len(before) <= LEAD_CHARS_MAX else _last_words(before)
            expression += _literal(lead) if lead.strip() else ""
        else:
            expression += _literal(before) if past == slot - 1 else ".*?" + _literal(_last_words(before))
        if wanted[slot] == "loss":
            expression += r"(?P<loss>[-+\d.e]+|nan|inf)"
        else:
            expression += rf"(?P<{wanted[slot]}>{_digits(group, slot)})"
        past = slot
    return expression


LEAD_CHARS_MAX = 30


def _digits(group: _Group, slot: int) -> str:
    """Return the expression for the number at this place: from a thousand on, it may have separators."""
    texts = [numbers[slot][2] for _, numbers, _ in group.lines]
    if any("," in text for text in texts):
        return r"[\d,]+"
    total = _total(group, slot)
    is_plain = max(map(_whole, texts)) >= 1000 or (total is not None and "," not in _total_text(group, slot))
    is_list = any(re.match(r",\d", text[numbers[slot][1] :]) for _, numbers, text in group.lines)
    return r"\d+" if is_plain or is_list else r"\d[\d,]*"


def _total_text(group: _Group, slot: int) -> str:
    _, numbers, _ = group.lines[0]
    return numbers[slot + 1][2]


def _last_words(text: str) -> str:
    """Return the end of the text from its last word on, or all of it if it has none."""
    words = list(re.finditer(r"[A-Za-z_][\w./-]*", text))
    return text[words[-1].start() :] if words else text


def _literal(text: str) -> str:
    """Return the expression for this text, in which any number of spaces stands for spaces."""
    parts = [re.escape(part) for part in re.split(r"\s+", text)]
    # What follows a bracket or a sign may be padded.
    expression = r"\s+".join(parts).replace(r"\s+\s+", r"\s+")
    return re.sub(r"((?<!\\s)\\?[^\w\s\\])(?:\\s\+)?$", r"\1\\s*", expression)


def _of_bar(stream: str, rows: Sequence[_BarRow], others: Sequence[tuple[str, int]]) -> Iterator[Series]:
    values = tuple(Value(line.at_s, line.number, at) for line, _, at, _ in rows)
    total, pattern = rows[0][3], _bar_pattern(rows, others)
    if not pattern:
        return
    one = Series(
        stream, "regex", values, pattern, total=total, is_bar=True, example=clean(rows[-1][0].text)[:200]
    )
    if not _starts_again(one.numbers):
        yield one
        return
    epochs = [re.search(r"(?:^|[Ee]poch\W*)\s*(\d+)", text) for _, text, _, _ in rows]
    if not all(epochs):
        return
    numbers = [int(found[1]) for found in epochs if found is not None]
    first = 0 if min(numbers) == 0 else 1
    over = tuple(
        replace(value, number=(epoch - first) * total + value.number)
        for value, epoch in zip(values, numbers, strict=True)
    )
    in_epochs = tuple(replace(value, number=epoch) for value, epoch in zip(values, numbers, strict=True))
    lead = r"[Ee]poch\W*" if re.search("[Ee]poch", rows[0][1]) else r"^\s*"
    pattern = lead + r"(?P<epoch>\d+)[^|]*\|[^|]*\|\s*(?P<batch>\d+)/(?P<batches>\d+) \["
    yield replace(one, values=in_epochs, pattern=pattern, counts="epoch", total=None, named=True)
    is_mixed = (min(one.numbers) == 0) != (first == 0)
    yield replace(
        one, values=over, pattern=pattern, total=None, is_within_epoch=True, named=True, is_mixed=is_mixed
    )


def _bar_pattern(rows: Sequence[_BarRow], others: Sequence[tuple[str, int]]) -> str:
    """Return the expression for this bar and none of the others, such as those of evaluations; empty if there
    is none.
    """
    _, text, _, total = rows[0]
    if not others:
        return r"\|\s*(?P<step>\d+)/\d+ \["
    if total not in {other for _, other in others}:
        return rf"\|\s*(?P<step>\d+)/{total} \["
    word = re.search(r"[A-Za-z]\w*", text)
    if word is None or any(word[0] in name for name, _ in others):
        return ""
    return rf"{word[0]}[^|]*\|[^|]*\|\s*(?P<step>\d+)/\d+ \["


def _in_order(series: Series) -> Series:
    """Return the series without lines that come late, because another process is a line ahead."""
    falls = [a - b for a, b in itertools.pairwise(series.numbers) if b < a]
    if not falls or max(falls) > series.distance:
        return series
    highest = itertools.accumulate(series.numbers, max)
    values = tuple(value for value, most in zip(series.values, highest, strict=True) if value.number == most)
    return replace(series, values=values)


def _rises(series: Series) -> bool:
    numbers = series.numbers
    if len(numbers) < VALUES_MIN - 1 or len(set(numbers)) < VALUES_MIN - 1:
        return False
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    is_epoch = series.counts == "epoch"
    return all(step >= 0 for step in steps) and (
        is_epoch or sum(step > 0 for step in steps) * 3 >= len(steps)
    )


def file_of(series: Series) -> str:
    """Return the file that the series is in; empty for the script's output."""
    return "" if series.stream in (STDOUT, STDERR) else PurePosixPath(series.stream).as_posix()
