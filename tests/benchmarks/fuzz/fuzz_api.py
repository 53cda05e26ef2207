"""schemathesis against the webhook for minutes: whatever its description allows and much that it does not,
signed by the right keys.

    PYTHONPATH=. .venv/bin/python tests/benchmarks/fuzz/fuzz_api.py [--seconds 300] [--seed 1] [serve]
    [lambda]

`serve` is the server of `prime-train serve`, `lambda` the function by its address on AWS on loopback. Ends
with 1 where an answer is a server's error or none of those described, where a log holds a traceback or a
secret, or where what has run before cannot be read any more.
"""

import argparse
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from prime_train.runs.store import Store
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.webhook.server.serve import Server
from tests.fakes.aws import aws
from tests.lambdas.alone import KEY, SECRETS, alone
from tests.webhook.attacked import seen, two_runs
from tests.webhook.calls import webhook
from tests.webhook.leaks import keys_of, leaks

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)
HIDDEN = {"master key": KEY, **keys_of(bytes.fromhex(KEY))}
SLACK_S = 120
MASTER, BEFORE = "FUZZ_MASTER", "FUZZ_BEFORE"
"""Variables that give the hooks the master key, and the prefix of every path."""


@dataclass(frozen=True)
class Target:
    """A server to test. `logs`: its complete output."""

    url: str
    store: Store
    logs: Callable[[], str]


@contextmanager
def serve(folder: Path) -> Iterator[Target]:
    log = folder / "serve.log"
    logging.basicConfig(filename=log, level=logging.INFO)
    store = SqliteStore(folder / "control.sqlite")
    two_runs(store)
    with Server(webhook(store, bytes.fromhex(KEY))) as server:
        yield Target(server.url, store, log.read_text)
    store.close()


@contextmanager
def function(folder: Path) -> Iterator[Target]:
    with aws(folder / "aws") as cloud:
        made = alone(cloud, folder)
        two_runs(made.store)
        yield Target(made.url, made.store, made.logs)


TARGETS = {"serve": serve, "lambda": function}


def fuzzed(target: Target, seconds: int, seed: int) -> int:
    """Run schemathesis and return its exit code; it prints its own findings."""
    options = [
        "--checks",
        ",".join(CHECKS),
        "--max-time",
        str(seconds),
        "--seed",
        str(seed),
        "--continue-on-failure",
        "--warnings",
        "off",
    ]
    command = [
        str(Path(sys.executable).parent / "schemathesis"),
        "run",
        f"{target.url}/openapi.json",
        "--url",
        target.url,
        *options,
    ]
    env = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "tests.benchmarks.fuzz.fuzz_hooks",
        MASTER: KEY,
        BEFORE: urlsplit(target.url).path,
    }
    return subprocess.run(command, env=env, timeout=seconds + SLACK_S, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], default=[])
    parser.add_argument("--seconds", type=int, default=300, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    worst = 0
    for name in wanted.targets or TARGETS:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, TARGETS[name](Path(folder)) as target:
            print(f"{name} at {target.url}", flush=True)
            ended = fuzzed(target, wanted.seconds, wanted.seed)
            words = target.logs()
            found = ["a traceback"] * ("Traceback" in words) + leaks(
                words, {**HIDDEN, "HF_TOKEN": SECRETS["HF_TOKEN"]}
            )
            print(
                f"{name}: schemathesis ended with {ended}; in its logs: {', '.join(found) or 'nothing odd'}",
                flush=True,
            )
            seen(target.store)
            worst = max(worst, int(bool(ended or found)))
    return worst


if __name__ == "__main__":
    sys.exit(main())
