"""A remote control plane, used from a machine that has only its address and key."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from prime_train.runs.signing import market_key
from tests.cli.shell import CONFIG, Shell
from tests.exhaustive import some_of
from tests.waiting import HANG_S


@dataclass(frozen=True)
class Laptop(Shell):
    """A shell of its own, with the control plane's address and key in its environment."""

    reported: tuple[tuple[str, str], ...] = ()

    @property
    def env(self) -> dict[str, str]:
        return super().env | dict(self.reported)


@pytest.fixture
def laptop(shell: Shell, tmp_path: Path) -> Iterator[Laptop]:
    """Return a laptop beside a control plane that serves and does not watch."""
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", PRIME_TRAIN_PROVIDER="local"):
        output = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        folder = tmp_path / "laptop"
        folder.mkdir()
        yield Laptop(folder, reported=tuple(output.items()))


def test_the_key_is_not_shown_unasked(shell: Shell) -> None:
    shown = shell.ok("key", "--show").splitlines()[1].removeprefix("PRIME_TRAIN_MASTER_KEY=")
    assert bytes.fromhex(shown) == (shell.home / "master.key").read_bytes()
    assert shown not in shell.ok("key")


def test_the_key_for_reading_the_market_is_another_and_the_same_from_everywhere(
    shell: Shell, laptop: Laptop
) -> None:
    master = dict(laptop.reported)["PRIME_TRAIN_MASTER_KEY"]
    shown = dict(line.split("=", 1) for line in shell.ok("key", "--market", "--show").splitlines())
    assert shown == {
        "PRIME_TRAIN_URL": dict(laptop.reported)["PRIME_TRAIN_STORE"],
        "PRIME_TRAIN_MARKET_KEY": market_key(bytes.fromhex(master)),
    }
    assert dict(line.split("=", 1) for line in laptop.ok("key", "--market", "--show").splitlines()) == shown
    unasked = shell.run("key", "--market")
    assert "can read what is for rent and what runs show of machines, and do nothing else" in unasked.stderr
    assert not [
        secret
        for secret in (master, shown["PRIME_TRAIN_MARKET_KEY"])
        if secret in unasked.stdout + unasked.stderr
    ]


def test_a_run_is_launched_shown_and_stopped_from_elsewhere(shell: Shell, laptop: Laptop) -> None:
    run_id = laptop.ok("run", laptop.config()).split()[0]
    (there,) = json.loads(shell.ok("status", "--json"))
    assert (there["run"], there["state"]) == (run_id, "queued")
    assert (shell.home / "bucket/runs" / run_id / "code.tar.gz").is_file()
    laptop.ok("stop", run_id)
    assert json.loads(laptop.ok("status", run_id, "--json"))["desired"] == "stop"
    assert not (laptop.home / "control.sqlite").exists()
    shell.ok("watch", "--once")
    assert json.loads(laptop.ok("status", run_id, "--json"))["state"] == "stopped"


@pytest.mark.exhaustive
def test_a_watcher_elsewhere_leaves_the_machines_of_that_box_alone(laptop: Laptop) -> None:
    run_id = laptop.ok("run", laptop.config()).split()[0]
    assert "checked 1 runs" in laptop.ok("watch", "--once")
    assert json.loads(laptop.ok("status", run_id, "--json"))["state"] == "queued"


@pytest.mark.parametrize(
    ("env", "code", "output"),
    some_of(
        [
            ({"PRIME_TRAIN_MASTER_KEY": "ab" * 32}, 4, "the signature is not valid for this path"),
            ({"PRIME_TRAIN_MASTER_KEY": "secret"}, 2, "PRIME_TRAIN_MASTER_KEY is not 64 hex digits"),
            ({"PRIME_TRAIN_MASTER_KEY": ""}, 2, "prime-train key --show prints it"),
            ({"PRIME_TRAIN_STORE": "train.example.org"}, 4, "is not the address of a control plane"),
            ({"PRIME_TRAIN_STORE": "http://train.example.org"}, 4, "set it to an https address"),
            (
                {"PRIME_TRAIN_STORE": "http://127.0.0.1:9"},
                3,
                "check PRIME_TRAIN_STORE, and that a control plane is serving there",
            ),
            (
                {"PRIME_TRAIN_STORE": "https://nowhere.invalid"},
                4,
                "the host name does not exist; correct PRIME_TRAIN_STORE\n",
            ),
        ],
        one_in=4,
    ),
)
def test_what_does_not_lead_there_is_reported_and_shows_no_secret(
    laptop: Laptop, env: dict[str, str], code: int, output: str
) -> None:
    done = laptop.run("status", **(dict(laptop.reported) | env))
    assert (done.returncode, output in done.stderr) == (code, True), done.stderr
    assert dict(laptop.reported)["PRIME_TRAIN_MASTER_KEY"] not in done.stderr
    assert "secret" not in done.stderr


def test_it_is_not_served_from_elsewhere(laptop: Laptop) -> None:
    done = laptop.run("serve")
    assert done.returncode == 2
    assert "the control plane runs elsewhere" in done.stderr


@pytest.mark.exhaustive
def test_a_guest_leaves_alone_what_others_must_see_to(shell: Shell, laptop: Laptop) -> None:
    run_id = laptop.ok("run", laptop.config(CONFIG + "secrets: [NEPTUNE_API_TOKEN]\n")).split()[0]
    (before,) = json.loads(shell.ok("status", "--json"))
    laptop.ok("watch", "--once")
    (after,) = json.loads(shell.ok("status", "--json"))
    assert (after["run"], after["state"], after["next_check_s"]) == (run_id, "queued", before["next_check_s"])


@pytest.mark.exhaustive
def test_the_list_of_the_control_plane_elsewhere_decides_which_secrets_a_run_may_name(
    shell: Shell, tmp_path: Path
) -> None:
    with shell.started(
        "serve",
        "--port",
        "0",
        "--no-watch",
        until="serving ",
        PRIME_TRAIN_PROVIDER="local",
        PRIME_TRAIN_RUN_SECRETS="JUDGE_*",
    ):
        output = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        (tmp_path / "laptop").mkdir()
        laptop = Laptop(tmp_path / "laptop", reported=tuple(output.items()))
        refused = laptop.run(
            "run", laptop.config(CONFIG + "secrets: [HF_TOKEN]\n"), PRIME_TRAIN_RUN_SECRETS="*"
        )
        assert (refused.returncode, "runs may not have the secret HF_TOKEN" in refused.stdout) == (1, True), (
            refused.stdout
        )
        assert "is queued" in laptop.ok("run", laptop.config(CONFIG + "secrets: [JUDGE_KEY]\n"))


def test_another_bucket_than_the_control_planes_is_refused(laptop: Laptop, tmp_path: Path) -> None:
    done = laptop.run("run", laptop.config(), PRIME_TRAIN_BUCKET=(tmp_path / "mine").as_uri())
    assert done.returncode == 2
    assert "the control plane's bucket is file://" in done.stderr


def test_a_table_without_the_key_that_belongs_to_it_is_refused(shell: Shell) -> None:
    done = shell.run("key", "--show", PRIME_TRAIN_STORE="dynamodb://runs?region=eu-central-1")
    assert (done.returncode, "PRIME_TRAIN_MASTER_KEY is not" in done.stderr) == (2, True), done.stderr
    assert not (shell.home / "master.key").exists()


@pytest.mark.exhaustive
def test_a_watcher_says_whose_runs_it_watches_and_leaves_on_a_signal(laptop: Laptop) -> None:
    with laptop.started("watch", until=f"watching {dict(laptop.reported)['PRIME_TRAIN_STORE']}") as process:
        process.terminate()
        assert process.wait(HANG_S) == 0
