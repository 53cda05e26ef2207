"""A control plane on two functions that serves many runs, with proxies in its connections at which a test can
wait for a request.

Requests of machines and functions go through proxies, because no file shows what is requested from S3 or a
provider. The process that sends a request is found by the port from which it has connected, so it can be
killed in the middle of its work. A function's next call then gets a new process.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from prime_lambdas.homes import FOLDER_CHARS, ROOT
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.runs.store import Store
from tests.fakes.faulty_proxy import FaultyProxy
from tests.lambdas.deployed import Deployed, deployed
from tests.waiting import await_true


@dataclass
class Functions:
    """A deployment, and the proxies in its connections: from the machines to the bucket and the webhook, from
    the webhook to AWS, from the watcher to the bucket, and from the watcher to the provider.
    """

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
        """Invoke the watcher; return why the call failed."""
        answer = self.lambdas.invoke(FunctionName=self.here.outputs["Watcher"], Payload=b'{"news":true}')
        return answer["Payload"].read().decode() if "FunctionError" in answer else ""

    def worker(self, output: str) -> psutil.Process:
        """Return the process that runs the function now. Other deployments of this test process have
        functions of the same name, and a child that a function has just started looks like it for a moment.
        """
        mark = f"ministack-lambda-{self.here.outputs[output]}-"
        found = [
            process
            for process in psutil.Process(self.here.cloud.pid).children()
            if any(mark in word for word in _words(process))
        ]
        assert len(found) == 1, f"{len(found)} processes run {output}"
        return found[0]

    def lose_disk(self) -> None:
        """Delete what the watcher has kept on the disk of its environment."""
        shutil.rmtree(
            ROOT / hashlib.sha256(bytes.fromhex(self.here.key)).hexdigest()[:FOLDER_CHARS], ignore_errors=True
        )

    def bring(self, image: str) -> None:
        """Set the Python of machines from now on."""
        (self.here.code.parent / "python").write_text(image)


@contextmanager
def functions(folder: Path) -> Iterator[Functions]:
    with ExitStack() as ends:
        here = ends.enter_context(deployed(folder))
        backs = {
            **dict.fromkeys(("machines", "webhook", "watcher"), here.cloud.url),
            "provider": here.fake.url,
        }
        gates = {name: ends.enter_context(FaultyProxy(back)) for name, back in backs.items()}
        _connect(here, {name: gate.url for name, gate in gates.items()})
        on = Functions(here, gates, here.cloud.client("lambda"))
        ends.callback(on.lose_disk)
        yield on


def _connect(here: Deployed, urls: Mapping[str, str]) -> None:
    """Connect through the gates from now on. The schedule is switched off: its invocation lasts for most of a
    minute, and here a function has only one process, for which all others would wait.
    """
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
    lambdas.update_function_configuration(
        FunctionName=name, Environment={"Variables": {**before, **variables}}
    )


def process_at(port: int) -> psutil.Process:
    """Return the process that has connected to this process from that port of loopback."""
    # A port may be in use for several connections at once, each with another server.
    ours = {
        each.laddr
        for each in psutil.Process().net_connections("tcp4")
        if each.raddr and each.raddr.port == port
    }
    holders = {
        process.pid: process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _is_connected(process, port, ours)
    }
    # A child that has not yet begun its own program shares the connections of its parent.
    elders = [process for process in holders.values() if process.ppid() not in holders]
    assert len(elders) == 1, f"{len(elders)} processes have connected from port {port}"
    return elders[0]


def _is_connected(process: psutil.Process, port: int, to: Collection[object]) -> bool:
    try:
        return any(
            each.laddr and each.laddr.port == port and each.raddr in to
            for each in process.net_connections("tcp4")
        )
    except psutil.Error:  # it has ended, or is not ours
        return False


def kill(process: psutil.Process) -> None:
    process.kill()
    with suppress(psutil.NoSuchProcess):
        await_true("it is dead", lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


def _words(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return ()
