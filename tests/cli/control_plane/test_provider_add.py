"""Providers are added, checked, listed and removed from the command line. A key that is refused is stored
nowhere, and none is shown.
"""

import json
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.advice import Advice
from prime_train.app.add_provider import checked_value
from prime_train.app.home import Home
from prime_train.app.key_places import InGitHub
from prime_train.errors import TemporaryError, UsageError
from prime_train.providers import look as looking
from prime_train.providers import stored_keys
from prime_train.providers.configured import default_providers
from prime_train.providers.health import health
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.portable import is_private
from prime_train.providers.runpod.provider import RunPodProvider
from prime_train.providers.ssh.hosts import read_hosts
from prime_train.runs.offer import Offer
from prime_train.runs.run import RunState
from prime_train.spec.spec import HardwareSpec
from prime_train.text.invocations import worded
from tests import builders as b
from tests.cli import new_provider
from tests.cli.new_provider.server import API_KEY as API_KEY_OF_MEADOW
from tests.cli.new_provider.server import CLOVER, Meadow
from tests.cli.shell import Shell
from tests.cli.terminal import terminal
from tests.fakes.lambda_cloud import API_KEY as LAMBDA_KEY
from tests.fakes.runpod import API_KEY, FakeRunPod

ROOT = Path(__file__).resolve().parents[3]
ANY = HardwareSpec(disk_gib=1)
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDh3cgZ0Hx8n0kM5oTFNEBd9sS0Kk4wbq3o2p2kZqjJ6"


@pytest.fixture(name="runpod")
def _runpod() -> Iterator[FakeRunPod]:
    with FakeRunPod() as fake:
        yield fake


@pytest.fixture(name="shell")
def _shell(tmp_path: Path, runpod: FakeRunPod, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in (
        *(name for row in PROVIDERS.values() for name in row.credentials),
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("RUNPOD_API_BASE_URL", runpod.url)
    return Shell(tmp_path)


def kept(shell: Shell) -> dict[str, str]:
    return stored_keys.stored(shell.home)


def test_a_key_that_is_entered_is_checked_stored_for_its_owner_only_and_used_from_then_on(
    shell: Shell, runpod: FakeRunPod
) -> None:
    runpod.balance_usd = 12.34
    with terminal(shell, "provider", "add", "runpod", columns=200) as screen:
        screen.answer("RUNPOD_API_KEY (not shown): ", API_KEY)
        assert screen.end() == 0, screen.seen
    assert API_KEY not in screen.seen
    assert "nothing is rented, and looking costs nothing" in screen.seen
    assert "account   user_2fakefakefake" in screen.seen
    assert "balance   $12.34" in screen.seen
    assert "machines for rent fit, the cheapest at $" in screen.seen
    path = stored_keys.file_of(shell.home, "RUNPOD_API_KEY")
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert runpod.pods == []
    home = Home.of(shell.env)
    assert (home.environment["RUNPOD_API_KEY"], default_providers(home.environment)) == (API_KEY, ("runpod",))
    assert "RUNPOD_API_KEY (stored)" in shell.ok("provider", "list")
    assert json.loads(shell.ok("provider", "check", "--json"))[0]["status"] == "well"
    assert "deleted" in shell.ok("provider", "remove", "runpod")
    assert kept(shell) == {}
    assert "none is set up here; prime-train provider add NAME" in shell.ok("doctor")


def test_a_key_that_the_provider_does_not_know_is_stored_nowhere(shell: Shell) -> None:
    wrong = "rpa_" + "wrong" * 5
    done = shell.run("provider", "add", "runpod", RUNPOD_API_KEY=wrong)
    assert done.returncode == 4
    assert "RunPod does not accept what was given as RUNPOD_API_KEY, so nothing was stored" in done.stderr
    assert wrong not in done.stdout + done.stderr
    assert kept(shell) == {}
    assert [
        path for path in shell.home.rglob("*") if path.is_file() and wrong.encode() in path.read_bytes()
    ] == []


@pytest.mark.parametrize(
    "words", [("runpod", API_KEY), (API_KEY,), ("runpod", "--config", "none.yaml", API_KEY)]
)
def test_a_key_on_the_command_line_is_refused_and_not_repeated(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run("provider", "add", *words)
    assert done.returncode == 2
    assert API_KEY not in done.stdout + done.stderr
    assert kept(shell) == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("runpot", "did you mean runpod?"),
        ("local", "needs no credentials"),
        ("aws", "there is no provider 'aws'"),
    ],
)
def test_a_name_that_cannot_be_added_is_reported(shell: Shell, name: str, reason: str) -> None:
    done = shell.run("provider", "add", name)
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "no value was given"),
        ("RUNPOD_API_KEY=rpa_x", "is an assignment"),
        ("rpa_\x1b[2Jx", "control characters"),
        ("x" * 70_000, "larger than 64 KiB"),
    ],
)
def test_what_cannot_be_a_key_is_refused_without_being_repeated(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        checked_value("RUNPOD_API_KEY", text)
    assert text.strip()[:20] not in str(refused.value) or not text.strip()


def test_the_path_of_a_file_is_stored_as_one_that_is_right_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machines.yaml").write_text("machines: []\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("machines.yaml", "~/machines.yaml"):
        assert checked_value("PRIME_TRAIN_SSH_HOSTS", given) == str(tmp_path / "machines.yaml")
    for key in ("rpa_abc", "~nobody-of-this-name/x", "k" * 5000):
        assert checked_value("RUNPOD_API_KEY", key) == key


def test_a_provider_that_does_not_answer_leaves_the_key_unstored_and_does_not_stop_the_others(
    shell: Shell,
) -> None:
    nobody = {"LAMBDA_API_BASE_URL": "http://127.0.0.1:1"}
    done = shell.run("provider", "add", "lambda", LAMBDA_API_KEY=LAMBDA_KEY, **nobody)
    assert done.returncode == 3
    assert "could not be checked, so nothing was stored" in done.stderr
    assert "prime-train provider add lambda --unchecked" in done.stderr
    assert kept(shell) == {}
    assert (
        shell.run("provider", "add", "lambda", "--unchecked", LAMBDA_API_KEY=LAMBDA_KEY, **nobody).returncode
        == 0
    )
    assert kept(shell) == {"LAMBDA_API_KEY": LAMBDA_KEY}
    seen = shell.run("doctor", RUNPOD_API_KEY=API_KEY, **nobody)
    assert seen.returncode == 1
    lines = {line[7:].partition(":")[0]: line for line in seen.stdout.splitlines()}
    assert lines["provider runpod"].startswith("well ")
    assert "RUNPOD_API_KEY (environment)" in lines["provider runpod"]
    assert lines["provider lambda"].startswith("wrong")
    assert "LAMBDA_API_KEY (stored); runs rent from the other providers meanwhile" in lines["provider lambda"]


def test_the_environment_wins_over_the_stored_key_and_the_list_says_so(shell: Shell) -> None:
    stored_keys.keep(shell.home, {"RUNPOD_API_KEY": "old"})
    assert Home.of({**shell.env, "RUNPOD_API_KEY": API_KEY}).environment["RUNPOD_API_KEY"] == API_KEY
    for blank in ("", " \n"):
        assert Home.of({**shell.env, "RUNPOD_API_KEY": blank}).environment["RUNPOD_API_KEY"] == "old"
        assert default_providers({"RUNPOD_API_KEY": blank}) == ("local",)
    done = shell.run("provider", "list", RUNPOD_API_KEY=API_KEY)
    assert "RUNPOD_API_KEY (environment)" in done.stdout
    assert "is not used, because the environment sets RUNPOD_API_KEY, which wins" in done.stderr
    wrong = shell.run("provider", "check", "runpod")
    assert (wrong.returncode, "add the provider again with a new key" in wrong.stdout) == (1, True)
    assert (
        "set RUNPOD_API_KEY anew" in shell.run("provider", "check", "runpod", RUNPOD_API_KEY="rpa_no").stdout
    )


def test_a_run_at_a_provider_without_a_key_says_how_to_add_it(shell: Shell) -> None:
    config = shell.write(
        "x.yaml", "name: x\ntrainer: {command: 'true'}\nhardware: {provider: lambda}\nbudget: {usd: 5}\n"
    )
    for environment in ({}, {"PRIME_TRAIN_PROVIDER": "runpod,lambda", "RUNPOD_API_KEY": API_KEY}):
        done = shell.run("run", str(config), "--dry-run", **environment)
        assert (done.returncode, "fix: prime-train provider add lambda asks for" in done.stderr) == (
            4,
            True,
        ), done.stderr


def test_one_who_never_answers_is_given_up_after_the_limit(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hangs(self: RunPodProvider) -> list[object]:
        release.wait()
        return []

    monkeypatch.setattr(RunPodProvider, "all_pods", hangs)
    monkeypatch.setattr(looking, "LIMIT_S", 0.0)
    with pytest.raises(TemporaryError, match="RunPod did not answer within 0 s"):
        looking.look("runpod", {**shell.env, "RUNPOD_API_KEY": API_KEY}, ANY)
    release.set()


def test_a_file_that_others_may_read_is_reported_and_one_that_is_no_key_is_refused(shell: Shell) -> None:
    stored_keys.keep(shell.home, {"RUNPOD_API_KEY": API_KEY})
    path = stored_keys.file_of(shell.home, "RUNPOD_API_KEY")
    path.chmod(0o644)
    assert f"chmod 600 {path}" in shell.run("provider", "list").stderr
    assert "others on this machine may read the stored file" in shell.run("doctor").stdout
    path.write_bytes(b"\xff\xfe")
    done = shell.run("provider", "check")
    assert (done.returncode, f"{path} is not text" in done.stderr) == (4, True)
    assert "Traceback" not in done.stderr


def test_a_key_is_not_removed_while_a_run_has_a_machine_that_needs_it(shell: Shell) -> None:
    stored_keys.keep(shell.home, {"RUNPOD_API_KEY": API_KEY})
    run = b.run(RunState.TRAINING)
    run = replace(run, attempts=(replace(run.attempts[0], offer=Offer("runpod", "x", 1.0, spot=False)),))
    assert Home.of(shell.env).store().create(run)
    refused = shell.run("provider", "remove", "runpod")
    assert (refused.returncode, run.run_id in refused.stderr) == (2, True)
    assert kept(shell) == {"RUNPOD_API_KEY": API_KEY}
    assert (
        "RUNPOD_API_KEY is still set in this environment"
        in shell.run("provider", "remove", "runpod", "--force", RUNPOD_API_KEY="k").stdout
    )
    assert kept(shell) == {}


def test_a_provider_of_ones_own_is_added_by_its_row_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROVIDERS, new_provider.NAME, new_provider.ROW)
    with Meadow(tmp_path / "meadow") as meadow:
        home = Home.of({"PRIME_TRAIN_HOME": str(tmp_path), new_provider.URL: meadow.url})
        stored_keys.keep(home.root, {new_provider.KEY: API_KEY_OF_MEADOW})
        again = Home.of(home.environment)
        (found,) = health(
            again.root, again.environment, home.environment, HardwareSpec(gpus=("H100_80GB",), disk_gib=1)
        )
    assert isinstance(found.found, looking.Look)
    assert found.found.cheapest is not None
    assert (found.found.fitting, found.found.cheapest.offer_id) == (2, CLOVER["id"])
    assert found.found.funds is not None
    assert found.found.funds.balance_usd == meadow.balance_usd


def _github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarded: tuple[str, ...]) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").symlink_to(ROOT / "tests/fakes/gh")
    told = tmp_path / "told"
    rule = {"noun": "api", "method": "PUT", "body": "rules", "env": ""}
    told.write_text(
        "".join(
            json.dumps({**rule, "name": f"repos/{{owner}}/{{repo}}/environments/{name}"}) + "\n"
            for name in guarded
        )
    )
    monkeypatch.setenv("GH_TOLD", str(told))
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "bin"), os.environ.get("PATH", os.defpath))))
    return told


def test_github_gets_a_key_only_where_a_rule_says_who_may_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _github(tmp_path, monkeypatch, ("gpu",))
    done = [str(line) for line in InGitHub({}).keep({"RUNPOD_API_KEY": API_KEY})]
    secrets = [line for line in map(json.loads, told.read_text().splitlines()) if line["noun"] == "secret"]
    stored = [(line["name"], line["env"], json.loads(line["body"])) for line in secrets]
    assert stored == [("PRIME_TRAIN_CREDENTIALS", "gpu", {"RUNPOD_API_KEY": API_KEY})]
    assert done[0] == "PRIME_TRAIN_CREDENTIALS, a secret of the environment gpu, has RUNPOD_API_KEY now"
    assert "gpu-watch has no rule" in done[1]


def test_a_repository_without_rules_gets_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _github(tmp_path, monkeypatch, ())
    with pytest.raises(UsageError, match="neither of the environments"):
        InGitHub({}).keep({"RUNPOD_API_KEY": API_KEY})
    assert API_KEY not in told.read_text()


def test_credentials_that_github_has_are_not_replaced_by_those_of_another_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _github(tmp_path, monkeypatch, ("gpu", "gpu-watch"))
    InGitHub({}).keep({"RUNPOD_API_KEY": API_KEY})
    before = told.read_text()
    with pytest.raises(
        UsageError, match="with credentials that cannot be read back; nothing was stored"
    ) as refused:
        InGitHub({}).keep({"PRIME_API_KEY": "pit_1"})
    assert isinstance(refused.value.fix, Advice)
    assert "prime-train github init --secret PRIME_TRAIN_CREDENTIALS --force" in worded(refused.value.fix)
    assert told.read_text() == before
    (said, _) = InGitHub({}).forget(["RUNPOD_API_KEY"])
    assert "PRIME_TRAIN_CREDENTIALS of the environment gpu may have it, too" in worded(said)
    assert told.read_text() == before


def test_github_gets_the_list_of_machines_as_one_line_and_not_as_a_path(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _github(tmp_path, monkeypatch, ("gpu",))
    machines = f"machines: [{{name: box, address: 192.0.2.7, disk_gib: 1, host_keys: [{HOST_KEY}]}}]\n"
    path = shell.write("machines.yaml", machines)
    done = shell.run(
        "provider", "add", "ssh", "--to", "github", PRIME_TRAIN_SSH_HOSTS=str(path), PATH=os.environ["PATH"]
    )
    assert done.returncode == 0, done.stderr
    (secret,) = (line for line in map(json.loads, told.read_text().splitlines()) if line["noun"] == "secret")
    assert (secret["name"], secret["body"].count("\n")) == ("PRIME_TRAIN_CREDENTIALS", 0)
    assert read_hosts(json.loads(secret["body"])) == read_hosts({"PRIME_TRAIN_SSH_HOSTS": machines})


def test_a_credential_that_github_would_not_take_is_refused_before_anything_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _github(tmp_path, monkeypatch, ("gpu", "gpu-watch"))
    before = told.read_text()
    with pytest.raises(
        UsageError,
        match="RUNPOD_API_KEY has more than 48 KiB, GitHub's limit for a secret; nothing was stored",
    ):
        InGitHub({}).keep({"RUNPOD_API_KEY": "k" * 49_200})
    assert told.read_text() == before


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("10.0.0.1", "100.64.1.1", "127.0.0.1", "fd00::1", "node", "a.internal")),
        *((host, False) for host in ("8.8.8.8", "2606:4700::1", "cluster.example.org")),
    ],
)
def test_hosts_that_the_internet_does_not_reach_are_known_by_their_address(host: str, expected: bool) -> None:
    assert is_private(host) is expected
