"""`prime-train profile RUN`: show where a step's time goes, what limits the run, and what to change."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec
    from prime_train.operations.metrics import Source
    from prime_train.ports import RunRecord

STEPS_MAX = 10_000


def profile(
    run: Annotated[str | None, typer.Argument(help="The run, or the start of its id; not needed with --file.", show_default=False)] = None,
    steps: Annotated[int, typer.Option(min=5, max=STEPS_MAX, help="Look at so many of the last steps.")] = 50,
    file: Annotated[Path | None, typer.Option(help="Read this file of metrics instead of the run's own.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Say where a step's time goes.

    For prime-rl: what each part of a step takes, what holds the run up, how sure that is, and what to change. Leaves with 1 where nothing
    can be concluded.
    """
    from prime_train.operations.metrics import of_file

    if run is None and file is None:
        raise UsageError("which run is meant?", fix="prime-train profile RUN, or --file metrics.jsonl")
    held = _held(run) if run is not None else None
    source = of_file(file) if file is not None else _of_run(held) if held is not None else None
    if held is None or held.run.spec.trainer.prime_rl is not None:
        return _of_prime_rl(held, _there(held, source), steps, as_json=as_json)
    return _of_others(held, source, steps, as_json=as_json)


def _held(name: str) -> "RunRecord":
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.run_lookup import find

    return find(Home.of(os.environ).store(), name)


def _of_run(held: "RunRecord") -> "Source | None":
    from prime_train.control_plane.wiring.home import Home
    from prime_train.operations.metrics import of_run

    return of_run(Home.of(os.environ), held, lambda text: typer.echo(text, err=True))


def _there(held: "RunRecord | None", source: "Source | None") -> "Source":
    if source is None:
        name = held.run.run_id if held is not None else "the run"
        fix = "they are written with the first step, and kept in the bucket when an attempt ends; name a file with --file"
        raise UsageError(f"there are no metrics of {name}, on a machine or in the bucket", fix=fix)
    return source


def _of_prime_rl(held: "RunRecord | None", source: "Source", steps: int, *, as_json: bool) -> Exit:
    from prime_train.cli.profile.page import page, record
    from prime_train.trainers.prime_rl.profile import profile as measure
    from prime_train.trainers.prime_rl.profile.bottlenecks import Bottleneck

    found = measure(source.lines, steps=steps)
    name = held.run.run_id if held is not None else source.name
    if as_json:
        _print_json(record(found, name, source.name))
    else:
        _print(page(found, name, source.name))
    return Exit.FINDINGS if found.diagnosis.bottleneck is Bottleneck.UNKNOWN else Exit.OK


def _of_others(held: "RunRecord", source: "Source | None", steps: int, *, as_json: bool) -> Exit:
    from prime_train.cli.profile.steps import page, record, steps_of
    from prime_train.trainers import trainer_for
    from prime_train.trainers.step_times import step_times

    spec: RunSpec = held.run.spec
    told = step_times(source.lines, trainer_for(spec).reader(spec), steps=steps) if source is not None else None
    found = steps_of(held, told)
    if as_json:
        _print_json(record(found))
    else:
        _print(page(found))
    return Exit.OK if found.median_s is not None or found.mean_s is not None else Exit.FINDINGS


def _print(page: object) -> None:
    from prime_train.output import console

    console().print(page)


def _print_json(record: object) -> None:
    import json

    print(json.dumps(record, indent=2))
