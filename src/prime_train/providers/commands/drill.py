"""`prime-train drill PROVIDER`: rent one machine for cents, and see whether the provider answers as it is
known to.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.exit_codes import Exit
from prime_train.launch.provider_drill.steps import Outcome, StepResult
from prime_train.providers.answers.known import BELIEF, Judged, Verdict
from prime_train.terminal.arguments import AsJson, print_json
from prime_train.terminal.confirm import Yes, confirm
from prime_train.text.formatting import span, usd

if TYPE_CHECKING:
    from prime_train.launch.provider_drill.play import Drill

USD, MINUTES = 1.0, 45.0
WHYS_SHOWN = 3
_SOURCE = {True: "belief", False: "source"}


def drill(
    name: Annotated[
        str,
        typer.Argument(
            metavar="PROVIDER", help="Name of the provider, as in provider list.", show_default=False
        ),
    ],
    usd_max: Annotated[
        float, typer.Option(min=0.01, max=100, help="The most dollars that the drill may cost.")
    ] = USD,
    minutes: Annotated[
        float, typer.Option(min=0.05, max=240, help="The longest time for which the machine is kept.")
    ] = MINUTES,
    spot: Annotated[bool, typer.Option("--spot", help="Rent a spot machine.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the record.")] = Path(),
    yes: Yes = False,
    as_json: AsJson = False,
) -> Exit:
    """See for cents whether a provider works as it should.

    Looks at account and offers, asks, and rents; installs the agent, and waits for its first heartbeat and
    the first checkpoint in the bucket. Then it ends the machine, and looks how the provider tells that.
    Whatever fails, the machine is given back. What the provider answered is recorded in a file without
    secrets, and compared with what is known of its API. Exits with code 1 if something differs, and 3 if a
    step fails.
    """
    from prime_train.app.home import Home
    from prime_train.launch.provider_drill.play import Drill, drilled
    from prime_train.launch.provider_drill.record import write_record
    from prime_train.launch.provider_drill.stage import Limits

    shown: list[Path] = []

    def end(played: Drill) -> None:
        shown.append(write_record(played, out))
        if played.interrupted:
            _say(f"interrupted; {_left(played)}; record: {shown[0]}", err=True)

    with drilled(
        Home.of(os.environ),
        name,
        Limits(usd_max, minutes, spot),
        agree=lambda question: confirm(question, yes=yes, as_json=as_json),
        tell=lambda result: _say(_line(result), err=as_json),
        note=lambda text: _say(text, err=True),
        end=end,
    ) as played:
        if as_json:
            print_json({**_content(played), "record": str(shown[0])})
        else:
            _show(played, shown[0])
        return _code(played)


def _say(text: str, *, err: bool) -> None:
    typer.echo(text, err=err)


def _line(result: StepResult) -> str:
    at = span(result.at_s) if result.at_s is not None else ""
    return (
        f"{at:>11}  {result.step.value:<10} "
        " "
        f"{'' if result.outcome is Outcome.DONE else f'{result.outcome.value}: '}{result.text}"
    )


def _show(played: "Drill", record: Path) -> None:
    from rich.text import Text

    from prime_train.terminal.columns import Column, Fitting
    from prime_train.terminal.console import console

    screen, judged = console(), played.judged
    if judged:
        names = ("answer", "means", "known by", "here")
        cells = zip(*_judged_rows(judged), strict=True)
        ranks = (0, 2, 1, 0)
        columns = [
            Column(name, tuple(map(Text, texts)), rank)
            for name, texts, rank in zip(names, cells, ranks, strict=True)
        ]
        screen.print(Fitting(columns))
        screen.print(_counts(judged), soft_wrap=True)
    for line in _difference_lines(judged):
        screen.print(f"differs: {line}", soft_wrap=True)
    screen.print(f"{_left(played)}; it has cost about {usd(played.usd)}", soft_wrap=True)
    screen.print(f"record: {record}", soft_wrap=True)


def _left(played: "Drill") -> str:
    """Return what is left at the provider, in words."""
    from prime_train.launch.provider_drill.play import where_to_end

    if played.left:
        machines = ", ".join(f"{one.name} ({usd(one.usd_per_hour)}/h)" for one in played.left)
        return f"NOT given back: {machines}; {where_to_end(played.provider)}"
    if played.left_unknown:
        return (
            f"it is NOT known whether a machine is left: {played.left_unknown}; look, "
            "and "
            f"{where_to_end(played.provider)}"
        )
    return "no machine is left"


def _content(played: "Drill") -> dict[str, object]:
    from prime_train.launch.provider_drill.record import record_of

    content = record_of(played, datetime.now(UTC))
    del content["answers"]
    return {**content, "left": [one.name for one in played.left], "left_unknown": played.left_unknown}


def _code(played: "Drill") -> Exit:
    if any(result.outcome is not Outcome.DONE for result in played.steps):
        return Exit.EXTERNAL_FAILED
    return Exit.FINDINGS if any(one.verdict is Verdict.DIFFERS for one in played.judged) else Exit.OK


def _judged_rows(judged: Sequence[Judged]) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each answer: the call and its status, what it means, whether that has a source, and the
    verdict.
    """
    for one in judged:
        times = f" {one.times}x" if one.times else ""
        yield (
            one.what,
            one.says,
            _SOURCE[one.source == BELIEF] if one.source != "none" else "none",
            f"{one.verdict.value}{times}",
        )


def _difference_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a line for each difference, at most `WHYS_SHOWN` of one answer."""
    for one in judged:
        if one.verdict is Verdict.DIFFERS:
            for why in one.why[:WHYS_SHOWN]:
                yield f"{one.what}: {why}"
            if len(one.why) > WHYS_SHOWN:
                yield f"{one.what}: and {len(one.why) - WHYS_SHOWN} more"


def _counts(judged: Sequence[Judged]) -> str:
    """Return in words how many answers were as they are known to be."""
    seen = sum(one.verdict is Verdict.SEEN for one in judged)
    differ = sum(one.verdict is Verdict.DIFFERS for one in judged)
    beliefs = sum(one.source == BELIEF and one.verdict is Verdict.SEEN for one in judged)
    return (
        f"{seen} of {len(judged)} known answers seen as they are known, {beliefs} of them beliefs "
        "until "
        f"now; {differ} differ"
    )
