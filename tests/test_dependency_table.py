"""A table of the allowed imports, with which every module is compared.

The table is a whitelist: what a row does not name, its part may not import. A part is a sub-package or a single module of prime_train; each
adapter is a part of its own, and so are the entire packages prime_agent and prime_lambdas. A part may always import itself, and the
standard library except the modules that a pure part is denied.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"prime_train": "src", "prime_agent": "agent", "prime_lambdas": "lambdas"}


@dataclass(frozen=True)
class Row:
    ours: tuple[str, ...] = ()
    third_party: tuple[str, ...] = ()
    # Pure: the same answer for the same arguments, so no clock, chance, disk, network or process.
    pure: bool = False
    # May import by a name computed at run time, which no table can check.
    computed: bool = False


CORE = "prime_train.core"
PORTS = "prime_train.runs.store"
BUCKETS = "prime_train.buckets.port"
EXCHANGE = "prime_train.providers.api_exchange"
ESTIMATE = "prime_train.estimate"
TRAINERS = "prime_train.trainers.of_spec"
RULES = "prime_train.rules"
REPORTS = "prime_train.reports"
CONFIGS = "prime_train.configs"
ADMISSION = "prime_train.control_plane.admission"
DASHBOARD = "prime_train.dashboard"
PAGES = "prime_train.pages.dashboard.requests"
WEBHOOK = "prime_train.control_plane.webhook"
RECONCILE = "prime_train.control_plane.reconcile"
RESULTS = "prime_train.outputs.results.write"
STORE_CALLS = "prime_train.stores.remote_calls"
CONTROL_PLANE = "prime_train.control_plane.*"
CHECKPOINTS = "prime_train.checkpoints"
HTTP = "prime_train.http"
ANSWERS = "prime_train.answer_limits"
ELAPSED = "prime_train.elapsed"
CLOCK = "prime_train.clock"
DEMO = "prime_train.demo"
OPERATIONS = "prime_train.operations"
EXITS = "prime_train.terminal.exits"
OUTPUT = "prime_train.terminal.output"
CONSOLE = "prime_train.terminal.console"
RENTAL = "prime_train.adapters.rental_api"
SIGNED = "prime_train.stores.signed_http"
STORED = "prime_train.runs.stored_json"
ADAPTERS = "prime_train.adapters*"
BUBBLEWRAP = "prime_train.bubblewrap"
PROVIDER = "prime_train.adapters.pods_*"
"""Every provider of machines without a row of its own."""


def adapter(*sdks: str) -> Row:
    """Return the row of an adapter; rows differ only in the SDKs."""
    return Row((CORE, PORTS, HTTP), sdks)


TABLE = {
    "prime_train": Row(("prime_train.client",)),
    "prime_train.version": Row(),
    "prime_train.core": Row((), ("pydantic", "pydantic_core"), pure=True),
    "prime_train.elapsed": Row(),
    "prime_train.clock": Row((CORE,)),
    "prime_train.estimate": Row((CORE,), ("pydantic",), pure=True),
    "prime_train.rules": Row((CORE, ESTIMATE, TRAINERS), pure=True),
    "prime_train.trainers.of_spec": Row((CORE,), ("re2",), pure=True, computed=True),
    "prime_train.runs.store": Row((CORE, BUCKETS, EXCHANGE)),
    EXCHANGE: Row(),
    BUCKETS: Row((CORE,)),
    "prime_train.checkpoints": Row((CORE, BUCKETS), ("blake3", "numpy", "zstandard")),
    "prime_train.outputs.results.write": Row((CORE, PORTS)),
    "prime_train.control_plane.reconcile": Row((CORE, PORTS, RESULTS, CHECKPOINTS)),
    "prime_train.pages.dashboard.requests": Row((CORE, ADMISSION)),
    "prime_train.stores.remote_calls": Row((CORE, PORTS), ("pydantic",)),
    # No third party, and of ours only what needs none.
    "prime_train.control_plane.admission": Row((CORE,), pure=True),
    "prime_train.control_plane.webhook": Row(
        (CORE, PORTS, STORE_CALLS, ADMISSION, PAGES, ELAPSED), ("fastapi", "pydantic", "pydantic_core", "starlette")
    ),
    "prime_train.adapters": Row(),
    ANSWERS: Row((), ("requests", "urllib3")),
    "prime_train.adapters.aws_deploy": adapter("boto3", "botocore"),
    "prime_train.adapters.bucket": Row((CORE, BUCKETS, HTTP, ANSWERS), ("obstore", "boto3", "botocore", "requests")),
    BUBBLEWRAP: Row(),
    "prime_train.watch.canary_http": Row((CORE, PORTS, HTTP, ANSWERS), ("requests", "urllib3")),
    "prime_train.adapters.github": Row((CORE, PORTS, HTTP, REPORTS, ELAPSED), ("pydantic", "jwt")),
    HTTP: Row((CORE, EXCHANGE, ANSWERS), ("requests", "urllib3")),
    "prime_train.planning.hugging_face_hub": Row((CORE, ESTIMATE, PORTS, HTTP)),
    "prime_train.providers.local.supervisor": adapter(),
    "prime_train.stores.launch_key_remote": Row((CORE, PORTS, HTTP, SIGNED)),
    "prime_train.stores.market_remote": Row((CORE, PORTS, HTTP, SIGNED)),
    "prime_train.alerts.log": adapter("rich"),
    "prime_train.adapters.notify_slack": Row((CORE, PORTS, HTTP, ANSWERS, REPORTS), ("slack_sdk",)),
    "prime_train.alerts.url": Row((CORE, PORTS, HTTP, ANSWERS, REPORTS), ("requests", "urllib3")),
    "prime_train.providers.local.pods": Row((CORE, PORTS, HTTP, BUBBLEWRAP), ("psutil",)),
    "prime_train.providers.by_name": adapter(),
    "prime_train.providers.memory": adapter(),
    "prime_train.adapters.pods_kubernetes": Row(
        (CORE, ESTIMATE, PORTS, HTTP, RENTAL, "prime_train.adapters.provisioning"), ("pydantic", "yaml")
    ),
    PROVIDER: Row((CORE, ESTIMATE, PORTS, HTTP, RENTAL), ("pydantic",)),
    RENTAL: adapter("pydantic"),
    "prime_train.trainers.prime_rl.validators.validators": Row((CORE, PORTS, HTTP, BUBBLEWRAP), ("pydantic", "prime_rl")),
    "prime_train.adapters.pods_ssh": Row((CORE, ESTIMATE, PORTS, RENTAL, "prime_train.adapters.ssh"), ("pydantic", "yaml")),
    "prime_train.adapters.provisioning": Row((CORE, PORTS, "prime_train.adapters.ssh")),
    SIGNED: adapter(),
    "prime_train.interop.bundle.ssh_signature": adapter("cryptography"),
    "prime_train.adapters.ssh": adapter("paramiko", "cryptography"),
    "prime_train.adapters.store_dynamo": Row((CORE, PORTS, STORED, CLOCK), ("boto3", "botocore")),
    "prime_train.stores.memory": Row((CORE, PORTS, CLOCK)),
    "prime_train.stores.offers_remote": Row((CORE, PORTS, HTTP, SIGNED, STORE_CALLS)),
    "prime_train.stores.remote": Row((CORE, PORTS, HTTP, SIGNED, STORE_CALLS, CLOCK, "prime_train.stores.offers_remote")),
    "prime_train.stores.sqlite.store": Row((CORE, PORTS, STORED, CLOCK)),
    "prime_train.runs.stored_json": adapter("pydantic"),
    "prime_train.adapters.tracker_wandb": Row((CORE, PORTS), ("wandb",)),
    "prime_train.launch.code.archive": adapter("detect_secrets", "re2"),
    "prime_train.control_plane.server": Row((CORE, PORTS, ADMISSION, PAGES, WEBHOOK, RECONCILE, CLOCK), ("granian", "starlette", "uvloop")),
    DEMO: Row((), ("numpy",)),
    "prime_train.reports": Row((CORE, ESTIMATE, TRAINERS, RULES, PORTS), ("resvg_py",)),
    "prime_train.configs": Row((CORE, ESTIMATE, RULES, REPORTS), ("pydantic", "yaml")),
    "prime_train.control_plane": Row(),
    "prime_train.control_plane.wiring": Row((CORE, PORTS, CONFIGS, CONTROL_PLANE, ADAPTERS, ELAPSED), computed=True),
    "prime_train.operations": Row(
        (CORE, ESTIMATE, TRAINERS, RULES, REPORTS, CONFIGS, PORTS, CHECKPOINTS, CONTROL_PLANE, ADAPTERS, DEMO), computed=True
    ),
    "prime_train.dashboard": Row((CORE, PORTS, REPORTS, CONTROL_PLANE, OPERATIONS)),
    "prime_train.terminal.exits": Row((CORE, REPORTS)),
    "prime_train.terminal.output": Row((CORE,)),
    "prime_train.terminal.console": Row((CORE, OUTPUT), ("rich",)),
    "prime_train.actions": Row(
        (CORE, ESTIMATE, RULES, REPORTS, CONFIGS, PORTS, CONTROL_PLANE, ADAPTERS, OPERATIONS, EXITS, OUTPUT, CONSOLE), ("typer",)
    ),
    "prime_train.client": Row((CORE, CONFIGS, REPORTS, CONTROL_PLANE, OPERATIONS)),
    "prime_train.cli": Row(("prime_train.*",), ("typer", "rich", "click", "yaml", "psutil"), computed=True),
    "prime_agent": Row(
        (CORE, TRAINERS, BUCKETS, CHECKPOINTS, "prime_train.adapters.bucket*", HTTP, ANSWERS),
        ("psutil", "requests", "pynvml", "pydantic", "torch"),
    ),
    "prime_lambdas": Row((CORE, PORTS, CONTROL_PLANE, ADAPTERS, ELAPSED, DASHBOARD), ("mangum", "boto3", "botocore")),
}


def imports_markdown() -> str:
    """Return the table for docs/architecture.md, without adapters whose rows have only the SDKs."""
    rows = ["| part | may import | third party | pure |", "|---|---|---|---|"]
    for part, row in TABLE.items():
        if row.ours != adapter().ours:
            cells = [", ".join(f"`{_short(name)}`" for name in names) for names in ((part,), row.ours, row.third_party)]
            rows.append(f"| {' | '.join(cells)} | {'yes' if row.pure else ''} |")
    return "\n".join(rows)


def _short(name: str) -> str:
    return name.removeprefix("prime_train.").replace(".", "/")


DENIED_TO_PURE = {"os", "sys", "subprocess", "threading", "asyncio", "socket", "http", "urllib"}
DENIED_TO_PURE |= {"tempfile", "shutil", "sqlite3", "logging", "random", "time"}
CLOCK_READINGS = {"now", "utcnow", "today"}


def part_of(name: str) -> str:
    """Return the part that a dotted name belongs to; it may end in a module, a class or a function."""
    steps = name.split(".")
    if steps[0] != "prime_train":
        return steps[0]
    return ".".join(steps[: 3 if steps[1:2] in (["adapters"], ["control_plane"]) else 2])


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
            # The imported name counts: `from prime_train.adapters import x` imports the adapter x.
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"}:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.JoinedStr):
                    # What begins with a package and a dot, f"prime_train.rules.{name}", imports from that package.
                    first = first.values[0]
                    package = first.value if isinstance(first, ast.Constant) else None
                    yield node.lineno, package.rpartition(".")[0] if isinstance(package, str) and "." in package else None
                    continue
                constant = first.value if isinstance(first, ast.Constant) else None
                yield node.lineno, constant if isinstance(constant, str) else None


def clock_readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield uses of `datetime.now` and similar functions, under whatever name datetime was imported; called or only passed on."""
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


def objection(part: str, row: Row, name: str | None) -> str | None:
    """Return why this part may not import that name, or None if it may."""
    if name is None:
        return None if row.computed else "imports by a computed name, which the table cannot check"
    top = name.split(".")[0]
    if top in SOURCES:
        target = part_of(name)
        if target == part or name == "prime_train.version.__version__":
            return None
        if any(fnmatchcase(target, allowed) for allowed in row.ours):
            return None
        return f"imports {name}: its row does not name {target}"
    if top in sys.stdlib_module_names:
        return f"imports {name}: a pure part may not" if row.pure and top in DENIED_TO_PURE else None
    return None if top in row.third_party else f"imports {name}: its row does not name {top or 'that'}"


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    part = part_of(module)
    row = TABLE.get(part) or (TABLE[PROVIDER] if fnmatchcase(part, PROVIDER) else None)
    if row is None:
        return [f"{module}: no row for {part}; add a row to the table in tests/test_dependency_table.py"]
    tree = ast.parse(source)
    found = []
    for line, name in imports(tree, module, is_package):
        reason = objection(part, row, name)
        if reason:
            found.append(f"{module}:{line}: {part} {reason}")
    if row.pure:
        found += [f"{module}:{line}: {part} reads the clock: {text}" for line, text in clock_readings(tree)]
    return sorted(found)


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        base = ROOT / folder
        for path in sorted((base / package).rglob("*.py")):
            steps = path.relative_to(base).with_suffix("").parts
            yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), path


def test_every_module_keeps_to_the_table() -> None:
    # One test for all modules: their number must not change what is collected.
    seen = set()
    found = []
    for module, path in modules():
        seen.add(module)
        found += violations(module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")
    assert set(SOURCES) <= seen
    assert not found, "\n" + "\n".join(found)


def test_no_two_parts_import_each_other_by_any_way() -> None:
    """Parts have an order: a call goes down it, and comes up only as a function that was handed down."""
    imported: dict[str, set[str]] = {}
    for module, path in modules():
        part = part_of(module)
        names = (name for _, name in imports(ast.parse(path.read_text(encoding="utf-8")), module, path.name == "__init__.py"))
        imported.setdefault(part, set()).update(part_of(name) for name in names if name and name.split(".")[0] in SOURCES)
    graph = {part: others - {part, "prime_train"} for part, others in imported.items() if part != "prime_train"}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


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
        names = imports(at_start(ast.parse(path.read_text(encoding="utf-8"))), module, path.name == "__init__.py")
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
        ("prime_train.spec.spec", "def f():\n    from prime_train.control_plane.reconcile import loop"),
        ("prime_train.spec.spec", "from ..reconcile import loop"),
        ("prime_train.spec.spec", "from .. import reconcile"),
        ("prime_train.spec.spec", "from ...elsewhere import x"),
        ("prime_train.spec.spec", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import prime_train.runs.store"),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module('prime_train.runs.store')"),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module('prime_' + 'train.ports')"),
        ("prime_train.spec.spec", "import importlib\nimportlib.import_module(f'prime_train.rules.{name}')"),
        ("prime_train.checks.all_rules", "import importlib\nimportlib.import_module(f'prime_train.{name}')"),
        ("prime_train.checks.all_rules", "import importlib\nimportlib.import_module(f'{name}.spec')"),
        ("prime_train.spec.spec", "import prime_train"),
        ("prime_train.spec.spec", "from prime_train import *"),
        ("prime_train.spec.spec", "from datetime import datetime\nx = datetime.now()"),
        ("prime_train.spec.spec", "import datetime as d\nx = d.datetime.utcnow"),
        ("prime_train.rules.price", "from datetime import date as day\nx = day.today()"),
        ("prime_train.rules.price", "from prime_train.runs.store import Store"),
        ("prime_train.trainers.of_spec.table", "from prime_train.rules import price"),
        ("prime_train.runs.store", "import prime_train.stores.sqlite.store"),
        ("prime_train.control_plane.reconcile.loop", "from prime_train.adapters import store_sqlite"),
        ("prime_train.stores.sqlite.store", "from prime_train.adapters import store_memory"),
        ("prime_train.stores.sqlite.store", "from . import store_memory"),
        ("prime_train.stores.sqlite.store", "from .store_memory import Memory"),
        ("prime_train.stores.sqlite.store", "import psutil"),
        ("prime_train.providers.local.pods", "from prime_train.control_plane.reconcile import loop"),
        ("prime_train.webhook.app", "from prime_train.http import Client"),
        ("prime_train.demo.train", "from prime_train.core import spec"),
        ("prime_train.cli.main", "import prime_agent.main"),
        ("prime_agent.main", "from prime_train.stores.sqlite.store import Store"),
        ("prime_agent.main", "from prime_train.cli import main"),
        ("prime_lambdas.tick", "from prime_agent import main"),
        ("prime_train", "from prime_train import core"),
    ],
)
def test_the_table_bites(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("prime_train.spec.spec", "from __future__ import annotations\nimport json, pydantic\nfrom . import keys"),
        ("prime_train.spec.spec", "from datetime import datetime\nx = datetime.fromisoformat('2026-01-01')"),
        ("prime_train.spec.spec", "def f(clock):\n    return clock.now()"),
        ("prime_train.rules.price", "from prime_train.spec.spec import Spec\nfrom ..trainers import table"),
        ("prime_train.checks.all_rules", "import importlib\nimportlib.import_module(f'prime_train.rules.{name}')"),
        ("prime_train.alerts.url", "import os, requests\nfrom prime_train.adapters import http"),
        ("prime_train.alerts.url", "from .http import Client\nfrom ..ports import Notifier"),
        ("prime_train.webhook.app", "import fastapi\nfrom prime_train.version import __version__"),
        (
            "prime_train.cli.main",
            "import importlib, typer\nfrom prime_train import adapters\nimportlib.import_module(f())",
        ),
        ("prime_agent.main", "import pynvml\nfrom prime_train.adapters.bucket_folder import Folder"),
        ("prime_lambdas.tick", "import boto3\nfrom prime_train.control_plane.reconcile import loop"),
    ],
)
def test_the_table_lets_pass_what_it_names(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_a_provider_needs_no_row_of_its_own() -> None:
    assert violations("prime_train.adapters.pods_elsewhere.pods", "from prime_train.providers.rental.pods import RentalPods") == []
    (message,) = violations("prime_train.adapters.pods_elsewhere.pods", "from prime_train.control_plane.reconcile import loop")
    assert "its row does not name" in message


@pytest.mark.parametrize("module", ["prime_train.adapters.elsewhere", "prime_train.novelty.thing"])
def test_a_part_without_a_row_is_told_to_get_one(module: str) -> None:
    (message,) = violations(module, "")
    assert part_of(module) in message
    assert "add a row to the table" in message


def test_a_relative_import_in_a_package_starts_at_the_package() -> None:
    source = "from .spec import Spec\nfrom ..ports import Store"
    (message,) = violations("prime_train.core", source, is_package=True)
    assert "prime_train.runs.store" in message
