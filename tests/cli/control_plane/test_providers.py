"""The provider from which machines are rented, and the messages before one is."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.errors import PermanentError, TemporaryError, UsageError
from prime_train.providers.configured import default_providers, is_set_up
from prime_train.runs.run import Run
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime

FIVE = (
    "name: five\ntrainer: {command: python -m train}\nhardware: {open_files_min: 256, "
    "disk_gib: "
    "1}\nbudget: {usd: 5}\n"
)


def home(folder: Path, **environment: str) -> Home:
    return Home.of({"PRIME_TRAIN_HOME": str(folder / "home"), "HOME": str(folder), **environment})


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        yield fake


def key(fake: FakePrime) -> dict[str, str]:
    return {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url}


@pytest.mark.parametrize(
    ("environment", "providers", "prime"),
    [
        ({}, "local", False),
        ({"PRIME_API_KEY": "k"}, "prime", True),
        ({"PRIME_API_KEY": "k", "PRIME_TRAIN_PROVIDER": "local"}, "local", True),
        ({"PRIME_TRAIN_PROVIDER": "prime"}, "prime", True),
        ({"PRIME_TRAIN_PROVIDER": " prime, prime"}, "prime", True),
    ],
)
def test_a_key_is_what_it_takes_and_the_choice_can_be_reported(
    environment: dict[str, str], providers: str, prime: bool
) -> None:
    assert (default_providers(environment), is_set_up("prime", environment)) == ((providers,), prime)


def test_a_provider_nobody_knows_is_refused() -> None:
    for named in ("aws", "prime,aws", "prime,local"):
        with pytest.raises(UsageError, match=f"'{named}'"):
            default_providers({"PRIME_TRAIN_PROVIDER": named})


def test_having_logged_in_once_rents_nothing(tmp_path: Path) -> None:
    (tmp_path / ".prime").mkdir()
    (tmp_path / ".prime" / "config.json").write_text(json.dumps({"api_key": "k"}))
    assert home(tmp_path).pods().names == {"local"}
    assert home(tmp_path, PRIME_TRAIN_PROVIDER="prime").pods().names == {"local", "prime"}


@pytest.mark.parametrize(
    ("url", "bucket", "output"),
    [
        ("http://127.0.0.1:7431", "s3://b", "https address"),
        ("http://train.example.org", "s3://b", "https address"),
        ("https://train.example.org", "", "could not reach the bucket"),
        ("https://train.example.org", "s3://b", ""),
    ],
)
def test_where_rented_machines_could_not_reach_us_none_is_rented(
    url: str, bucket: str, output: str, tmp_path: Path
) -> None:
    real = home(tmp_path, PRIME_API_KEY="k", PRIME_TRAIN_BUCKET=bucket).providers(url)
    assert output in real.of("prime").unreachable_reason()
    assert bool(output) == bool(real.of("prime").unreachable_reason())


def test_the_offers_of_a_provider_that_could_not_reach_us_say_so(tmp_path: Path) -> None:
    from prime_train.spec.spec import HardwareSpec

    with pytest.raises(PermanentError, match="https address"):
        home(tmp_path, PRIME_API_KEY="k").providers("http://127.0.0.1:1").pods.offers(HardwareSpec())


def test_a_provider_on_this_machine_reaches_us(tmp_path: Path, fake: FakePrime) -> None:
    assert home(tmp_path, **key(fake)).providers("http://127.0.0.1:1").of("prime").unreachable_reason() == ""


def test_a_dry_run_shows_what_prime_would_rent_out_and_why_not_the_rest(
    shell: Shell, fake: FakePrime
) -> None:
    (shell.here / "five.yaml").write_text(
        FIVE.replace("disk_gib: 1", "disk_gib: 50, gpus: [A100], usd_per_hour_max: 1.5")
    )
    done = shell.run("run", "five.yaml", "--dry-run", **key(fake))
    assert done.returncode == 0, done.stderr
    assert "launch on prime datacrunch:A100_80GB:PCIe:1x:FIN-01:secure:spot" in done.stdout
    assert "above hardware.usd_per_hour_max 1.50" in done.stdout
    assert "has H100_80GB, but hardware.gpus requires A100" in done.stdout
    assert not fake.requests_to("POST", "/pods/")


def test_a_dry_run_shows_the_variables_that_the_agent_would_set_by_version(
    shell: Shell, fake: FakePrime
) -> None:
    # The home is beside the code, because its keys would refuse the launch.
    (shell.here / "tree").mkdir(exist_ok=True)
    config = FIVE.replace("-m train}", "-m train, code: {folder: tree}}")
    config = config.replace("disk_gib: 1", "disk_gib: 50, gpus: [A100], usd_per_hour_max: 1.5")
    (shell.here / "five.yaml").write_text(config)
    shown = shell.run("run", "five.yaml", "--dry-run", **key(fake)).stdout
    assert (
        "PYTORCH_ALLOC_CONF=expandable_segments:True if torch 2.11 or newer is installed without vllm or "
        "sglang: freed memory" in shown
    )
    found = json.loads(shell.run("run", "five.yaml", "--dry-run", "--json", **key(fake)).stdout)[
        "environment"
    ]
    assert {row["variable"] for row in found} == {
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "TORCHINDUCTOR_FX_GRAPH_CACHE",
        "VLLM_ENGINE_READY_TIMEOUT_S",
    }
    (shell.here / "five.yaml").write_text(
        config + "environment: {PYTORCH_ALLOC_CONF: '', VLLM_ENGINE_READY_TIMEOUT_S: '60'}\n"
    )
    found = json.loads(shell.run("run", "five.yaml", "--dry-run", "--json", **key(fake)).stdout)[
        "environment"
    ]
    assert [row["variable"] for row in found] == ["TORCHINDUCTOR_FX_GRAPH_CACHE"]


def test_a_run_at_a_provider_without_a_key_says_what_to_do(shell: Shell) -> None:
    (shell.here / "five.yaml").write_text(FIVE.replace("disk_gib: 1", "disk_gib: 1, provider: prime"))
    done = shell.run("run", "five.yaml", "--dry-run")
    assert done.returncode == 4
    assert "set PRIME_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_that_prime_does_not_know_is_reported_in_a_line(shell: Shell, fake: FakePrime) -> None:
    (shell.here / "five.yaml").write_text(FIVE)
    done = shell.run("run", "five.yaml", "--dry-run", **(key(fake) | {"PRIME_API_KEY": "pit_wrong"}))
    assert done.returncode == 4
    assert "check PRIME_API_KEY" in done.stderr
    assert "pit_wrong" not in done.stdout + done.stderr


def test_a_public_address_that_is_none_is_refused(shell: Shell) -> None:
    done = shell.run("serve", "--public-url", "train.example.org")
    assert done.returncode == 2
    assert "https://train.example.org" in done.stderr


def test_the_run_remembers_who_rents_it_out(shell: Shell) -> None:
    (shell.here / "five.yaml").write_text(FIVE)
    shell.ok("run", "five.yaml")
    (run,) = Home.of(shell.env).store().list_runs()
    assert run.spec.hardware.provider == "local"


def test_a_placeholder_for_a_commit_is_refused_before_anything_is_queued(shell: Shell) -> None:
    (shell.here / "rl.toml").write_text("max_steps = 10\n")
    ref = "559b4477" + "0" * 32
    config = (
        f"name: rl\ntrainer: {{kind: prime_rl, steps: 10, prime_rl: {{config: rl.toml, "
        "ref: "
        f"{ref!r}}}}}\nbudget: {{usd: 5}}\n"
    )
    (shell.here / "rl.yaml").write_text(config)
    done = shell.run("run", "rl.yaml")
    assert done.returncode == 1
    assert "PT022" in done.stdout
    assert Home.of(shell.env).store().list_runs() == []


def test_an_agent_that_could_not_call_us_is_not_brought(tmp_path: Path) -> None:
    pods = home(tmp_path, PRIME_API_KEY="k").providers("http://127.0.0.1:1").pods
    ticket = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
    with pytest.raises(TemporaryError, match="https address"):
        pods.put_agent(Pod("prime/abc", "pt-tiny-1-e1", PodStatus.ACTIVE), ticket)


def test_the_address_that_machines_know_is_kept_when_it_is_not_reported_again(tmp_path: Path) -> None:
    serving = home(tmp_path, PRIME_TRAIN_URL="https://train.example.org/")
    serving.master()
    serving.write_serving("http://127.0.0.1:9123")
    assert home(tmp_path).public_url("http://127.0.0.1:9123") == "https://train.example.org"
    assert (
        home(tmp_path, PRIME_TRAIN_URL="https://new.example.org").public_url("http://127.0.0.1:9123")
        == "https://new.example.org"
    )
    assert home(tmp_path).public_url("http://127.0.0.1:9999") == "http://127.0.0.1:9999"


def test_no_key_is_shown_with_what_holds_it(tmp_path: Path) -> None:
    here = home(tmp_path, PRIME_API_KEY="pit_secret")
    shown = f"{here!r} {here.providers()!r}"
    assert "pit_secret" not in shown
    assert repr(here.master()) not in shown


def test_a_run_is_rented_from_whom_the_serving_control_plane_rents_and_finds_its_bucket(
    shell: Shell, fake: FakePrime
) -> None:
    (shell.here / "five.yaml").write_text(FIVE)
    elsewhere = (shell.here / "elsewhere").as_uri()
    with shell.started(
        "serve",
        "--port",
        "0",
        "--no-watch",
        until="renting from prime",
        **key(fake),
        PRIME_TRAIN_BUCKET=elsewhere,
    ):
        refused = shell.run("run", "five.yaml", "--without-rehearsal")
        assert refused.returncode == 2
        assert f"export PRIME_TRAIN_BUCKET={elsewhere}" in refused.stderr
        assert Home.of(shell.env).store().list_runs() == []
        done = shell.run("run", "five.yaml", "--without-rehearsal", PRIME_TRAIN_BUCKET=elsewhere)
        assert done.returncode == 0, done.stderr
        assert "provider prime" in done.stdout
    (run,) = Home.of(shell.env).store().list_runs()
    assert run.spec.hardware.provider == "prime"


def rented(store: Home, run_id: str) -> None:
    """Store a run whose machine was rented by the control plane of that store."""
    store.root.mkdir()
    context = replace(store.context("http://127.0.0.1:1"), canary=None)
    spec = b.spec(hardware={"gpus": ["A100"], "provider": "prime", "disk_gib": 50}, budget={"usd": 500.0})
    now_s = int(time.time())
    context.store.create(Run(run_id, spec, created_s=now_s))
    sweep(context, now_s)


def test_a_shell_that_has_a_teams_keys_but_not_its_store_ends_none_of_its_machines(
    shell: Shell, fake: FakePrime
) -> None:
    environment = {**shell.env, **key(fake), "PRIME_TRAIN_MASTER_KEY": "ab" * 32}
    team = Home.of({**environment, "PRIME_TRAIN_HOME": str(shell.here / "team")})
    rented(team, "team-1")
    (pod,) = fake.alive
    with shell.started(
        "serve",
        "--port",
        "0",
        "--interval",
        "0.2",
        until="belongs to this master key",
        **key(fake),
        PRIME_TRAIN_MASTER_KEY="ab" * 32,
    ):
        assert f"prime-train stop --machine prime/{pod.pod_id}" in shell.output
    assert [one.pod_id for one in fake.alive] == [pod.pod_id]


@pytest.mark.exhaustive
def test_a_machine_of_no_run_can_be_given_back_by_its_id_and_no_other(shell: Shell, fake: FakePrime) -> None:
    ours = {**key(fake), "PRIME_TRAIN_MASTER_KEY": "ab" * 32}
    lost = shell.here / "lost"
    rented(Home.of({**shell.env, **ours, "PRIME_TRAIN_HOME": str(lost)}), "team-1")
    (pod,) = fake.alive
    machine = f"prime/{pod.pod_id}"
    for words, output in {
        ("stop",): "or stop --machine ID",
        ("stop", "team-1", "--machine", machine): "or stop --machine ID",
        ("stop", "--machine", "prime/0000"): "'prime/0000'",
    }.items():
        done = shell.run(*words, **ours)
        assert (done.returncode, output in done.stderr) == (2, True), done.stderr
    assert (
        "is a machine of run team-1"
        in shell.run("stop", "--machine", machine, **ours, PRIME_TRAIN_HOME=str(lost)).stderr
    )
    assert (
        shell.run("stop", "--machine", machine, **key(fake), PRIME_TRAIN_MASTER_KEY="cd" * 32).returncode == 2
    )
    assert fake.alive
    done = shell.run("stop", "--machine", machine, **ours)
    assert "asked the provider to terminate it" in done.stdout, done.stderr
    fake.advance(60)
    assert not fake.alive
