"""The terminal output of a profile: a bar for each part of the step, then the bottleneck, the reasons and
what to change.
"""

from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.status.profile import StepProfile
from prime_train.trainers.prime_rl.profile.bottlenecks import Bound, Certainty, Critical, percent, seconds
from prime_train.trainers.prime_rl.profile.metric_keys import StepPart
from prime_train.trainers.prime_rl.profile.profile import Profile
from prime_train.trainers.prime_rl.profile.recommendations import Recommendation
from prime_train.trainers.prime_rl.profile.rollouts import Engines, Rollouts
from prime_train.trainers.prime_rl.profile.times import Times

BAR_MIN, BAR_MAX = 10, 40
GAP = 2
UNREAD_MIN = 3
"""Minimum number of unreadable lines that is reported. One line may be cut at either end of the file."""

NAMES = {
    StepPart.WAIT: "wait for batch",
    StepPart.LOAD: "load batch",
    StepPart.TRAIN: "train",
    StepPart.BROADCAST: "send weights",
    StepPart.SAVE: "save",
    StepPart.OTHER: "unaccounted",
}
_COLOURS = {
    StepPart.WAIT: "yellow",
    StepPart.TRAIN: "green",
    StepPart.BROADCAST: "magenta",
    StepPart.SAVE: "blue",
}
_CERTAINTY = {
    Certainty.SURE: "sure",
    Certainty.LIKELY: "likely, but not certain",
    Certainty.UNKNOWN: "no conclusion is possible",
}
_BOUND = {
    Bound.LATENCY: "latency-bound: more machines of the same kind would not help",
    Bound.THROUGHPUT: "throughput-bound: it computes without pauses",
    Bound.OVERHEAD: "neither latency- nor throughput-bound: time is spent on other things than training",
    Bound.UNKNOWN: "it is unknown whether it is latency- or throughput-bound",
}


def page(of: StepProfile) -> RenderableType:
    found = of.profile
    parts: list[RenderableType] = [_head(found, of.name, of.source)]
    if found.times is not None:
        parts += [Text(), _Bars(found.times), *_side_notes(found.times)]
    parts += [Text(), _diagnosis(found)]
    if found.advice:
        parts += [
            Text(),
            Text("what to change", style="bold"),
            *(_advice(place, one) for place, one in enumerate(found.advice, start=1)),
        ]
    if found.times is not None and found.times.missing:
        parts += [Text(), _listed("missing metrics", [f"{key}" for key in found.times.missing])]
    return Group(*parts)


def record(of: StepProfile) -> dict[str, object]:
    """Return the complete profile for JSON output."""
    values = asdict(of.profile)
    values["diagnosis"]["title"] = of.profile.diagnosis.title
    return {"run": of.name, "source": of.source, **values}


def _head(found: Profile, name: str, source: str) -> RenderableType:
    lines = [Text.assemble((name, "bold"), f", from {source}" if source != name else "")]
    times = found.times
    if times is not None:
        lines.append(Text(f"steps {times.first_step:,} to {times.last_step:,}: {times.steps} steps"))
        lines.append(
            Text(
                f"a step takes {seconds(times.step.median_s)} (median), {seconds(times.step.p90_s)} at the "
                "slow end (p90)"
            )
        )
    if found.prompt_tokens:
        lines.append(
            Text(
                f"prompts take up to {found.prompt_tokens:,} tokens: trainer.prime_rl.prompt_tokens: "
                f"{found.prompt_tokens}"
            )
        )
    if found.unread >= UNREAD_MIN:
        lines.append(Text(f"{found.unread} lines could not be read", style="yellow"))
    return Group(*lines)


class _Bars:
    """A line for each part of the step: name, bar, median, slow end (p90) and share of the total time. Bars
    that would be too short are left out.
    """

    def __init__(self, times: Times) -> None:
        self._times = times

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        rows = [
            (NAMES[part], part, seconds(spread.median_s), seconds(spread.p90_s), percent(spread.share))
            for part, spread in self._times.parts.items()
        ]
        headings = ("a step", "median", "p90", "share")
        cells = [(row[0], *row[2:]) for row in rows]
        figures = sum(max(map(len, column)) + GAP for column in zip(headings, *cells, strict=True))
        bar_width = min(BAR_MAX, options.max_width - figures)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        table.add_column(headings[0], no_wrap=True)
        if bar_width >= BAR_MIN:
            table.add_column("", width=bar_width, no_wrap=True)
        for name in headings[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for name, part, *texts in rows:
            bar = (
                [_bar(self._times.parts[part].share, bar_width, _COLOURS.get(part, "white"))]
                if bar_width >= BAR_MIN
                else []
            )
            table.add_row(name, *bar, *texts)
        yield table


def _bar(share: float, width: int, colour: str) -> Text:
    """Return a bar as long as the share. A share of at least a thousandth gets at least the thinnest bar."""
    eighths = round(8 * width * min(1.0, share)) or (1 if share >= 0.001 else 0)
    return Text("█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8], style=colour)


def _side_notes(times: Times) -> Iterator[RenderableType]:
    lines = [
        *(_of_rollouts(times.rollouts) if times.rollouts is not None else ()),
        *(_of_engines(times.engines) if times.engines else ()),
    ]
    if lines:
        yield Text()
        yield _listed("beside it", lines)


def _of_rollouts(rollouts: Rollouts) -> Iterator[str]:
    held_text = (
        f", {seconds(rollouts.held_back_s)} of it held back for the trainer"
        if rollouts.held_back_s is not None
        else ""
    )
    yield f"a batch every {seconds(rollouts.batch_s)}{held_text}"
    if rollouts.rollout_s is None:
        return
    made = ""
    if rollouts.model_s is not None and rollouts.tools_s is not None:
        made = f": model {seconds(rollouts.model_s)}, tools and environment {seconds(rollouts.tools_s)}"
    longest = f"; the longest took {seconds(rollouts.longest_s)}" if rollouts.longest_s is not None else ""
    yield f"a rollout takes {seconds(rollouts.rollout_s)}{made}{longest}"


def _of_engines(engines: Engines) -> Iterator[str]:
    figures = [
        ("requests run", engines.running),
        ("wait", engines.waiting),
        ("rollouts in flight", engines.inflight),
    ]
    parts = [f"{value:.0f} {what}" for what, value in figures if value is not None]
    parts += [f"cache {percent(engines.cache)} full"] if engines.cache is not None else []
    yield f"engines: {', '.join(parts)}"


def _diagnosis(found: Profile) -> RenderableType:
    diagnosis = found.diagnosis
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column()
    rows.add_row(
        "bottleneck", Text.assemble((diagnosis.title, "bold"), f" ({_CERTAINTY[diagnosis.certainty]})")
    )
    if diagnosis.certainty is not Certainty.UNKNOWN:
        rows.add_row("", _BOUND[diagnosis.bound])
        rows.add_row("critical path", _path(found))
    for label, lines in (("because", diagnosis.reasons), ("but", diagnosis.doubts)):
        for place, line in enumerate(lines):
            rows.add_row(label if place == 0 else "", line)
    return rows


def _path(found: Profile) -> str:
    """Return the critical path, and the parts that run in parallel with it and so add no time."""
    times, path = found.times, found.diagnosis.critical_path
    if times is None:
        return path.value
    if path is Critical.ROLLOUTS:
        return f"{path.value}; the {seconds(times.busy_s)} of the trainer are hidden behind them"
    if path is Critical.TRAINER and times.rollouts is not None and times.rollouts.own_s is not None:
        least = "" if times.rollouts.paced else "at least "
        return (
            f"{path.value}; the {least}{seconds(times.rollouts.own_s)} of the rollouts are hidden behind it"
        )
    return path.value


def _advice(place: int, advice: Recommendation) -> RenderableType:
    gain = (
        f"at most {advice.gain:.1f}x as fast" if advice.gain is not None else "the gain cannot be predicted"
    )
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True)
    row.add_column()
    row.add_row(f"{place}.", Text.assemble((advice.what, "bold"), f": {gain}"))
    row.add_row("", Text(advice.why, style="dim"))
    return row


def _listed(label: str, lines: list[str]) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column(overflow="fold")
    for place, line in enumerate(lines):
        rows.add_row(label if place == 0 else "", line)
    return rows
