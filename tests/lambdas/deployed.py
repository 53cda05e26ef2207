"""The control plane as deployed by `prime-train deploy`, on AWS on loopback, renting from a fake Prime
Intellect.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_train.aws.code import own
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.stores.dynamo.store import DynamoStore
from tests.cli import shell
from tests.e2e.prime_plane import ROWS, python
from tests.fakes.aws import Aws, aws
from tests.fakes.nvml import Driver
from tests.fakes.prime import FakePrime
from tests.fakes.s3_servers import REGION

BIN = Path(sys.executable).parent
STACK = "training"


@dataclass(frozen=True)
class Deployed:
    """A stack, its provider, and the environment of an operator's shell. `outputs`: as the command saved
    them.
    """

    cloud: Aws
    fake: FakePrime
    env: Mapping[str, str]
    outputs: Mapping[str, str]
    key: str
    first_words: str
    code: Path

    @property
    def url(self) -> str:
        return self.outputs["Url"]

    @property
    def store(self) -> DynamoStore:
        return open_dynamo(f"dynamodb://{self.outputs['Table']}?region={REGION}", self.cloud.env)

    @property
    def operator(self) -> dict[str, str]:
        """Return the environment of a user who has the address, the key, and keys to the bucket."""
        return {**self.env, "PRIME_TRAIN_STORE": self.url, "PRIME_TRAIN_MASTER_KEY": self.key}

    def watch(self, **event: object) -> dict[str, Any]:
        """Invoke the watcher and wait for its result."""
        output = self.cloud.client("lambda").invoke(
            FunctionName=self.outputs["Watcher"], Payload=json.dumps(event)
        )
        done = json.loads(output["Payload"].read())
        assert "FunctionError" not in output, done
        assert isinstance(done, dict)
        return done

    def logs(self) -> str:
        """Return the functions' logs of finished calls, and the log of AWS on loopback."""
        logs = self.cloud.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        pages = [
            page
            for group in groups
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        ]
        reported = [event["message"] for page in pages for event in page["events"]]
        return "\n".join([*reported, self.cloud.log.read_text(errors="replace")])


def prime_train(env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return shell.run([shell.PROGRAM, *words], Path.cwd(), env)


def output(env: Mapping[str, str], *words: str) -> str:
    done = prime_train(env, *words)
    assert done.returncode == 0, (
        f"prime-train {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


def code_in(folder: Path) -> Path:
    """Write a zip of prime-train's own files, whose dependencies are in the tests' environment, and return
    its path.
    """
    path = folder / "code.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in own().items():
            archive.writestr(name, data)
    return path


@contextmanager
def deployed(folder: Path, driver: Driver | None = None, *, policy: str = "") -> Iterator[Deployed]:
    """Deploy. `driver`: describes the machines' GPUs; None: they have none. `policy`: the operator's, as
    YAML.
    """
    with aws(folder / "aws") as cloud, FakePrime(folder / "prime", running=True) as fake:
        fake.rows = ROWS
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PRIME_", "AWS_"))}
        env = {**plain, **cloud.env, "PRIME_TRAIN_HOME": str(folder / "home")}
        code, secrets = code_in(folder), _secrets(folder, fake, driver)
        given = [word for name in secrets for word in ("--secret", name)] + (
            ["--set", f"Policy={policy}"] if policy else []
        )
        first = output({**env, **secrets}, "deploy", "--stack", STACK, "--yes", "--code", str(code), *given)
        address = cloud.address_of(_outputs(folder)["FunctionUrl"])
        output(env, "deploy", "--stack", STACK, "--yes", "--code", str(code), "--public-url", address)
        key = output(env, "doctor", "--stack", STACK, "--show-key").strip()
        yield Deployed(cloud, fake, env, _outputs(folder), key, first, code)


def _outputs(folder: Path) -> dict[str, str]:
    outputs: dict[str, str] = json.loads((folder / "home" / f"aws-{STACK}.json").read_text())
    return outputs


def _secrets(folder: Path, fake: FakePrime, driver: Driver | None) -> dict[str, str]:
    image = python(folder / "python", driver.env if driver is not None else {})
    rents = {
        "PRIME_API_KEY": fake.api_key,
        "PRIME_API_BASE_URL": fake.url,
        "PRIME_TRAIN_POD_PYTHON": str(image),
    }
    return {**rents, "HF_TOKEN": "hf-secret-value"}
