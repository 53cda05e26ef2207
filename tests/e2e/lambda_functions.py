"""A control plane on two functions that serves many runs, and the wires to it at which a test may wait for a request.

What machines and functions ask goes through proxies, for what a bucket of S3 and a provider are asked no file tells. The process that
asks is found by the port from which it has connected, so it is killed in the middle of what it does. A function's next call then gets a
new process.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from prime_lambdas.homes import FOLDER_CHARS, ROOT
from prime_train.adapters.bucket import open_bucket
from prime_train.ports import Bucket, Store
from tests.e2e.plane import await_true
from tests.fakes.faulty_proxy import FaultyProxy
from tests.lambdas.deployed import Deployed, deployed


@dataclass
class Functions:
    """A deployment, and the wires to it: of the machines to the bucket and the webhook, of the webhook to all that is AWS's, of the watcher
    to the bucket, and of the watcher to the provider."""

    here: Deployed
    gates: Mapping[str, FaultyProxy]
    lambdas: Any

    @cached_property
    def store(self) -> Store:
        return self.here.store

    @cached_property
    def bucket(self) -> Bucket:
        return open_bucket(f"s3://{self.here.outputs['Bucket']}", self.here.env)

    def look(self) -> str:
        """Calls the watcher; why the call failed."""
        answer = self.lambdas.invoke(FunctionName=self.here.outputs["Watcher"], Payload=b'{"news":true}')
        return answer["Payload"].read().decode() if "FunctionError" in answer else ""

    def worker(self, output: str) -> psutil.Process:
        """The process that runs the function now. Other deployments of this test process have functions of the same name, and a child that
        a function has just begun is for a moment like it."""
        mark = f"ministack-lambda-{self.here.outputs[output]}-"
        found = [process for process in psutil.Process(self.here.cloud.pid).children() if any(mark in word for word in _words(process))]
        assert len(found) == 1, f"{len(found)} processes run {output}"
        return found[0]

    def lose_disk(self) -> None:
        """What the watcher has kept on the disk of its environment."""
        shutil.rmtree(ROOT / hashlib.sha256(bytes.fromhex(self.here.key)).hexdigest()[:FOLDER_CHARS], ignore_errors=True)

    def bring(self, image: str) -> None:
        """What machines have for a Python from now on."""
        (self.here.code.parent / "python").write_text(image)


@contextmanager
def functions(folder: Path) -> Iterator[Functions]:
    with ExitStack() as ends:
        here = ends.enter_context(deployed(folder))
        backs = {**dict.fromkeys(("machines", "webhook", "watcher"), here.cloud.url), "provider": here.fake.url}
        gates = {name: ends.enter_context(FaultyProxy(back)) for name, back in backs.items()}
        _connect(here, {name: gate.url for name, gate in gates.items()})
        on = Functions(here, gates, here.cloud.client("lambda"))
        ends.callback(on.lose_disk)
        yield on


def _connect(here: Deployed, urls: Mapping[str, str]) -> None:
    """By way of the gates from now on. The clock calls nobody any more: its call lasts for most of a minute, and here a function has one
    process only, for which all others would wait."""
    scheduler = here.cloud.client("scheduler")
    for schedule in scheduler.list_schedules()["Schedules"]:
        scheduler.delete_schedule(Name=schedule["Name"])
    public = urls["machines"] + here.url.removeprefix(here.cloud.url)
    _change(here, "Webhook", {"PRIME_TRAIN_URL": public, "AWS_ENDPOINT_URL": urls["webhook"]})
    _change(here, "Watcher", {"PRIME_TRAIN_URL": public, "AWS_ENDPOINT_URL_S3": urls["watcher"]})
    vault = here.cloud.client("secretsmanager")
    values = json.loads(vault.get_secret_value(SecretId=here.outputs["Secret"])["SecretString"])
    values |= {"PRIME_API_BASE_URL": urls["provider"], "PRIME_TRAIN_POD_AWS_ENDPOINT_URL": urls["machines"]}
    vault.put_secret_value(SecretId=here.outputs["Secret"], SecretString=json.dumps(values))


def _change(here: Deployed, output: str, variables: Mapping[str, str]) -> None:
    lambdas, name = here.cloud.client("lambda"), here.outputs[output]
    before = lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": {**before, **variables}})


def process_at(port: int) -> psutil.Process:
    """Who has connected from that port of loopback."""
    pids = {one.pid for one in psutil.net_connections("tcp4") if one.laddr and one.laddr.port == port} - {None, os.getpid()}
    assert len(pids) == 1, f"{len(pids)} processes have connected from port {port}"
    return psutil.Process(pids.pop())


def kill(process: psutil.Process) -> None:
    process.kill()
    with suppress(psutil.NoSuchProcess):
        await_true("it is dead", lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, limit_s=10)


def _words(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return ()
