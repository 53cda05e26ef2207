"""Fixtures shared by tests of all parts: S3 servers, a driver for GPUs, a repository of prime-rl.

It also prints the figures of the kill matrix at the end of the test run.
"""

import gc
import io
import json
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from rich.console import Console
from rich.table import Table

from prime_train.environment import BACKGROUND
from prime_train.trainers.prime_rl.validators.validators import Validators
from tests.buckets import BUCKET
from tests.e2e.plane import MATRIX_ROW
from tests.fakes import prime_rl_configs, s3_servers
from tests.fakes.nvml import COMPILER, Driver, build
from tests.fakes.s3_servers import S3Server
from tests.skips import pytest_sessionfinish

__all__ = ["pytest_sessionfinish"]

pytest_plugins = ["tests.leftovers"]

# A command that launches a run would leave a control plane behind.
os.environ[BACKGROUND] = "no"

# How quick an example is says how busy the machine is, and nothing of the product.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# A shell starts what it runs in the background deaf to Ctrl-C, and so would be every program that a test
# interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all tests without looking for garbage, and never look at what they consist of again: a third of
    the time, in each worker.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_servers.ministack(tmp_path_factory.mktemp("ministack")) as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_servers.minio(tmp_path_factory.mktemp("minio")) as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("the fake driver is built with a C compiler, on Linux; there is none")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(nvml_library: Path, tmp_path: Path) -> Driver:
    """Return the driver of two GPUs that work."""
    return Driver(tmp_path, nvml_library)


@pytest.fixture(scope="session")
def prime_rl_repository(tmp_path_factory: pytest.TempPathFactory) -> prime_rl_configs.Repository:
    return prime_rl_configs.make(tmp_path_factory.mktemp("prime_rl"))


@pytest.fixture(scope="session")
def prime_rl_cache(
    prime_rl_repository: prime_rl_configs.Repository, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a cache in which the repository's newest commit is installed."""
    caches = tmp_path_factory.mktemp("caches")
    folder = caches / "prime-train" / "prime-rl"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in prime_rl_repository.env(caches / "home", caches).items():
            patch.setenv(name, value)
        Validators(prime_rl_repository.folder.as_uri(), folder, print).at(prime_rl_repository.commit)
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one row for each point at which something was killed, with the result."""
    reports = terminalreporter.stats.get("passed", [])
    rows = [
        json.loads(value)
        for report in reports
        for name, value in getattr(report, "user_properties", [])
        if name == MATRIX_ROW
    ]
    if not rows:
        return
    table = Table(*rows[0], title=f"kill matrix: {len(rows)} points")
    for row in sorted(rows, key=lambda row: str(row["point"])):
        table.add_row(*(str(value) for value in row.values()))
    text = io.StringIO()
    Console(file=text, width=140).print(table)
    terminalreporter.write_line(text.getvalue())
    attempts = sum(row["attempts"] for row in rows)
    terminalreporter.write_line(
        f"{len(rows)} runs, {attempts} attempts: all succeeded with the weights of an uninterrupted run; "
        "0 durable steps lost, 0 late commits, 0 pods or processes left"
    )
