"""`prime-train run` and the commands about a run afterwards, on a home without a control plane and with
one.
"""

import json
import signal
import subprocess
import tarfile
from contextlib import AbstractContextManager

import pytest

from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.runs.change import change
from prime_train.runs.decision import Finish
from prime_train.runs.run import RunState
from tests.cli.forking import Process
from tests.cli.shell import CONFIG, PROGRAM, Shell
from tests.cli.terminal import terminal
from tests.exhaustive import some_of
from tests.waiting import HANG_S, await_true


def launched(shell: Shell) -> str:
    return shell.ok("run", shell.config()).split(" ", 1)[0]


def one(shell: Shell, run_id: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(shell.ok("status", run_id, "--json"))
    return found


# -------------------------------------------------------------------------------------------------------
# without a control plane


def test_a_run_is_queued_with_its_working_tree_and_says_what_is_missing(shell: Shell) -> None:
    output = shell.ok("run", shell.config())
    run_id = output.split(" ", 1)[0]
    assert run_id.startswith("small-")
    assert "prime-train serve" in output
    assert one(shell, run_id)["state"] == "queued"
    with tarfile.open(shell.home / "bucket" / "runs" / run_id / "code.tar.gz") as tar:
        assert tar.getnames() == ["train.py"]


def test_a_dry_run_says_what_would_be_rented_and_leaves_nothing(shell: Shell) -> None:
    config = shell.config(CONFIG.replace("disk_gib: 1", "disk_gib: 1, usd_per_hour_max: 0.7"))
    output = shell.ok("run", config, "--dry-run")
    assert "launch on local local-spot (spot)" in output
    assert "$0.60 an hour" in output
    assert "$5.00, 2 hours: enough for 2 h" in output
    assert "$5.00, 1 hour: " in shell.ok(
        "run", shell.config(CONFIG.replace("hours: 2", "hours: 1")), "--dry-run"
    )
    assert (
        "left out  local local-on-demand (on-demand): costs $1.90/h, above hardware.usd_per_hour_max 0.70"
        in output
    )
    assert "1 files" in output
    assert json.loads(shell.ok("status", "--json")) == []
    assert not (shell.home / "bucket").exists() or not list((shell.home / "bucket").rglob("code.tar.gz"))


def test_a_script_that_lies_beside_the_config_and_not_in_the_folder_that_is_packed_is_reported_before_the_launch(
    shell: Shell,
) -> None:
    shell.write(
        "project/run.yaml",
        CONFIG.replace("python -m prime_train.demo.train", "python tune.py").replace("TREE", "."),
    )
    shell.write("project/tune.py", "")
    done = shell.run("run", "project/run.yaml")
    assert done.returncode == 1
    assert "error PT030: tune.py is in project, but not in the working tree" in done.stdout
    assert "no runs" in shell.run("status").stdout
    shell.write("tune.py", "")
    assert "is queued" in shell.ok("run", "project/run.yaml")


def test_a_config_with_errors_is_not_launched(shell: Shell) -> None:
    shell.write("bad.yaml", "name: x\n")
    done = shell.run("run", "bad.yaml")
    assert done.returncode == 1
    assert "trainer is missing" in done.stdout
    assert json.loads(shell.ok("status", "--json")) == []


def test_a_config_with_a_secret_in_it_is_not_launched(shell: Shell) -> None:
    done = shell.run("run", shell.config(CONFIG + f"environment: {{HF_TOKEN: hf_{'x' * 30}}}\n"))
    assert done.returncode == 1
    assert "PT020" in done.stdout


COMMAND = "trainer:\n  command: python -m prime_train.demo.train"
WORKERS = CONFIG.replace(COMMAND, "trainer:\n  kind: torchrun\n  workers: 4\n  command: train.py").replace(
    "disk_gib: 1", "gpus: [A100_80GB], count: 2"
)


def test_a_config_that_a_rule_refuses_is_not_launched_and_its_line_is_shown(shell: Shell) -> None:
    config = shell.config(WORKERS.replace("count: 2", "count: 2, provider: prime"))
    done = shell.run("run", config)
    assert done.returncode == 1
    assert "error HW103" in done.stdout
    assert "     4 |   workers: 4" in done.stdout
    assert json.loads(shell.ok("status", "--json")) == []
    assert shell.run("run", config, "--dry-run").returncode == 1
    assert shell.run("run", shell.config(WORKERS), PRIME_TRAIN_PROVIDER="prime").returncode == 1


def test_a_rule_about_rented_machines_refuses_nothing_on_this_machine(shell: Shell) -> None:
    done = shell.run("run", shell.config(WORKERS))
    assert "HW103" not in done.stdout
    assert "has no GPU, but hardware.gpus requires A100_80GB" in done.stdout


def test_a_warning_does_not_stop_a_launch(shell: Shell) -> None:
    config = shell.config(CONFIG + "environment: {WANDB_DISABLED: 'false'}\n")
    for options in ((), ("--dry-run",)):
        done = shell.run("run", config, *options)
        assert done.returncode == 0
        assert "warning TR451" in done.stderr
        assert "environment: {WANDB_DISABLED: 'false'}" in done.stderr
        assert "TR451" not in done.stdout


def test_an_ignored_error_does_not_stop_a_launch(shell: Shell) -> None:
    ignored = WORKERS.replace("workers: 4", "workers: 4  # prime-train: ignore[HW103] two share each of them")
    done = shell.run("run", shell.config(ignored), "--without-rehearsal", PRIME_TRAIN_PROVIDER="prime")
    assert done.returncode != 1
    assert "HW103" not in done.stdout + done.stderr


def test_a_tree_that_is_not_there_is_a_finding(shell: Shell) -> None:
    shell.write("small.yaml", CONFIG.replace("TREE", str(shell.here / "none")))
    done = shell.run("run", "small.yaml")
    assert done.returncode == 1
    assert f"the folder does not exist: {shell.here / 'none'}" in done.stdout


def test_a_run_can_be_given_another_name(shell: Shell) -> None:
    assert shell.ok("run", shell.config(), "--name", "other").startswith("other-")
    done = shell.run("run", shell.config(), "--name", "Not A Name")
    assert done.returncode == 2
    assert "is not a valid run name" in done.stderr


def test_secrets_that_are_not_set_here_are_named(shell: Shell) -> None:
    output = shell.run("run", shell.config(CONFIG + "secrets: [NEPTUNE_API_TOKEN]\n"), "--dry-run").stderr
    assert "note PT021" in output
    assert "NEPTUNE_API_TOKEN" in output
    assert f"small.yaml:{CONFIG.count(chr(10)) + 1}:11: note PT021" in output


@pytest.mark.parametrize("verb", [("validate",), ("run",), ("run", "--dry-run")])
def test_a_config_that_asks_for_the_keys_to_the_cloud_is_refused_before_the_launch(
    shell: Shell, verb: tuple[str, ...]
) -> None:
    config = shell.config(CONFIG + "secrets: [HF_TOKEN, AWS_SECRET_ACCESS_KEY]\n")
    done = shell.run(verb[0], config, *verb[1:], AWS_SECRET_ACCESS_KEY="a-key-of-the-operator")
    output = done.stdout + done.stderr
    assert (done.returncode, "error PT045: runs may not have the secret AWS_SECRET_ACCESS_KEY" in output) == (
        1,
        True,
    ), output
    assert "a-key-of-the-operator" not in output
    allowed = shell.run(verb[0], config, *verb[1:], PRIME_TRAIN_RUN_SECRETS="HF_TOKEN,AWS_*")
    assert allowed.returncode == 0, allowed.stderr


def test_a_list_of_secrets_that_is_none_is_refused_and_not_shown(shell: Shell) -> None:
    done = shell.run("run", shell.config(), PRIME_TRAIN_RUN_SECRETS="HF_TOKEN=hf-secret-value")
    assert (
        done.returncode,
        "PRIME_TRAIN_RUN_SECRETS contains something that is not the name" in done.stderr,
    ) == (2, True), done.stderr
    assert "hf-secret-value" not in done.stderr


def test_a_machine_whose_open_file_limit_is_too_low_is_reported_before_the_launch(shell: Shell) -> None:
    config = shell.config(CONFIG.replace("open_files_min: 256", f"open_files_min: {2**40}"))
    for more in ([], ["--dry-run"]):
        done = shell.run("run", config, *more)
        assert done.returncode == 1
        assert "error PT023: a process may open" in done.stdout
        assert "ulimit -Hn" in done.stdout
    assert "no runs" in shell.run("status").stdout
    assert shell.run("run", shell.config(), "--dry-run").returncode == 0


def test_a_run_on_this_machine_takes_the_open_file_limit_that_it_has(shell: Shell) -> None:
    config = shell.config(CONFIG.replace("open_files_min: 256, ", ""))
    limited = ["sh", "-c", 'ulimit -n 1000 && exec "$@"', "sh", PROGRAM, "run", config]
    done = subprocess.run(
        limited, cwd=shell.here, env=shell.env, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is queued" in done.stdout
    assert "ulimit" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("hardware", "why"),
    [
        ("{gpus: [H100], disk_gib: 1}", "has no GPU, but hardware.gpus requires H100"),
        ("{disk_gib: 100000}", "GiB of disk, but hardware.disk_gib is 100000"),
        ("{disk_gib: 1, usd_per_hour_max: 0.01}", "above hardware.usd_per_hour_max"),
    ],
)
def test_what_this_machine_will_never_have_is_refused_before_anything_waits_for_it(
    shell: Shell, hardware: str, why: str
) -> None:
    config = shell.config(CONFIG.replace("{open_files_min: 256, disk_gib: 1}", hardware))
    done = shell.run("run", config)
    assert done.returncode == 1
    assert "error PT023: this machine" in done.stdout
    assert why in done.stdout
    assert "no runs" in shell.run("status").stdout


@pytest.mark.parametrize("columns", some_of([40, 60, 80, 200], one_in=4))
def test_id_state_step_and_dollars_are_complete_on_every_terminal(shell: Shell, columns: int) -> None:
    run_id = launched(shell)
    output = shell.run("status", COLUMNS=str(columns)).stdout
    for word in (run_id, "queued", "0/20", "$0.00 of $5.00"):
        assert word in output
    assert max(map(len, output.splitlines())) <= columns


def test_the_commit_is_kept_and_marked_where_files_differ_from_it(shell: Shell) -> None:
    config = shell.config()
    tree = shell.here / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], cwd=tree, check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert one(shell, shell.ok("run", config).split(" ")[0])["commit"] == head
    shell.write("tree/new.py", "")
    assert one(shell, shell.ok("run", config).split(" ")[0])["commit"] == f"{head}-dirty"


def test_a_repository_is_taken_at_the_commit_its_branch_has_now(shell: Shell) -> None:
    shell.config()
    tree = shell.here / "tree"
    git = [
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "init.defaultBranch=main",
    ]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], cwd=tree, check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True
    ).stdout.strip()
    config = shell.write("repo.yaml", CONFIG.replace("{folder: TREE}", f"{{repo: '{tree}', ref: main}}"))
    assert one(shell, shell.ok("run", str(config)).split(" ")[0])["commit"] == head
    gone = shell.write("gone.yaml", CONFIG.replace("{folder: TREE}", f"{{repo: '{tree}', ref: nope}}"))
    done = shell.run("run", str(gone))
    assert done.returncode == 4
    assert "no branch or tag 'nope'" in done.stderr


@pytest.mark.exhaustive
def test_a_run_is_found_by_the_start_of_its_name_and_near_names_are_reported(shell: Shell) -> None:
    run_id = launched(shell)
    assert one(shell, "small")["run"] == run_id
    for verb in ("status", "logs", "checkpoints", "stop", "resume"):
        done = shell.run(verb, "smoll-" + run_id[-5:])
        assert done.returncode == 2, verb
        assert f"did you mean {run_id}?" in done.stderr
    launched(shell)
    done = shell.run("status", "small")
    assert done.returncode == 2
    assert "2 runs of small have not ended" in done.stderr
    assert "2 runs start with sma" in shell.run("status", "sma").stderr


def ended(shell: Shell, run_id: str) -> None:
    """End a waiting run as its watcher would."""
    store = Home(shell.home, {}).store()
    record = store.load(run_id)
    assert record is not None
    assert store.save(
        change(record.run, record.lease, Finish(RunState.STOPPED, None, "stopped by the user"), wall_s())
    )


@pytest.mark.exhaustive
def test_a_configs_name_means_its_run_that_goes_on_or_else_its_newest(shell: Shell) -> None:
    first, second = launched(shell), launched(shell)
    ended(shell, second)
    assert one(shell, "small")["run"] == first
    ended(shell, first)
    newest = max((one(shell, run_id) for run_id in (first, second)), key=lambda row: str(row["created_s"]))
    assert one(shell, "small")["created_s"] == newest["created_s"]


def test_watching_a_run_on_a_terminal_ends_with_the_run(shell: Shell) -> None:
    run_id = launched(shell)
    with terminal(shell, "status", "small", "--watch") as shown:
        shown.expect("queued")
        ended(shell, run_id)
        shown.expect("stopped by the user")
        assert shown.end() == 0


def test_watching_a_run_through_a_pipe_tells_everything_once_and_ends_with_the_run(shell: Shell) -> None:
    run_id = launched(shell)
    shell.ok("stop", run_id)
    with shell.started("status", "small", "--watch", until="requests stop") as process:
        launched(shell)
        ended(shell, run_id)
        assert process.wait(HANG_S) == 0
    output = shell.output.splitlines()
    assert output[-1] == f"{run_id} stopped: stopped by the user"
    assert sum("requests stop" in line for line in output) == 1
    assert len(output) == len(set(output))


def test_the_table_has_a_row_a_run(shell: Shell) -> None:
    ids = {launched(shell), launched(shell)}
    output = shell.ok("status")
    assert all(run_id in output for run_id in ids)
    assert "durable step" in output
    assert "$0.00 of $5.00" in output


@pytest.mark.exhaustive
def test_stop_is_a_wish_that_is_kept(shell: Shell) -> None:
    run_id = launched(shell)
    assert "no control plane serves this home, so a run that was asked to stop continues" in shell.ok(
        "stop", run_id
    )
    assert one(shell, run_id)["desired"] == "stop"
    shell.ok("stop", run_id, "--now")
    assert one(shell, run_id)["desired"] == "cancel"
    assert "the user requests cancel" in shell.ok("logs", run_id)


def test_a_run_that_is_not_over_cannot_be_resumed(shell: Shell) -> None:
    run_id = launched(shell)
    done = shell.run("resume", run_id)
    assert done.returncode == 2
    assert (
        "is queued: resume is not possible in this state\n  fix: no control plane serves this home"
        in done.stderr
    )
    assert "start one: prime-train serve --background" in done.stderr


@pytest.mark.parametrize("value", some_of(["0", "-1", "inf", "nan"], one_in=4))
def test_a_budget_that_is_none_is_refused(shell: Shell, value: str) -> None:
    assert shell.run("resume", launched(shell), f"--usd={value}").returncode == 2


def test_a_run_without_checkpoints_or_log_says_so(shell: Shell) -> None:
    run_id = launched(shell)
    assert "has no checkpoint" in shell.ok("checkpoints", run_id)
    assert json.loads(shell.ok("checkpoints", run_id, "--json")) == []
    assert "--- no log" in shell.ok("logs", run_id)


def test_a_watcher_without_a_webhook_is_refused_with_a_remedy(shell: Shell) -> None:
    done = shell.run("watch", "--once")
    assert done.returncode == 2
    assert "prime-train serve" in done.stderr


# ----------------------------------------------------------------------------------------------------------
# with a control plane


def serving(shell: Shell) -> AbstractContextManager[Process]:
    return shell.started("serve", "--port", "0", "--interval", "0.5", until="serving ")


def test_serve_is_known_to_others_and_leaves_on_a_signal(shell: Shell) -> None:
    with serving(shell) as process:
        output = json.loads((shell.home / "serve.json").read_text())
        assert output["pid"] == process.pid
        port = output["url"].rsplit(":", 1)[1]
        for options in ((), ("--port", port), ("--port", "0")):
            again = shell.run("serve", *options)
            assert again.returncode == 4
            assert f"is already served, at {output['url']} by process {process.pid}" in again.stderr
            assert "prime-train watch" in again.stderr
        assert json.loads((shell.home / "serve.json").read_text()) == output
        elsewhere = shell.run("serve", "--port", port, PRIME_TRAIN_HOME=str(shell.here / "other"))
        assert elsewhere.returncode == 4
        assert f"port {port} of 127.0.0.1 is in use" in elsewhere.stderr
        assert "checked 0 runs" in shell.ok("watch", "--once")
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0


def test_of_two_that_serve_a_home_at_the_same_moment_one_is_refused(shell: Shell) -> None:
    command = [PROGRAM, "serve", "--port", "0", "--no-watch"]
    logs = [shell.here / f"serve-{number}.log" for number in range(2)]
    both = []
    for path in logs:
        with path.open("wb") as log:
            both.append(
                subprocess.Popen(
                    command, cwd=shell.here, env=shell.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )
            )
    try:
        await_true("one is refused", lambda: any(process.poll() is not None for process in both))
        refused = next(number for number, process in enumerate(both) if process.poll() is not None)
        assert both[refused].returncode == 4
        assert "is already served" in logs[refused].read_text()
        await_true("the other one serves", lambda: "serving " in logs[1 - refused].read_text())
        assert both[1 - refused].poll() is None
    finally:
        for process in both:
            process.kill()
            process.wait(HANG_S)


def test_a_bucket_whose_disk_is_not_mounted_is_refused_and_nothing_is_made_in_its_place(shell: Shell) -> None:
    bucket, away = shell.here / "disk", shell.here / "unmounted"
    at = {"PRIME_TRAIN_BUCKET": bucket.as_uri()}
    config = shell.config()
    assert shell.run("run", config, **at).returncode == 0
    assert (bucket / "bucket.json").exists()
    bucket.rename(away)
    for empty in (False, True):
        if empty:
            bucket.mkdir()
        for command in (["serve", "--port", "0"], ["run", config]):
            done = shell.run(*command, **at)
            assert done.returncode == 4, done.stderr
            assert "check that its disk is mounted" in done.stderr
            assert "mount its disk, or set PRIME_TRAIN_BUCKET" in done.stderr
    assert list(bucket.iterdir()) == []
    bucket.rmdir()
    away.rename(bucket)
    assert shell.run("run", config, **at).returncode == 0


@pytest.mark.exhaustive
def test_a_bucket_is_known_however_its_address_is_written(shell: Shell) -> None:
    bucket, config = shell.here / "disk", shell.config()
    assert shell.run("run", config, PRIME_TRAIN_BUCKET=bucket.as_uri()).returncode == 0
    bucket.rename(shell.here / "unmounted")
    for written in (f"{bucket.as_uri()}/", f"file://localhost{bucket}", f"file:{bucket}"):
        done = shell.run("run", config, PRIME_TRAIN_BUCKET=written)
        assert done.returncode == 4, written
        assert "check that its disk is mounted" in done.stderr
    assert not bucket.exists()


def test_serve_names_the_secrets_that_waiting_runs_will_not_get(shell: Shell) -> None:
    shell.ok("run", shell.config(CONFIG + "secrets: [NEPTUNE_API_TOKEN]\n"))
    with shell.started("serve", "--port", "0", "--no-watch", until="cannot start"):
        assert "uses secrets that are not set here: NEPTUNE_API_TOKEN" in shell.output


@pytest.mark.exhaustive
def test_a_queued_run_that_is_stopped_ends_under_the_control_plane_and_can_go_on(shell: Shell) -> None:
    run_id = launched(shell)
    shell.ok("stop", run_id)
    with serving(shell):
        shell.ok("logs", run_id, "-f")  # until it is over
        assert one(shell, run_id)["state"] == "stopped"
        done = shell.run("stop", run_id)
        assert done.returncode == 2
        assert (
            f"is stopped: stop is not possible in this state\n  fix: prime-train resume {run_id}\n"
            in done.stderr
        )
    assert "queued again" in shell.ok("resume", run_id, "--usd", "9")
    assert one(shell, run_id)["budget_usd"] == 9


def test_a_followed_run_trains_to_its_end_and_its_checkpoints_are_complete(shell: Shell) -> None:
    done = shell.run("run", shell.config(), "--follow")
    assert done.returncode == 0, done.stdout + done.stderr
    run_id = done.stdout.split(" ", 1)[0]
    assert "this process acts as the control plane until the run ends" in done.stdout
    assert f"{run_id} succeeded: finished at step 20" in done.stdout
    seen = one(shell, run_id)
    assert (seen["state"], seen["step"], seen["durable_step"], seen["restarts"]) == ("succeeded", 20, 20, [])
    rows = json.loads(shell.ok("checkpoints", run_id, "--json"))
    assert all(row["complete"] and row["committed"] for row in rows)
    assert [row["step"] for row in rows if row["latest"]] == [20]
    assert rows[0]["files"] == 4
    assert "yes" in shell.ok("checkpoints", run_id)
    assert "useful" in shell.ok("status", run_id)
    assert f"--- runs/{run_id}/outputs/e1-" in shell.ok("logs", run_id)
    assert not [path for path in (shell.home / "pods").iterdir() if path.name.startswith("local-")]


def test_a_followed_run_that_fails_leaves_with_1_and_its_log_is_kept(shell: Shell) -> None:
    text = CONFIG.replace("--steps 20", "--steps 20 --fail-at-step 5 --fail-how import")
    done = shell.run("run", shell.config(text), "--follow")
    assert done.returncode == 1
    run_id = done.stdout.split(" ", 1)[0]
    output = shell.ok("logs", run_id, "--lines", "5")
    assert "No module named 'flash_attn'" in output
    assert f"--- runs/{run_id}/outputs/e1-" in output
