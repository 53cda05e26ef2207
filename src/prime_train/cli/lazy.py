"""Commands whose modules are imported when they are called, so that no command waits for the imports of the others.

The help of a command does not wait for what only running it needs either: it is made of the command's signature
and docstring, which are read from the source. Of the module only the definitions and imports that the signature names
are executed, such as an enum of formats.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from prime_train.cli.help.examples import epilog
from prime_train.terminal.exits import guarded, reported

_OURS = __name__.partition(".")[0]


@dataclass(frozen=True)
class Verb:
    """A row of the table of commands.

    `name`: its words on the command line, such as `config save`; `target`: the function, or the Typer app of a group, as `module:name`;
    `help`: the first line of its help; `parsed_by`: a command class, as `module:name`, for arguments that Typer cannot describe; `verbs`:
    the commands of a group.
    """

    name: str
    target: str
    help: str
    parsed_by: str = ""
    verbs: tuple["Verb", ...] = ()

    @cached_property
    def command(self) -> Any:
        """The Typer command; accessing it imports its module."""
        found = _named(self.target)
        if self.verbs:
            add(found, self.verbs)
            return get_command(found)
        return self._of_function(found, _named(self.parsed_by) if self.parsed_by else None)

    @cached_property
    def signature(self) -> Any:
        """The command as its help shows it, made without its module; only for parsing, as it does nothing."""
        if self.verbs:
            return self.command
        return self._of_function(_alone(self.target), _alone(self.parsed_by) if self.parsed_by else None)

    def _of_function(self, function: Any, parsed_by: Any) -> Any:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(self.word, cls=parsed_by, epilog=epilog(self.name))(guarded(function))
        return get_command(app)

    @property
    def word(self) -> str:
        return self.name.split()[-1]

    def load(self) -> "Verb":
        return self


class LazyCommand(TyperCommand):
    """Stands for a command where its group lists it (help, completion, suggestions). When it is called, it imports the command, which then
    parses and runs."""

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
        if parent is not None and not set(parent.help_option_names).isdisjoint(args):
            # This prints the help and ends, unless the word is an option's value or stands in the command of a run.
            self.verb.signature.make_context(info_name, list(args), parent, **extra)
        return self.loaded.make_context(info_name, args, parent, **extra)


def add(app: typer.Typer, verbs: Iterable[Verb], title: str | None = None) -> None:
    """Add the commands to the app without importing them. `title`: the heading that they stand under in its help."""
    for verb in verbs:
        app.command(verb.word, cls=LazyCommand, help=verb.help, rich_help_panel=title)(verb.load)


def _named(target: str) -> Any:
    module, _, name = target.partition(":")
    # The import fails where an optional library is not installed.
    with reported():
        return getattr(import_module(module), name)


def _alone(target: str) -> Any:
    """Return the value of a name in a module of which only the statements that this name needs are executed; a function
    has its signature and docstring, and no body."""
    module, _, name = target.partition(":")
    made = _made_in(module)
    if isinstance(function := made[name], ast.FunctionDef):
        function.body, function.decorator_list = function.body[:1], []
    needed, left = set[str](), [name]
    while left:
        needed.add(one := left.pop())
        used = {node.id for node in ast.walk(made[one]) if isinstance(node, ast.Name)}
        left += (used & made.keys()) - needed
    values: dict[str, Any] = {"__name__": module}
    for one in (one for one in made if one in needed):
        match made[one]:
            case ast.ImportFrom(str(source), names) if source.startswith(f"{_OURS}."):
                values[one] = _imported(source, next(each.name for each in names if one in (each.asname, each.name)))
            case statement:
                exec(compile(ast.Module([statement], []), module, "exec"), values)
    return values[name]


def _made_in(module: str) -> dict[str, ast.stmt]:
    """Return the statements of one of our modules, by the names that they make. Nothing is imported, as that would load
    its package."""
    package, *inner = module.split(".")
    found = find_spec(package)
    assert found is not None
    assert found.origin is not None
    place = Path(found.origin).parent.joinpath(*inner)
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    statements = ast.parse(file.read_text(encoding="utf-8")).body
    return {name: statement for statement in statements for name in _bound(statement)}


def _imported(module: str, name: str) -> Any:
    """Return what is imported from one of our modules. Constants, enums and the types of options are made alone; other
    classes, such as errors, and functions are those of the module, as there must not be two of them."""
    match _made_in(module).get(name):
        case ast.Assign() | ast.AnnAssign() | ast.ClassDef(bases=[ast.Name("StrEnum")]):
            return _alone(f"{module}:{name}")
    return getattr(import_module(module), name)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module makes."""
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.FunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Assign(targets):
            yield from (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign(ast.Name(name)):
            yield name
