"""The operator's policy as users meet it: in checks, dry runs, launches, and at the start of `serve`."""

from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.stores.remote import RemoteStore
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.shell import CONFIG, Shell

LOCAL = CONFIG.replace("hardware: {", "hardware: {provider: local, ")
PRIME = {"PRIME_API_KEY": "x" * 20, "PRIME_API_BASE_URL": "http://127.0.0.1:9"}
LINE = "providers: [prime, local]"
VERBS = [("validate",), ("run",), ("run", "--dry-run")]


def policy(shell: Shell, text: str) -> Path:
    shell.home.mkdir(exist_ok=True)
    file = shell.home / "policy.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_where_machines_are_rented_a_config_may_not_choose_the_control_planes_own(
    shell: Shell, verb: tuple[str, ...]
) -> None:
    config = shell.config(LOCAL)
    done = shell.run(verb[0], config, *verb[1:], **PRIME)
    assert done.returncode == 1, done.stdout + done.stderr
    shown = done.stdout + done.stderr
    assert (
        "small.yaml:9:22: error PT027: hardware.provider: local runs the command on the control plane's own "
        "machine" in shown
    )
    assert f"by this line in {shell.home / 'policy.yaml'}: {LINE}" in shown
    assert "no runs yet" in shell.ok("status")

    policy(shell, f"{LINE}\n")
    assert shell.run(verb[0], config, *verb[1:], **PRIME).returncode == 0


def test_at_a_home_that_rents_nothing_this_machine_is_used_unasked(shell: Shell) -> None:
    assert "PT027" not in shell.ok("validate", shell.config())
    assert "PT027" not in shell.ok("validate", shell.config(LOCAL))


def test_a_ci_job_judges_configs_by_the_policy_that_a_variable_holds(shell: Shell) -> None:
    config = shell.config(LOCAL)
    assert shell.run("validate", config, CI="true").returncode == 0, "the policy is not known there"
    done = shell.run("validate", config, CI="true", PRIME_TRAIN_POLICY="{usd_max: 4}")
    assert done.returncode == 1
    assert "PT027: hardware.provider: local" in done.stdout
    assert "PT027: budget.usd: $5.00 is more than the $4.00 that a run may cost" in done.stdout
    assert "by this line in PRIME_TRAIN_POLICY: usd_max: 5" in done.stdout


def test_what_set_chooses_is_judged_too(shell: Shell) -> None:
    policy(shell, "usd_max: 4\n")
    refused = shell.run("run", shell.config())
    assert (refused.returncode, "budget.usd: $5.00" in refused.stdout + refused.stderr) == (1, True)
    assert shell.run("run", shell.config(), "--set", "budget.usd=4").returncode == 0
    assert shell.run("run", shell.config(), "--usd", "4.5").returncode == 1


def test_an_ended_run_is_not_resumed_with_more_than_the_policy_allows(shell: Shell) -> None:
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        run_id = shell.ok("run", shell.config()).split()[0]
        shell.ok("stop", run_id)
        shell.ok("watch", "--once")
        policy(shell, "usd_max: 6\n")
        refused = shell.run("resume", run_id, "--usd", "7")
        assert (refused.returncode, "budget.usd: $7.00 is more than the $6.00" in refused.stderr) == (
            4,
            True,
        ), refused.stderr
        assert shell.run("resume", run_id, "--usd", "6").returncode == 0


@pytest.mark.parametrize(
    "verb", [("validate", "CONFIG"), ("run", "CONFIG"), ("serve", "--port", "0")], ids=lambda verb: verb[0]
)
def test_a_policy_that_cannot_be_read_allows_nothing(shell: Shell, verb: tuple[str, ...]) -> None:
    file = policy(shell, "provider: [prime]\n")
    config = shell.config()
    done = shell.run(*(config if word == "CONFIG" else word for word in verb))
    assert done.returncode == 1
    assert f"{file}:1:1: unknown key 'provider'; did you mean providers?" in done.stderr


def test_a_laptop_is_refused_by_the_policy_of_the_control_plane_elsewhere(
    shell: Shell, tmp_path: Path
) -> None:
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        there = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        folder = tmp_path / "laptop"
        folder.mkdir()
        laptop = Shell(folder)
        for words in (("validate",), ("run",)):
            done = laptop.run(words[0], laptop.config(LOCAL), **there)
            assert (
                done.returncode,
                "which a run that is launched from elsewhere may not choose" in done.stdout + done.stderr,
            ) == (1, True)

        policy(shell, "providers: [local]\n")
        assert laptop.run("run", laptop.config(LOCAL), **there).returncode == 0, (
            "the policy is read anew at each launch"
        )


def test_a_ci_job_with_the_policy_judges_no_provider_that_the_config_does_not_name(shell: Shell) -> None:
    done = shell.run("validate", shell.config(), CI="true", PRIME_TRAIN_POLICY="{usd_max: 300}")
    assert (done.returncode, "PT027" in done.stdout) == (0, False), done.stdout
    done = shell.run("validate", shell.config(LOCAL), CI="true", PRIME_TRAIN_POLICY="{usd_max: 300}")
    assert (done.returncode, "PT027" in done.stdout) == (1, True), "what it names is judged"


def test_a_watcher_without_the_keys_runs_no_strangers_command_on_this_machine(shell: Shell) -> None:
    """The launch names no provider, and another watcher has other default ones than the process that judged
    it.
    """
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", **PRIME):
        there = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        remote = RemoteStore(there["PRIME_TRAIN_STORE"], bytes.fromhex(there["PRIME_TRAIN_MASTER_KEY"]))
        assert remote.create(
            b.run(
                run_id="tiny-stranger", spec=b.spec(), created_s=remote.now_s(), next_check_s=remote.now_s()
            )
        )
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        shell.run("watch", "--once")
    store = SqliteStore(shell.home / "control.sqlite")
    (run,) = store.list_runs()
    assert [attempt.offer.provider for attempt in run.attempts if attempt.pod_id] == []
    assert not list((shell.home / "pods").glob("local-*"))


def test_while_the_policy_elsewhere_cannot_be_read_nothing_is_launched_or_rented_from_here(
    shell: Shell, tmp_path: Path
) -> None:
    with shell.started("serve", "--port", "0", "--no-watch", until="serving "):
        there = dict(line.split("=", 1) for line in shell.ok("key", "--show").splitlines())
        policy(shell, "provider: [prime]\n")
        folder = tmp_path / "laptop"
        folder.mkdir()
        laptop = Shell(folder)
        refused = laptop.run("run", laptop.config(), **there)
        assert (refused.returncode, "cannot read its policy, so nothing is launched" in refused.stderr) == (
            4,
            True,
        ), refused.stderr
        guest = Home.of({"PRIME_TRAIN_HOME": str(folder / "home"), **there})
        with pytest.raises(UsageError, match="cannot read its policy"):
            guest.not_allowed(b.run())
