"""Commands whose modules are imported when they are called or explained, so that no command waits for the
imports of the others. Such a module imports at its top only what its help needs, and in its functions what
running it needs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from prime_train.cli.help.examples import epilog
from prime_train.terminal.exits import guarded, reported


@dataclass(frozen=True)
class Verb:
    """A row of the table of commands.

    `name`: its words on the command line, such as `config save`; `target`: the function, as `module:name`, or
    the Typer app of a group with a way of its own to read its words; `help`: the first line of its help;
    `parsed_by`: a command class, as `module:name`, for arguments that Typer cannot describe; `verbs`: the
    commands of a group; `about`: more of its help.
    """

    name: str
    target: str
    help: str
    parsed_by: str = ""
    verbs: tuple["Verb", ...] = ()
    about: str = ""

    @cached_property
    def command(self) -> Any:
        """The Typer command; accessing it imports its module."""
        if self.verbs:
            app = _named(self.target) if self.target else self._plain_group
            add(app, self.verbs)
        else:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            parsed_by = _named(self.parsed_by) if self.parsed_by else None
            app.command(self.word, cls=parsed_by, epilog=epilog(self.name))(guarded(_named(self.target)))
        return get_command(app)

    @property
    def _plain_group(self) -> typer.Typer:
        about = f"{self.help}\n\n{self.about}"
        app = typer.Typer(add_completion=False, help=about, no_args_is_help=True, rich_markup_mode=None)
        app.callback()(lambda: None)  # else a group of one command would be that command
        return app

    @property
    def word(self) -> str:
        return self.name.split()[-1]

    def load(self) -> "Verb":
        return self


class LazyCommand(TyperCommand):
    """Stands for a command where its group lists it (help, completion, suggestions). When it is called, it
    imports the command, which then parses and runs.
    """

    @property
    def verb(self) -> Verb:
        assert self.callback is not None
        found = self.callback()
        assert isinstance(found, Verb)
        return found

    @property
    def loaded(self) -> Any:
        return self.verb.command

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return self.loaded.make_context(info_name, args, parent, **extra)


def add(app: typer.Typer, verbs: Iterable[Verb], title: str | None = None) -> None:
    """Add the commands to the app without importing them. `title`: the heading that they stand under in its
    help.
    """
    for verb in verbs:
        app.command(verb.word, cls=LazyCommand, help=verb.help, rich_help_panel=title)(verb.load)


def _named(target: str) -> Any:
    module, _, name = target.partition(":")
    # The import fails where an optional library is not installed.
    with reported():
        return getattr(import_module(module), name)
