"""The tests that may be skipped where everything that they need has been installed.

With PRIME_TRAIN_TESTS_COMPLETE set, as CI sets it, a skip for any other reason fails the test run, because a
silently skipped test protects nothing.
"""

import os
import re
from collections.abc import Iterable

import pytest

COMPLETE = "PRIME_TRAIN_TESTS_COMPLETE"
ALLOWED = {
    r"an account is asked only with -m aws": "it costs money, and asks an account of somebody's",
    r"this stack lends no keys": "a property of the account that is asked",
    r"root reads every file": "CI runs as root, for whom no file is unreadable",
    r"there is nothing that could be wrong in it": "requests without a body or a query",
    r"there is no driver of a GPU here": "CI has no GPU; the same is tried with a fake driver",
    r"there is a driver": "what is said without a driver cannot be seen where there is one",
    r"lets nobody have namespaces": "some systems forbid user namespaces; what is refused there is tested",
    r"only root can give a folder": "CI runs as root, and so does the test",
    r"need a Python below 3\.13": "verl and AReaL cannot be installed with newer ones; CI has an older one",
    r"there is no Kubernetes control plane here": "it takes ten minutes to build: make test-kubernetes",
    r"may not mount a small disk here": "some systems forbid user namespaces",
}
"""Patterns of the reasons that tests give, and why that is acceptable."""


def unlisted(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """Return a line for each skipped test whose reason is not in `ALLOWED`."""
    skips = [(report.nodeid, report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple)]
    return [
        f"{nodeid}: {reason}"
        for nodeid, reason in skips
        if not any(re.search(pattern, reason) for pattern in ALLOWED)
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a complete test run that skipped a test for an unlisted reason."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get(COMPLETE) or reporter is None or hasattr(session.config, "workerinput"):
        return
    lines = unlisted(reporter.stats.get("skipped", ()))
    for line in lines:
        reporter.write_line(f"skipped, and not listed in tests/skips.py: {line}", red=True)
    if lines:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
