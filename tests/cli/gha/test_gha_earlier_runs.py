"""A pull request's comment ranks machines by what earlier runs have shown, with a key that permits nothing
else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, RunState
from prime_train.runs.signing import market_key
from prime_train.spec.causes import Cause
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.cli.gha.job import GOOD, Did, Job
from tests.fakes.http import Response, ScriptedServer
from tests.webhook.calls import MASTER, webhook

CONFIG = GOOD.replace("usd_per_hour_max: 2", "gpus: [H100_80GB]")
KEY = market_key(MASTER)
SPOT, STEADY = "| $2.90 |", "| $4.60 |"
ASSUMED = "Losses and start times are assumptions, because "
UNREAD = ASSUMED + "what earlier runs show could not be read."
NO_KEY = ASSUMED + "this job has no key to read what earlier runs show."


@pytest.fixture(name="url", scope="module")
def _url() -> Iterator[str]:
    """Return the address of a control plane whose spot machines were lost after half an hour, thirty times in
    thirty hours.
    """
    store = MemoryStore()
    now_s = store.now_s()
    lost = tuple(_lost(number, now_s - number * 3600) for number in range(1, 31))
    assert store.create(replace(b.run(RunState.STOPPED), attempts=lost, attempt=30))
    with Server(webhook(store)) as server:
        yield server.url


def _lost(number: int, at_s: int) -> Attempt:
    end_s = at_s + 1800
    attempt = b.new_attempt(
        number,
        RunState.QUEUED,
        offer=Offer("prime", "s", 2.9, spot=True),
        launched_s=at_s,
        cause=Cause.PREEMPTED,
    )
    attempt = replace(attempt, first_heartbeat_s=at_s + 300, first_step_s=at_s + 1500)
    return replace(attempt, last_sign_s=end_s, fenced_s=end_s, ended_s=end_s)


@dataclass(frozen=True)
class Commented:
    """The result of the step, and the pull request's comment without Markdown's escapes."""

    did: Did
    text: str

    @property
    def warnings(self) -> str:
        return "\n".join(rest for level, rest in self.did.annotations if level == "warning")


def commented(
    job: Job, prices: Mapping[str, str], files: Mapping[str, str] | None = None, **env: str
) -> Commented:
    job.commit(files or {"configs/small.yaml": CONFIG}, "change")
    number = job.fake.add_pull(job.repo, "change", author="ann")
    did = job.run("validate", "pull_request", job.event("pull_request"), **prices, **env)
    assert did.code == 0, did.log
    (comment,) = job.fake.comments(job.repo, number)
    return Commented(did, comment["body"].replace("\\", ""))


def order(text: str) -> list[str]:
    """Return the prices in the order in which the machines would be tried."""
    tried = text[text.index("in the order in which") :]
    return sorted((SPOT, STEADY), key=tried.index)


def test_what_earlier_runs_lost_decides_and_the_key_is_masked(
    job: Job, prices: dict[str, str], url: str
) -> None:
    found = commented(job, prices, PRIME_TRAIN_STORE=url, PRIME_TRAIN_MARKET_KEY=KEY)
    assert order(found.text) == [STEADY, SPOT]
    assert (
        "Losses and start times as seen on 30 machines of this account, together with assumptions."
        in found.text
    )
    assert f"::add-mask::{KEY}" in found.did.log.splitlines()
    assert KEY not in found.did.log.replace(f"::add-mask::{KEY}", "") + found.did.summary + found.text
    assert found.warnings == ""


def test_without_a_key_as_on_a_forks_pull_request_assumptions_count(
    job: Job, prices: dict[str, str], url: str
) -> None:
    found = commented(job, prices, PRIME_TRAIN_STORE=url, PRIME_TRAIN_MARKET_KEY="")
    assert order(found.text) == [SPOT, STEADY]
    assert NO_KEY in found.text
    assert found.warnings == ""


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            {"PRIME_TRAIN_MARKET_KEY": MASTER.hex()},
            "PRIME_TRAIN_MARKET_KEY is not the key that prime-train key --market --show prints",
        ),
        (
            {"PRIME_TRAIN_MARKET_KEY": market_key(b"another")},
            "check that PRIME_TRAIN_MARKET_KEY is the market key of this control plane",
        ),
        ({"PRIME_TRAIN_STORE": ""}, "PRIME_TRAIN_MARKET_KEY is set, PRIME_TRAIN_STORE is not"),
        ({"PRIME_TRAIN_STORE": "http://127.0.0.1:9"}, "127.0.0.1:9/v1/market got no answer"),
    ],
    ids=["the master key in its place", "another control plane's", "no address", "nobody there"],
)
def test_what_is_wrong_is_a_warning_and_assumptions_count(
    job: Job, prices: dict[str, str], url: str, env: dict[str, str], words: str
) -> None:
    found = commented(job, prices, None, **({"PRIME_TRAIN_STORE": url, "PRIME_TRAIN_MARKET_KEY": KEY} | env))
    assert order(found.text) == [SPOT, STEADY]
    assert UNREAD in found.text
    assert words in found.warnings
    assert not [key for key in (KEY, MASTER.hex()) if key in found.text + found.warnings + found.did.summary]


def test_garbage_is_no_reason_to_fail(job: Job, prices: dict[str, str]) -> None:
    with ScriptedServer(Response(200, b'{"reputation": "::error::good"}')) as there:
        found = commented(job, prices, PRIME_TRAIN_STORE=there.url, PRIME_TRAIN_MARKET_KEY=KEY)
    assert UNREAD in found.text
    assert "cannot be parsed; it may be of another version" in found.warnings


def test_the_master_key_is_not_used_in_its_place(job: Job, prices: dict[str, str]) -> None:
    with ScriptedServer(Response(200, b"{}")) as there:
        found = commented(
            job, prices, PRIME_TRAIN_STORE=there.url, PRIME_TRAIN_MASTER_KEY="ab" * 32, CI="true"
        )
        assert there.requests == []
    assert NO_KEY in found.text
    assert "PRIME_TRAIN_MASTER_KEY is not used here, and should not be set" in found.warnings
