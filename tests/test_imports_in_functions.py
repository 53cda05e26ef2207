"""Imports are at the top of a module; inside a function only with a reason in this table, or in a command."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src", "agent", "lambdas")

FAST = (
    "validate, lint and the webhook's Lambda start without what they do not need: rich, the rules of other "
    "trainers, the dashboard"
)
CHOSEN = "of several adapters, each with its libraries, only the one that is configured is loaded"
OPTIONAL = "the library is an extra, or only there for some platforms, and most calls do without it"

ALLOWED = {
    "src/prime_train/__init__.py": (2, FAST),
    "src/prime_train/buckets/open.py": (2, CHOSEN),
    "src/prime_train/providers/kubernetes/provider.py": (2, OPTIONAL),
    "src/prime_train/spec/reader.py": (1, FAST),
    "src/prime_train/configs/loader.py": (1, FAST),
    "src/prime_train/github/app.py": (1, OPTIONAL),
    "src/prime_train/github/oidc.py": (2, OPTIONAL),
    "src/prime_train/alerts/slack/settings.py": (5, CHOSEN),
    "src/prime_train/checkpoints/codec.py": (2, "numpy is loaded only for files that it makes smaller"),
    "src/prime_train/checks/report/check.py": (4, FAST),
    "src/prime_train/client.py": (2, OPTIONAL),
    "src/prime_train/clock.py": (1, OPTIONAL),
    "src/prime_train/watch/read_back.py": (1, "the codecs are loaded only where checkpoints are read"),
    "src/prime_train/webhook/handling.py": (2, FAST),
    "src/prime_train/app/embedded.py": (1, OPTIONAL),
    "src/prime_train/github/auth.py": (3, CHOSEN),
    "src/prime_train/app/home.py": (7, CHOSEN),
    "src/prime_train/app/notifiers.py": (2, CHOSEN),
    "src/prime_train/app/pod_keys.py": (1, CHOSEN),
    "src/prime_train/providers/configured.py": (3, CHOSEN),
    "src/prime_train/text/nearest.py": (1, FAST),
    "src/prime_train/app/machines.py": (3, OPTIONAL),
    "src/prime_train/app/serve.py": (1, OPTIONAL),
    "src/prime_train/checks/validate.py": (1, FAST),
    "src/prime_train/launch/launch.py": (1, "the detector is slow to load, and only a launch needs it"),
    "src/prime_train/pages/charts/png.py": (1, OPTIONAL),
    "src/prime_train/text/explained_errors.py": (2, FAST),
    "src/prime_train/checks/engine.py": (1, FAST),
    "src/prime_train/checks/recovery.py": (2, FAST),
    "src/prime_train/checks/spec_rules.py": (1, FAST),
    "src/prime_train/trainers/patterns.py": (1, FAST),
    "agent/prime_agent/gpu/driver.py": (2, OPTIONAL),
    "agent/prime_agent/before_training/all_reduce_program.py": (
        3,
        "the program runs in the trainer's Python, and says where that has no torch",
    ),
    "lambdas/prime_lambdas/webhook.py": (9, FAST),
}
"""Number of such imports and the reason, by file. A cycle is not a reason, because it can be broken."""


def is_command(path: Path) -> bool:
    """Return whether the module is of a command: its help needs what stands at the top, and only running it
    needs what its functions import.
    """
    return "commands" in (*path.parent.parts, path.stem)


def in_functions(text: str) -> int:
    """Return the number of import statements at any depth inside functions."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return len(
        {
            inner
            for function in functions
            for inner in ast.walk(function)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        }
    )


def test_imports_stand_at_the_top_but_where_there_is_a_reason() -> None:
    found = Counter[str]()
    for path in (
        path for source in SOURCES for path in (ROOT / source).rglob("*.py") if not is_command(path)
    ):
        found[path.relative_to(ROOT).as_posix()] = in_functions(path.read_text(encoding="utf-8"))
    assert {file: count for file, count in found.items() if count} == {
        file: count for file, (count, _) in ALLOWED.items()
    }


def test_an_import_is_found_however_deep_it_stands() -> None:
    assert in_functions("import a\nif a:\n    from b import c") == 0
    assert (
        in_functions(
            "class A:\n    def f(self):\n        def g():\n            import a\n        if a:\n            "
            "from b import c"
        )
        == 2
    )
