"""The Typer app of `prime-train gha`, with one command for each action."""

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from prime_train.actions.launch import launch
from prime_train.actions.status import status
from prime_train.actions.stop import stop
from prime_train.actions.validate import validate
from prime_train.actions.watch import watch
from prime_train.exits import guarded
from prime_train.reports.errors import explained

P = ParamSpec("P")
VERBS = (validate, launch, watch, stop, status)

app = typer.Typer(name="gha", help="What the actions call; inputs come from the environment.", no_args_is_help=True, rich_markup_mode=None)


def annotated(verb: Callable[P, object]) -> Callable[P, object]:
    """Wrap a command so that in a GitHub job an exception becomes an error annotation on the page of the workflow run, not only a line in
    the step's log."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> object:
        try:
            return verb(*args, **kwargs)
        except Exception as error:
            if os.environ.get("GITHUB_ACTIONS") != "true":
                raise
            from prime_train.actions.job import failed

            code, said = explained(error)
            failed(said)
            sys.exit(code)

    return run


for verb in VERBS:
    app.command()(guarded(annotated(verb)))
