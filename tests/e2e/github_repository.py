"""A repository at the fake GitHub whose workflows, run by act, train on machines rented from the fake Prime
Intellect, over real SSH.

Everything runs as it would elsewhere: the control plane is a process that serves and watches nothing, or the
functions of a stack, which also watch; the jobs find it by its address and key alone. act copies the working
tree in place of a checkout, so `folder` is where an event's commit has to be.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_train.buckets.open import open_bucket
from prime_train.checkpoints.read_manifests import read_manifests
from prime_train.github.api import GitHub
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import attempt_key, operator_key
from prime_train.stores.remote import RemoteStore
from tests.cli.shell import PROGRAM, Shell, run
from tests.e2e.prime_plane import TWO_GPUS, TWO_MORE_GPUS, python
from tests.fakes.github import FakeGitHub
from tests.fakes.nvml import Driver
from tests.fakes.prime import EXAMPLES, FakePrime, Plan
from tests.fakes.prime.accounts import ApiKey
from tests.fakes.prime.pods import Pod
from tests.github import scratch
from tests.github.act import Act, Ran, act_program
from tests.github.workplace import REPO, Workplace
from tests.lambdas.deployed import deployed
from tests.waiting import await_true

BOOT_S = 2.0
"""Boot time of a machine: longer than the job that requests it runs."""
OFFERS_ONLY = ApiKey(scope={"availability": frozenset({"read"})})


@dataclass(frozen=True)
class Plane:
    """A control plane, and its provider. `python`: the Python in its machines' image. `logs`: its complete
    output. `opens`: what opens its bucket to the test.
    """

    url: str
    key: str
    prime: FakePrime
    python: Path
    logs: Callable[[], str]
    opens: Mapping[str, str] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """Return further variables of every step, which stand for the provider's own address and the
        machines' own Python.
        """
        return {"PRIME_API_BASE_URL": self.prime.url, "PRIME_TRAIN_POD_PYTHON": str(self.python)}


Planes = Callable[[Path, Driver], AbstractContextManager[Plane]]
"""A function that makes a control plane in a folder. The driver describes the GPUs of its machines."""


@dataclass
class Place(Workplace):
    plane: Plane = field(kw_only=True)
    rans: list[Ran] = field(default_factory=list)

    def run(self, workflow: str, event: str, payload: Mapping[str, Any] | None = None) -> Ran:
        """Run the workflow as a hosted runner does, which keeps nothing that a job leaves."""
        if payload is None:
            payload = [each["payload"] for each in self.github.events() if each["name"] == event][-1]
        ran = self.act.run(
            self.folder,
            workflow,
            event,
            payload,
            api_url=self.github.url,
            actor=payload["sender"]["login"],
            secrets=self.secrets,
            variables=self.variables,
            env={scratch.WARM: str(self.installed), "RUNNER_ENVIRONMENT": "github-hosted", **self.plane.env},
        )
        shutil.rmtree(self.act.home / ".prime-train", ignore_errors=True)
        self.rans.append(ran)
        self._keep(ran, f"{len(self.rans)}-{workflow}")
        return ran

    def _keep(self, ran: Ran, name: str) -> None:
        """Keep what a person would see, for an analysis: the log, the summary, and the state of GitHub
        afterwards.
        """
        reported = self.folder.parent / "told" / name
        reported.mkdir(parents=True)
        (reported / "log.txt").write_text(ran.reported)
        (reported / "act.json").write_text(ran.log)
        (reported / "summary.md").write_text(
            "".join(step.summary for step in ran.steps if step.place.endswith("/verb"))
        )
        for number, comment in enumerate(self.github.comments(REPO, 1), 1):
            (reported / f"comment-{number}.md").write_text(comment["body"])
        (reported / "deployments.json").write_text(json.dumps(self.github.deployments(REPO), indent=2))

    # --------------------------------------------------------------------------------------------------------
    # what people do

    def dispatch(self, by: str, workflow: str, inputs: Mapping[str, str], *, ref: str) -> Ran:
        """Run a workflow as by the button in the browser, and return the result."""
        person = GitHub(REPO, self.github.person_token(by), url=self.github.url)
        person.ask(
            "POST", f"actions/workflows/{workflow}/dispatches", body={"ref": ref, "inputs": dict(inputs)}
        )
        return self.run(workflow, "workflow_dispatch")

    def say(self, by: str, body: str) -> Ran:
        self.github.comment(REPO, 1, author=by, body=body)
        return self.run("stop.yml", "issue_comment")

    def tick(self) -> Ran:
        """Run the scheduled workflow."""
        return self.run("watch.yml", "schedule", self.github.schedule(REPO, "7-59/10 * * * *"))

    def laptop(self, *words: str) -> str:
        """Return the output of `prime-train` for a user who has the address, the key, and a key of the
        provider; the call must succeed.
        """
        home = self.folder.parent / "laptop"
        home.mkdir(exist_ok=True)
        plane = {
            "PRIME_TRAIN_STORE": self.plane.url,
            "PRIME_TRAIN_MASTER_KEY": self.plane.key,
            "PRIME_API_KEY": self.prime.api_key,
        }
        env = {"PATH": os.environ["PATH"], "HOME": str(home), **plane, **self.plane.env}
        done = run([PROGRAM, *words], Path.cwd(), env)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    # --------------------------------------------------------------------------------------------------------
    # what there is

    @property
    def prime(self) -> FakePrime:
        return self.plane.prime

    @property
    def store(self) -> RemoteStore:
        return RemoteStore(self.plane.url, bytes.fromhex(self.plane.key))

    @property
    def record(self) -> RunRecord:
        """Return the only run."""
        (run,) = self.store.list_runs()
        record = self.store.load(run.run_id)
        assert record is not None
        return record

    @property
    def newest_step(self) -> int:
        """Return the newest step with a complete checkpoint in the bucket."""
        bucket, run = open_bucket(self.store.about().bucket_url, self.plane.opens), self.record.run
        return max(
            (manifest.step for manifest in read_manifests(bucket, run.run_id, attempt=run.attempt)), default=0
        )

    def await_step(self, step: int) -> Pod:
        """Wait until this many steps are made and one of them is durable. Return the only machine that is
        paid for.
        """
        await_true(f"step {step} is made", lambda: self._has_made(step))
        (pod,) = self.prime.alive
        return pod

    def _has_made(self, step: int) -> bool:
        lease = self.record.lease
        return (
            lease.open
            and lease.committed_step > 0
            and lease.heartbeat is not None
            and lease.heartbeat.step >= step
        )

    def await_quiet(self) -> None:
        """Wait until a heartbeat is missed."""
        await_true("a heartbeat is missed", lambda: time.time() > (self.record.lease.heartbeat_s or 0) + 2)

    def comment(self, of: str) -> str:
        """Return the text of the only comment about it."""
        (output,) = [
            each["body"]
            for each in self.github.comments(REPO, 1)
            if each["body"].startswith(f"<!-- prime-train:{of}")
        ]
        return str(output)

    def everything_told(self) -> str:
        """Return everything that readers of the repository can see: logs, summaries, comments, deployments;
        and the control plane's own output. Lines that tell GitHub what to mask are left out, because GitHub
        does not show them.
        """
        logs = [
            line for ran in self.rans for line in ran.log.splitlines() if '"command":"add-mask"' not in line
        ]
        return "\n".join(
            [
                *logs,
                json.dumps(self.github.comments(REPO, 1)),
                json.dumps(self.github.deployments(REPO)),
                self.plane.logs(),
            ]
        )

    def _keys(self) -> Iterator[tuple[str, str]]:
        """Yield the keys in secrets that have several."""
        for name in ("PRIME_TRAIN_CREDENTIALS", "PRIME_TRAIN_OFFERS_KEYS"):
            if name in self.secrets:
                yield name, json.loads(self.secrets[name])["PRIME_API_KEY"]

    def all_secrets(self) -> dict[str, str]:
        """Return all secrets, by purpose."""
        master, run_id = bytes.fromhex(self.secrets["PRIME_TRAIN_MASTER_KEY"]), self.record.run.run_id
        agents = {
            f"the key of attempt {attempt}": attempt_key(master, run_id, attempt)
            for attempt in range(1, self.record.run.attempt + 1)
        }
        tokens = {name: value for name, value in self.variables.items() if name.startswith("TOKEN_")}
        keys = {f"the key in {name}": key for name, key in self._keys()}
        return {**self.secrets, **keys, **tokens, **agents, "the watchers' key": operator_key(master)}


@contextmanager
def served(folder: Path, driver: Driver) -> Iterator[Plane]:
    """Run one process that serves, and leaves watching to the jobs."""
    folder.mkdir()
    shell = Shell(folder)
    with (
        FakePrime(folder / "prime", running=True) as prime,
        shell.started("serve", "--port", "0", "--no-watch", until="serving "),
    ):
        output = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        image = python(folder / "python", driver.env)
        yield Plane(
            output["PRIME_TRAIN_STORE"], output["PRIME_TRAIN_MASTER_KEY"], prime, image, lambda: shell.output
        )


@contextmanager
def on_lambdas(folder: Path, driver: Driver) -> Iterator[Plane]:
    """Run the functions of a stack. The watcher is invoked whenever there is news and each minute, so that
    with a job's there are two.
    """
    with deployed(folder, driver) as stack:
        yield Plane(stack.url, stack.key, stack.fake, folder / "python", stack.logs, stack.cloud.env)


@contextmanager
def place(folder: Path, plane: Plane) -> Iterator[Place]:
    """Create the repository with a main branch that contains only the workflows."""
    program = act_program()
    assert program, "mark the test with needs_act"
    project = scratch.product(folder / "project", has_code=False)
    installed = scratch.warm(folder / "installed" / "prime-train", project)
    plane.prime.rows = [*EXAMPLES, TWO_GPUS, TWO_MORE_GPUS]
    plane.prime.plan = Plan(provision_s=BOOT_S)
    offers_key = f"pit_{secrets.token_hex(16)}"
    plane.prime.world.api_keys[offers_key] = OFFERS_ONLY
    with FakeGitHub(running=True) as github:
        here = Place(
            github,
            Act(program, folder / "act", scratch.folders(project)),
            installed,
            folder / "models",
            plane=plane,
        )
        here.variables["PRIME_TRAIN_URL"] = plane.url
        here.secrets |= {
            "PRIME_TRAIN_MASTER_KEY": plane.key,
            "PRIME_TRAIN_CREDENTIALS": json.dumps({"PRIME_API_KEY": plane.prime.api_key}),
            "PRIME_TRAIN_OFFERS_KEYS": json.dumps({"PRIME_API_KEY": offers_key}),
        }
        yield here
        assert github.violations == []
