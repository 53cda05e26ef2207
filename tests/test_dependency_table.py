"""The order of the packages, with which every import of every module is compared.

A package imports from those above it in the order, never from those below, and a face (`commands`, `report`)
is imported by faces only. What a package may import of others is listed with it. The imports that still go up
are listed too, and the list may only shrink.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"prime_train": "src", "prime_agent": "agent", "prime_lambdas": "lambdas"}


@dataclass(frozen=True)
class Package:
    """A row of the order. `others`: the packages of others that it may import; its faces may import
    `FACES_MAY` as well. `is_pure`: the same answer for the same arguments, so no clock, chance, disk, network
    or process, but in faces and in `but`.
    """

    name: str
    others: tuple[str, ...] = ()
    is_pure: bool = False
    but: tuple[str, ...] = ()


ORDER = (
    Package("version"),
    Package("advice", is_pure=True),
    Package("exit_codes", is_pure=True),
    Package("errors", is_pure=True),
    Package("text", is_pure=True),
    Package("clock"),
    Package("elapsed"),
    Package("environment", is_pure=True),
    Package("answer_limits", ("requests", "urllib3")),
    Package("bubblewrap"),
    Package("api_exchange"),
    Package("http", ("requests", "urllib3")),
    Package("spec", ("pydantic", "pydantic_core", "yaml"), is_pure=True, but=("spec.source_file",)),
    Package("buckets", ("obstore", "boto3", "botocore", "requests")),
    Package("runs", ("pydantic",), is_pure=True),
    Package("market", ("pydantic",), is_pure=True),
    Package("estimate", ("pydantic",), is_pure=True),
    Package("providers", ("pydantic", "yaml", "psutil", "paramiko", "cryptography")),
    Package(
        "trainers",
        ("re2", "pydantic", "prime_rl", "rich"),
        is_pure=True,
        but=("trainers.prime_rl.validators",),
    ),
    Package("checkpoints", ("blake3", "numpy", "zstandard", "pydantic")),
    Package("tracker", ("wandb",)),
    Package("outputs", ("pydantic",)),
    Package("configs", ("pydantic",)),
    Package("checks", is_pure=True),
    Package("alerts", ("slack_sdk", "requests", "urllib3")),
    Package("stores", ("boto3", "botocore", "pydantic")),
    Package("watch", ("requests", "urllib3")),
    Package("planning"),
    Package("status"),
    Package("launch", ("re2", "detect_secrets")),
    Package("pages", ("resvg_py",)),
    Package("webhook", ("fastapi", "granian", "pydantic", "pydantic_core", "starlette", "uvloop")),
    Package("github", ("pydantic", "jwt")),
    Package("aws", ("boto3", "botocore")),
    Package("images"),
    Package("interop", ("cryptography",)),
    Package("app", ("psutil",)),
    Package("client"),
    Package("demo", ("numpy",)),
    Package("rehearsal", ("psutil", "blake3", "inotify_simple")),
    Package("terminal", ("typer", "rich")),
    Package("cli", ("typer", "rich", "click")),
    Package("prime_agent", ("psutil", "requests", "pynvml", "pydantic", "torch")),
    Package("prime_lambdas", ("mangum", "boto3", "botocore")),
)
FACES_MAY = ("typer", "rich", "click", "psutil")
BY_NAME = {package.name: package for package in ORDER}
RANK = {package.name: number for number, package in enumerate(ORDER)}

UPWARD = {
    # The control plane of this machine or elsewhere, as it is made of the environment: taken by operations
    # that need several parts of it.
    *(
        (name, "app")
        for name in (
            "providers",
            "checkpoints",
            "outputs",
            "configs",
            "checks",
            "watch",
            "planning",
            "status",
            "launch",
        )
    ),
    *((name, "app") for name in ("pages", "github", "aws", "interop")),
    # The names of kinds, with what configs must know of each.
    ("spec", "providers"),
    ("spec", "trainers"),
    ("providers", "trainers"),
    # How much memory a config needs, which some kinds' rules compare.
    ("trainers", "checks"),
    ("trainers", "status"),
    ("runs", "checkpoints"),
    ("runs", "market"),
    ("spec", "runs"),
    ("buckets", "runs"),
    ("text", "runs"),
    ("planning", "launch"),
}
"""The pairs of packages between which an import goes up."""

LONE = {
    "prime_agent": ("app", "cli", "terminal", "watch", "launch", "stores", "github", "aws", "pages"),
    "prime_lambdas": ("cli", "terminal", "prime_agent"),
}
"""What is installed elsewhere, and the packages that it may not import."""
COMPUTED = {
    "providers.configured",
    "trainers.of_spec",
    "trainers.settings.of_subject",
    "checks.all_rules",
    "cli.lazy",
    "trainers.prime_rl.validators.validator_script",
}
"""Modules that import by a name computed at run time, which no table can check."""

DENIED_TO_PURE = {"os", "sys", "subprocess", "threading", "asyncio", "socket", "http", "urllib"}
DENIED_TO_PURE |= {"tempfile", "shutil", "sqlite3", "logging", "random", "time"}
CLOCK_READINGS = {"now", "utcnow", "today"}


def order_markdown() -> str:
    """Return the table for docs/architecture.md: what is in each package is said by its docstring."""
    carried = {
        package_of(name)
        for file in (ROOT / "agent").rglob("*.py")
        for name in re.findall(
            r"^(?:from|import) (prime_train\.\w+)", file.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    rows = ["| package | what is in it | of others | pure | the agent needs it |", "|---|---|---|---|---|"]
    for package in ORDER:
        base = ROOT / SOURCES.get(package.name, "src/prime_train") / package.name
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        said = (
            (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "")
            .partition("\n\n")[0]
            .replace("\n", " ")
            .rstrip(".")
        )
        name = f"`{package.name}/`" if base.is_dir() else f"`{package.name}.py`"
        but = f", but for {', '.join(f'`{one}`' for one in package.but)}" if package.but else ""
        cells = (
            name,
            said,
            ", ".join(f"`{one}`" for one in package.others),
            f"yes{but}" if package.is_pure else "",
            "yes" if package.name in carried else "",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def package_of(name: str) -> str:
    """Return the package that a dotted name belongs to; it may end in a module, a class or a function."""
    steps = name.split(".")
    return steps[0] if steps[0] != "prime_train" else ".".join(steps[1:2])


def is_face(name: str) -> bool:
    steps = name.split(".")
    return steps[0] == "prime_train" and (
        steps[1:2] == ["cli"] or not {"commands", "report"}.isdisjoint(steps)
    )


def base_of(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the absolute name of what follows `from`."""
    if node.level == 0:
        return node.module or ""
    steps = module.split(".") if is_package else module.split(".")[:-1]
    up = node.level - 1
    if up >= len(steps):
        return "." * node.level + (node.module or "")
    steps = steps[: len(steps) - up]
    return ".".join([*steps, node.module] if node.module else steps)


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str | None]]:
    """Yield line and absolute name of every import at any depth; no name for a computed one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, module, is_package)
            # The imported name counts: `from prime_train.stores import sqlite` imports the package sqlite.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"}:
                constant = (
                    node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                )
                yield node.lineno, constant if isinstance(constant, str) else None


def clock_readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield uses of `datetime.now` and similar functions, under whatever name datetime was imported; called
    or only passed on.
    """
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            bound |= {alias.asname or alias.name for alias in node.names if alias.name == "datetime"}
        elif isinstance(node, ast.ImportFrom) and node.module == "datetime":
            bound |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_READINGS:
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in bound:
                yield node.lineno, ast.unparse(node)


def objection(module: str, name: str | None) -> str | None:
    """Return why this module may not import that name, or None if it may."""
    short = module.removeprefix("prime_train.")
    if name is None:
        return None if short in COMPUTED else "imports by a computed name, which the table cannot check"
    here, top, face = package_of(module), name.split(".")[0], is_face(module)
    package = BY_NAME.get(here)
    if top in SOURCES:
        there = package_of(name)
        if there == here and (face or not is_face(name)):
            return None
        if is_face(name) and not face:
            return f"imports {name}, which is a face"
        if face or (module == "prime_train" and there in ("client", "version")):
            return None if there not in SOURCES else f"imports {name}, which is installed elsewhere"
        if there in LONE.get(here, ()):
            return f"imports {name}, which is not installed beside it"
        if there not in RANK:
            return f"imports {name}, which has no place in the order"
        if RANK[there] > RANK.get(here, -1) and (here, there) not in UPWARD:
            return f"imports {name}, which is below it in the order"
        return None
    if top in sys.stdlib_module_names:
        denied = package is not None and is_to_be_pure(module, package) and top in DENIED_TO_PURE
        return f"imports {name}: what is pure may not" if denied else None
    may = (*(package.others if package is not None else ()), *(FACES_MAY if face else ()))
    return None if top in may else f"imports {name}: its row does not name {top or 'that'}"


def is_to_be_pure(module: str, package: Package) -> bool:
    within = f"{module.removeprefix('prime_train.')}."
    return (
        package.is_pure
        and not is_face(module)
        and not any(within.startswith(f"{one}.") for one in package.but)
    )


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    package = BY_NAME.get(package_of(module))
    if package is None and module != "prime_train":
        return [f"{module}: no place in the order of tests/test_dependency_table.py"]
    tree = ast.parse(source)
    found = [
        f"{module}:{line}: {reason}"
        for line, name in imports(tree, module, is_package)
        if (reason := objection(module, name))
    ]
    if package is not None and is_to_be_pure(module, package):
        found += [f"{module}:{line}: reads the clock: {text}" for line, text in clock_readings(tree)]
    return sorted(found)


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        base = ROOT / folder
        for path in sorted((base / package).rglob("*.py")):
            steps = path.relative_to(base).with_suffix("").parts
            yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), path


def test_every_module_keeps_to_the_order() -> None:
    # One test for all modules: their number must not change what is collected.
    seen = set()
    found = []
    for module, path in modules():
        seen.add(module)
        found += violations(module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")
    assert set(SOURCES) <= seen
    assert not found, "\n" + "\n".join(found)


def test_every_listed_import_that_goes_up_is_there() -> None:
    """An entry that is no longer needed is struck, so that the list only shrinks."""
    used = set()
    for module, path in modules():
        if not is_face(module):
            names = imports(ast.parse(path.read_text(encoding="utf-8")), module, path.name == "__init__.py")
            used |= {
                (package_of(module), package_of(name))
                for _, name in names
                if name and name.split(".")[0] in SOURCES
            }
    assert used >= UPWARD


def at_start(tree: ast.AST) -> ast.AST:
    """Return the tree without what is only imported when a function is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return tree


def test_no_module_imports_itself_through_others() -> None:
    """Types count as well: what two modules must know of each other stands in one of them, or below both."""
    known = dict(modules())
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        names = imports(
            at_start(ast.parse(path.read_text(encoding="utf-8"))), module, path.name == "__init__.py"
        )
        places = {name if name in known else name.rpartition(".")[0] for _, name in names if name}
        graph[module] = places & known.keys() - {module}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("prime_train.spec.spec", "import os"),
        ("prime_train.spec.spec", "import os.path as p"),
        ("prime_train.spec.spec", "from urllib.parse import quote"),
        ("prime_train.spec.spec", "import requests"),
        ("prime_train.spec.spec", "def f():\n    from prime_train.watch import loop"),
        ("prime_train.spec.spec", "from ..watch import loop"),
        ("prime_train.spec.spec", "from .. import watch"),
        ("prime_train.spec.spec", "from ...elsewhere import x"),
        (
            "prime_train.spec.spec",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import prime_train.stores.sqlite",
        ),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module('prime_train.stores.sqlite')"),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module('prime_' + 'train.ports')"),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module(f'prime_train.checks.{name}')"),
        ("prime_train.spec.spec", "import prime_train"),
        ("prime_train.spec.spec", "from prime_train import *"),
        ("prime_train.spec.spec", "from datetime import datetime\nx = datetime.now()"),
        ("prime_train.spec.spec", "import datetime as d\nx = d.datetime.utcnow"),
        ("prime_train.checks.price", "from datetime import date as day\nx = day.today()"),
        ("prime_train.checks.price", "from prime_train.stores import sqlite"),
        ("prime_train.runs.store", "import prime_train.stores.sqlite.store"),
        ("prime_train.watch.loop", "from prime_train.webhook import app"),
        ("prime_train.watch.loop", "from prime_train.status.commands import status"),
        ("prime_train.stores.sqlite.store", "import psutil"),
        ("prime_train.providers.local.pods", "from prime_train.watch import loop"),
        ("prime_train.estimate.memory.gpu", "from prime_train.providers.local import pods"),
        ("prime_train.cli.main", "import prime_agent.main"),
        ("prime_agent.main", "from prime_train.stores.sqlite.store import Store"),
        ("prime_agent.main", "from prime_train.cli import main"),
        ("prime_agent.main", "import boto3"),
        ("prime_lambdas.tick", "from prime_agent import main"),
        ("prime_train", "from prime_train import spec"),
    ],
)
def test_the_order_bites(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "prime_train.spec.spec",
            "from __future__ import annotations\nimport json, pydantic\nfrom . import causes",
        ),
        ("prime_train.spec.spec", "from datetime import datetime\nx = datetime.fromisoformat('2026-01-01')"),
        ("prime_train.spec.spec", "def f(clock):\n    return clock.now()"),
        ("prime_train.spec.source_file", "import os"),
        ("prime_train.checks.price", "from prime_train.spec.spec import Spec\nfrom ..trainers import kind"),
        ("prime_train.checks.all_rules", "import importlib\nimportlib.import_module(f'prime_train.{name}')"),
        ("prime_train.alerts.url", "import os, requests\nfrom prime_train import http"),
        ("prime_train.webhook.app", "import fastapi\nfrom prime_train.version import __version__"),
        (
            "prime_train.status.commands.status",
            "import os, typer\nfrom prime_train.launch.commands import run",
        ),
        (
            "prime_train.cli.lazy",
            "import importlib, typer\nfrom prime_train import watch\nimportlib.import_module(f())",
        ),
        ("prime_agent.main", "import pynvml\nfrom prime_train.buckets.folder import Folder"),
        ("prime_lambdas.tick", "import boto3\nfrom prime_train.watch import loop"),
    ],
)
def test_the_order_lets_pass_what_it_names(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_a_package_without_a_place_is_told_to_get_one() -> None:
    (message,) = violations("prime_train.novelty.thing", "")
    assert "prime_train.novelty.thing" in message
    assert "no place in the order" in message
