"""Hold a provider's fake against what the provider really answered: `python -m tests.fakes.compare FILE`,
with the file of a drill.

The adapter makes the calls of a drill to the fake, and the shapes of its answers are compared with those in
the file: fields that only one has, types, statuses, and values of fields all of whose values are known.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_train.errors import TemporaryError
from prime_train.launch.provider_drill.recording import Recorder
from prime_train.providers.answers.known import KnownAnswer, answer_in, call_of
from prime_train.providers.answers.shape import differences, merged, shape
from prime_train.providers.configured import load
from prime_train.providers.look import look_with
from prime_train.providers.port import ProviderContext, SshAddress
from prime_train.runs.wire import Ticket
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.fakes.answers import table_of
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud
from tests.fakes.prime import FakePrime
from tests.fakes.prime.pods import Plan as PrimePlan
from tests.fakes.runpod import FakeRunPod
from tests.fakes.vast import FakeVast

BOOT_S = 60.0
NAME = "pt-drill-abcde-e1-a0123456789abcdef"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakefakefakefakefakefakefakefakefakefakefak fake"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Stand:
    """How the fake of a provider is set up and reached. `boots`: let later machines take so many seconds to
    start.
    """

    fake: Callable[[Path], AbstractContextManager[Any]]
    settings: Callable[[Any], dict[str, str]]
    boots: Callable[[Any, float], None]


def _boots(fake: Any, boot_s: float) -> None:
    fake.plan.boot_s = boot_s


def _prime_boots(fake: FakePrime, boot_s: float) -> None:
    fake.plan = PrimePlan(provision_s=boot_s / 2, install_s=boot_s / 2)


STANDS = {
    "lambda": Stand(
        lambda folder: FakeLambdaCloud(),
        lambda fake: {"LAMBDA_API_KEY": API_KEY, "LAMBDA_API_BASE_URL": fake.url},
        _boots,
    ),
    "runpod": Stand(
        lambda folder: FakeRunPod(),
        lambda fake: {"RUNPOD_API_KEY": fake.api_key, "RUNPOD_API_BASE_URL": fake.url},
        _boots,
    ),
    "vast": Stand(
        lambda folder: FakeVast(), lambda fake: {"VAST_API_KEY": fake.api_key, "VAST_URL": fake.url}, _boots
    ),
    "prime": Stand(
        lambda folder: FakePrime(folder, machines=False),
        lambda fake: {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url},
        _prime_boots,
    ),
}


def played(provider: str, change: Callable[[Any], None] = lambda fake: None) -> Sequence[Row]:
    """Return what the fake answers to the calls of a drill. `change`: changes the fake before."""
    stand = STANDS[provider]
    with tempfile.TemporaryDirectory() as folder, stand.fake(Path(folder) / "fake") as fake:
        change(fake)
        recorder = Recorder(table_of(provider), ())
        context = ProviderContext(
            Path(folder),
            stand.settings(fake),
            bytes(32),
            install=_installs_nothing,
            public_key=lambda: PUBLIC_KEY,
            unreachable_reason=lambda: "",
            witness=recorder,
        )
        _play(provider, fake, context)
        return recorder.rows()


def _play(provider: str, fake: Any, context: ProviderContext) -> None:
    """Rent a machine that takes its time to start, and another one that is there at once."""
    hardware = HardwareSpec(provider=provider, spot=Spot.NEVER)
    rented = load(provider, context)
    offer = look_with(provider, rented, hardware).cheapest
    assert offer is not None
    pods = rented.pods()
    pods.list()
    STANDS[provider].boots(fake, BOOT_S)
    pod = pods.create(NAME, offer, hardware)
    pods.list()
    pods.get(pod.pod_id)
    fake.advance(2 * BOOT_S)
    pods.list()
    seen = pods.get(pod.pod_id)
    assert seen is not None
    ticket = Ticket(
        run="drill-abcde",
        attempt=1,
        url="https://plane.example",
        key="k" * 64,
        now_s=1,
        identity="0123456789abcdef",
    )
    pods.put_agent(seen, ticket)
    look_with(provider, rented, hardware)
    pods.terminate(pod.pod_id)
    pods.get(pod.pod_id)
    pods.list()
    STANDS[provider].boots(fake, 0.0)
    second = pods.create(NAME.replace("-e1-", "-e2-"), offer, hardware)
    pods.get(second.pod_id)
    pods.terminate(second.pod_id)
    account = rented.account()
    if account is not None:
        account.funds()
        _try(account.bills)


def _try(ask: Callable[[], object]) -> None:
    """Ask for what may not be asked for so soon again."""
    try:
        ask()
    except TemporaryError:
        return


def _installs_nothing(connection: SshAddress, ticket: Ticket) -> None:
    """Install nothing."""


def compared(provider: str, recorded: Sequence[Row], fake: Sequence[Row]) -> Iterator[str]:
    """Yield what differs between the answers of a drill and those of the fake."""
    table = table_of(provider)
    real, known = _shapes(table, recorded), _shapes(table, fake)
    for (call, status), seen in real.items():
        if (call, status) in known:
            yield from (f"{call}: {status}: {text}" for text in differences(known[call, status], seen))
    for row in recorded:
        answer = answer_in(table, row["method"], row["path"], json.dumps(row["request"]), row["status"])
        if answer is None and row["status"]:
            yield f"{row['method']} {row['path']}: {row['status']}: a status that the fake never sends"
        elif answer is not None and row["body"] not in ("", None):
            yield from (f"{answer.call}: {row['status']}: {fault}" for fault in answer.faults(row["body"]))


def _shapes(
    table: Sequence[KnownAnswer], rows: Sequence[Row]
) -> dict[tuple[str, int], dict[str, frozenset[str]]]:
    found: dict[tuple[str, int], list[dict[str, frozenset[str]]]] = {}
    for row in rows:
        asked = json.dumps(row["request"])
        answer = answer_in(table, row["method"], row["path"], asked, row["status"])
        maps = answer.maps if answer is not None else ()
        call = call_of(table, row["method"], row["path"], asked)
        found.setdefault((call, row["status"]), []).append(shape(row["body"], maps=maps))
    return {key: merged(shapes) for key, shapes in found.items()}


def main(arguments: Sequence[str]) -> int:
    record = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    provider = record["provider"]
    if provider not in STANDS:
        print(f"there is no fake of {provider} to compare with")
        return 2
    found = list(dict.fromkeys(compared(provider, record["answers"], played(provider))))
    print("\n".join(found) or f"nothing differs between {len(record['answers'])} answers and the fake")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
