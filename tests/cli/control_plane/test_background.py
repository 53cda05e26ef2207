"""The control plane in the background: `run` and `resume` start it where none serves the home, and `down`
ends it. Real processes, which are killed, suspended and mistaken for others.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from prime_train.app.home import Home
from prime_train.app.serve_lock import Holder, holder_of
from prime_train.environment import BACKGROUND
from tests.chaos.disks import full, small_disk
from tests.cli.control_plane.test_serving import LEFT_ALONE, training
from tests.cli.inside import Inside
from tests.cli.shell import CONFIG, Shell
from tests.cli.terminal import terminal
from tests.waiting import HANG_S, await_true

STARTED = "started a control plane in the background"
LONG = CONFIG.replace("--steps 20", "--steps 9000 --step-seconds 0.1").replace("steps: 20", "steps: 9000")


@dataclass(frozen=True)
class Laptop(Shell):
    """A shell whose commands start a control plane, on a port that no other test uses."""

    folder: Path | None = None

    @property
    def home(self) -> Path:
        return self.folder or self.here / "home"

    @property
    def env(self) -> dict[str, str]:
        return super().env | {BACKGROUND: "yes"}

    @property
    def holder(self) -> Holder | None:
        return holder_of(self.home / "serve.lock")

    @property
    def pid(self) -> int:
        holder = self.holder
        assert holder is not None
        assert holder.in_background
        assert holder.pid is not None
        return holder.pid

    @property
    def served_url(self) -> str:
        return str(json.loads((self.home / "serve.json").read_text())["url"])

    def state(self, run_id: str) -> str:
        return str(json.loads(self.ok("status", run_id, "--json"))["state"])

    def launched(self, text: str = CONFIG) -> str:
        """Launch a run and return its id."""
        return self.ok("run", "-q", self.config(text)).strip()

    def kill(self) -> None:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        await_true("it is gone", lambda: self.holder is None)


def knows_its_port(home: Path) -> None:
    """Let the home have been served at a free port."""
    home.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    Home(home, {}).write_serving(url)


def clear(laptop: Laptop) -> None:
    """End the control plane and the machines of the home."""
    holder = laptop.holder if laptop.home.exists() else None
    if holder is not None and holder.in_background and holder.pid is not None:
        os.kill(holder.pid, signal.SIGKILL)
        await_true("it is gone", lambda: laptop.holder is None)
    pods = Home.of(laptop.env).local_pods() if laptop.home.exists() else None
    for pod in pods.list() if pods is not None else ():
        assert pods is not None
        pods.terminate(pod.pod_id)


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    one = Laptop(tmp_path)
    knows_its_port(one.home)
    try:
        yield one
    finally:
        clear(one)


def test_run_starts_a_control_plane_says_so_and_down_ends_it(laptop: Laptop) -> None:
    first = laptop.ok("run", laptop.config())
    assert first.startswith(f"{STARTED} (process {laptop.pid}); its log: {laptop.home / 'serve.log'}; to end")
    assert "to end it: prime-train down" in first
    assert "while this machine sleeps, training on it pauses" in first
    assert os.getsid(laptop.pid) == laptop.pid, "a terminal that ends does not end it"
    assert (laptop.home / "serve.log").stat().st_mode & 0o077 == 0
    run_id = next(line for line in first.splitlines() if " is queued" in line).split()[0]
    await_true("the run succeeds", lambda: laptop.state(run_id) == "succeeded")

    pid = laptop.pid
    again = laptop.ok("run", laptop.config())
    assert STARTED not in again
    assert laptop.pid == pid
    laptop.ok("stop", again.split()[0], "--now")
    await_true("nothing goes on", lambda: laptop.state(again.split()[0]) == "cancelled")
    assert laptop.ok("down") == f"ended the control plane of {laptop.home} (process {pid})\n"
    assert laptop.ok("down") == f"no control plane serves {laptop.home}\n"
    assert laptop.ok("down", "-q") == ""


def test_down_asks_while_runs_are_active_and_says_what_becomes_of_them(laptop: Laptop) -> None:
    run_id = laptop.launched(LONG)
    await_true("it trains", lambda: laptop.state(run_id) == "training")
    refused = laptop.run("down")
    assert refused.returncode == 2
    assert f"{run_id}: training, step " in refused.stderr
    assert "rented ones cost money even after their training has ended" in refused.stderr
    assert "add --yes" in refused.stderr
    assert LEFT_ALONE not in laptop.ok("status")

    laptop.ok("down", "--yes")
    shown = laptop.ok("status", run_id)
    assert LEFT_ALONE in shown
    assert "prime-train serve --background" in shown
    pods = Home.of(laptop.env).local_pods()
    assert [pod.status.value for pod in pods.list()] == ["active"], "its machine trains on"


def test_down_stops_the_runs_first_if_that_is_wanted(laptop: Laptop) -> None:
    run_id = laptop.launched(LONG)
    await_true("it has a checkpoint", lambda: saved(laptop, run_id))
    done = laptop.run("down", "--stop-runs", "--yes")
    assert done.returncode == 0, done.stderr
    assert laptop.state(run_id) == "stopped"
    assert laptop.holder is None
    assert Home.of(laptop.env).local_pods().list() == []


def test_nothing_is_lost_when_the_control_plane_is_killed(laptop: Laptop) -> None:
    run_id = laptop.launched(LONG)
    await_true("it trains", lambda: laptop.state(run_id) == "training")
    url, first = laptop.served_url, laptop.pid
    laptop.kill()
    assert LEFT_ALONE in laptop.ok("status")
    assert laptop.ok("down") == f"no control plane serves {laptop.home}\n"

    assert f"{STARTED} (process " in laptop.ok("run", laptop.config())
    assert (laptop.served_url, laptop.pid == first) == (url, False)
    laptop.ok("stop", run_id)
    await_true("it hears what is asked of it", lambda: laptop.state(run_id) == "stopped")
    status = json.loads(laptop.ok("status", run_id, "--json"))
    assert status["restarts"] == []
    assert status["durable_step"] > 0


def test_resume_starts_one_and_the_run_goes_on(laptop: Laptop) -> None:
    run_id = laptop.launched(LONG)
    await_true("it has a checkpoint", lambda: saved(laptop, run_id))
    laptop.ok("stop", run_id)
    await_true("it has stopped", lambda: laptop.state(run_id) == "stopped")
    laptop.ok("down")
    resumed = laptop.ok("resume", run_id)
    assert resumed.startswith(f"{run_id} is queued again and will resume from ")
    assert STARTED in resumed
    await_true("it trains again", lambda: laptop.state(run_id) == "training")


def saved(laptop: Laptop, run_id: str) -> bool:
    return bool(json.loads(laptop.ok("status", run_id, "--json"))["durable_step"])


def test_of_two_runs_at_once_one_starts_it(laptop: Laptop) -> None:
    config = laptop.config()
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: laptop.run("run", config), range(3)))
    assert [one.returncode for one in done] == [0, 0, 0], [one.stderr for one in done]
    assert sum(STARTED in one.stdout for one in done) == 1
    serving = [process for process in psutil.process_iter() if is_server_of(process, laptop)]
    assert [process.pid for process in serving] == [laptop.pid]


def is_server_of(process: psutil.Process, laptop: Laptop) -> bool:
    try:
        return "--detached" in process.cmdline() and process.environ()["PRIME_TRAIN_HOME"] == str(laptop.home)
    except (psutil.Error, KeyError):
        return False


def test_what_only_looks_starts_nothing(laptop: Laptop) -> None:
    config = laptop.config()
    laptop.ok("run", config, "--dry-run")
    laptop.ok("validate", config)
    laptop.ok("status")
    assert "prime-train serve --background" in laptop.ok("run", config, "--no-background")
    assert laptop.run("run", laptop.config("name: broken\n")).returncode == 1
    assert laptop.run("run", "--usd", "1", "--", "python", "no-such-script.py").returncode == 1
    assert laptop.holder is None
    assert not (laptop.home / "serve.log").exists()


def test_a_script_gets_only_the_result_on_stdout(laptop: Laptop) -> None:
    done = laptop.run("run", laptop.config(), "--json")
    assert json.loads(done.stdout)["state"] == "queued"
    assert STARTED in done.stderr
    assert len(laptop.launched().split()) == 1


def test_it_outlives_the_terminal_and_the_folder_of_its_start(laptop: Laptop) -> None:
    project = Laptop(laptop.here / "project", folder=laptop.home)
    project.here.mkdir()
    # A file of the user's that has the name of a library is not taken for it.
    (project.here / "requests.py").write_text("raise SystemExit('the wrong module')\n")
    with terminal(project, "run", project.config(), columns=300) as screen:
        screen.expect(STARTED)
        assert screen.end() == 0
    shutil.rmtree(project.here)
    run_id = json.loads(laptop.ok("status", "--json"))[0]["run"]
    await_true("the run succeeds", lambda: laptop.state(run_id) == "succeeded")
    assert psutil.Process(laptop.pid).cwd() == str(laptop.home)


def test_another_home_is_left_alone(laptop: Laptop) -> None:
    laptop.ok("serve", "--background")
    pid = laptop.pid
    other = laptop.run("down", "--yes", PRIME_TRAIN_HOME=str(laptop.here / "other"))
    assert (other.returncode, other.stdout) == (0, f"no control plane serves {laptop.here / 'other'}\n")
    assert not (laptop.here / "other").exists()
    assert laptop.pid == pid


def test_a_process_that_got_the_number_of_a_dead_control_plane_is_left_alone(laptop: Laptop) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (laptop.home / "serve.lock").write_text(f"{stranger.pid}\nbackground\n")
        assert laptop.ok("down", "--yes") == f"no control plane serves {laptop.home}\n"
        assert stranger.poll() is None
        stranger.communicate(b"\n", HANG_S)
        assert stranger.returncode == 0


def test_a_lock_that_names_a_process_which_is_no_control_plane_is_not_believed(laptop: Laptop) -> None:
    # As seen from outside of a container in which the home is served.
    lock = "import fcntl, os, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX);"
    lock += "file.write(f'{os.getpid()}\\nbackground\\n'); file.flush(); print(flush=True); input()"
    command = [sys.executable, "-c", lock, str(laptop.home / "serve.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        done = laptop.run("down", "--yes")
        assert done.returncode == 4
        assert f"by process {stranger.pid}, which is no process of yours that can be seen here" in done.stderr
        assert stranger.poll() is None
        stranger.communicate(b"\n", HANG_S)


def test_down_does_not_end_what_runs_in_a_terminal(laptop: Laptop) -> None:
    with laptop.started("serve", "--no-watch", until="serving ") as serve:
        done = laptop.run("down", "--yes")
        assert done.returncode == 4
        assert f"by process {serve.pid}, which was not started in the background" in done.stderr
        assert "press Ctrl-C in its terminal" in done.stderr
        assert serve.poll() is None
        assert STARTED not in laptop.ok("run", laptop.config())


def test_serve_in_the_background_does_nothing_twice_and_hides_no_other_wish(laptop: Laptop) -> None:
    assert STARTED in laptop.ok("serve", "--background", "--no-watch")
    pid = laptop.pid
    assert (
        laptop.ok("serve", "--background")
        == f"a control plane serves {laptop.home} already, at {laptop.served_url}\n"
    )
    for wish in (("--port", "1"), ("--public-url", "https://train.example.org")):
        done = laptop.run("serve", "--background", *wish)
        assert done.returncode == 4
        assert f"is already served, at {laptop.served_url} by process {pid}" in done.stderr
        assert "first: prime-train down" in done.stderr
    assert laptop.pid == pid


def test_values_that_were_set_after_its_start_are_missed_in_words(laptop: Laptop) -> None:
    laptop.ok("serve", "--background", "--no-watch")
    config = laptop.config(CONFIG + "secrets: [HF_TOKEN]\n")
    tokens = {"HF_TOKEN": "hf_" + "a" * 34, "PRIME_TRAIN_PROVIDER": "local"}
    done = laptop.run("run", config, **tokens)
    assert done.returncode == 0
    assert (
        "without the values that are set here of HF_TOKEN, PRIME_TRAIN_PROVIDER; to start it anew"
        in done.stderr
    )
    laptop.ok("down", "--yes")
    again = laptop.run("run", config, **tokens)
    assert STARTED in again.stdout
    assert "without the values" not in again.stderr
    log = (laptop.home / "serve.log").read_text()
    assert tokens["HF_TOKEN"] not in done.stderr + again.stdout + again.stderr + log


@pytest.mark.exhaustive
def test_one_that_hangs_is_named_and_can_be_ended(laptop: Laptop) -> None:
    laptop.ok("serve", "--background", "--no-watch")
    pid = laptop.pid
    os.kill(pid, signal.SIGSTOP)
    done = laptop.run("run", laptop.config())
    assert done.returncode == 4
    assert f"is served by process {pid}, which does not answer" in done.stderr
    assert "first: prime-train down" in done.stderr
    assert laptop.ok("down") == f"ended the control plane of {laptop.home} (process {pid})\n"
    assert json.loads(laptop.ok("status", "--json")) == []


# ------------------------------------------------------------------------------------------------------------
# what keeps it from starting


def test_a_port_that_another_program_has_taken_is_passed_over_while_no_machine_knows_it(
    laptop: Laptop,
) -> None:
    before = laptop.served_url
    with socket.create_server(("127.0.0.1", int(before.rsplit(":", 1)[1]))):
        laptop.ok("serve", "--background", "--no-watch")
    assert laptop.served_url != before


def test_a_port_that_machines_know_is_not_passed_over_and_nothing_is_launched(laptop: Laptop) -> None:
    training(laptop, "one")
    port = int(laptop.served_url.rsplit(":", 1)[1])
    with socket.create_server(("127.0.0.1", port)):
        done = laptop.run("run", laptop.config())
    assert done.returncode == 4
    assert f"no control plane could be started: port {port} of 127.0.0.1 is in use" in done.stderr
    assert "Traceback" not in done.stderr
    assert [one["run"] for one in json.loads(laptop.ok("status", "--json"))] == ["one"]
    assert laptop.holder is None


def test_a_log_that_cannot_be_written_is_named_and_nothing_is_launched(laptop: Laptop) -> None:
    (laptop.home / "serve.log").mkdir()
    done = laptop.run("run", laptop.config())
    assert done.returncode == 4
    assert f"no control plane could be started: {laptop.home / 'serve.log'}: Is a directory" in done.stderr
    assert json.loads(laptop.ok("status", "--json")) == []


def test_a_policy_that_cannot_be_read_is_told_by_the_command(laptop: Laptop) -> None:
    (laptop.home / "policy.yaml").write_text("providers: [nowhere]\n")
    done = laptop.run("serve", "--background")
    assert done.returncode != 0
    assert done.stderr.startswith("prime-train: no control plane could be started: ")
    assert "policy.yaml" in done.stderr


def test_warnings_of_its_start_are_seen_in_the_terminal(laptop: Laptop) -> None:
    laptop.home.chmod(0o755)
    done = laptop.run("serve", "--background", "--no-watch")
    assert done.returncode == 0
    warning = f"{laptop.home} could be read by other users of this machine (mode 755); now only you can"
    assert f"warning: {warning}\n" in done.stderr
    assert f"WARNING prime_train.serve: {warning}\n" in (laptop.home / "serve.log").read_text()


def test_a_full_disk_is_named_and_nothing_is_launched(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, 2**20):
        if not os.path.ismount(folder):
            pytest.skip("nothing may be mounted here")
        laptop = Laptop(tmp_path, folder=folder / "home")
        knows_its_port(laptop.home)
        try:
            with full(folder):
                done = laptop.run("run", laptop.config())
            assert done.returncode == 3
            assert "the disk is full; free some space" in done.stderr
            assert "Traceback" not in done.stderr
            assert laptop.holder is None
            assert STARTED in laptop.ok("serve", "--background", "--no-watch")
        finally:
            clear(laptop)


def test_a_control_plane_elsewhere_is_not_ended_from_here(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    key = {"PRIME_TRAIN_STORE": "https://train.example.org", "PRIME_TRAIN_MASTER_KEY": "00" * 32}
    done = inside.run("down", **key)
    assert done.returncode == 2
    assert "the control plane is elsewhere, at https://train.example.org" in done.stderr
    done = inside.run("serve", "--background", **key)
    assert done.returncode == 2
    assert "leave out --background" in done.stderr


def test_down_says_that_runs_cannot_be_listed_and_asks(laptop: Laptop) -> None:
    laptop.ok("serve", "--background", "--no-watch")
    for name in ("control.sqlite", "control.sqlite-wal", "control.sqlite-shm"):
        (laptop.home / name).unlink(missing_ok=True)
    (laptop.home / "control.sqlite").write_text("no database\n" * 1000)
    done = laptop.run("down")
    assert done.returncode == 2
    assert "warning: it is not known which runs are active: " in done.stderr
    laptop.ok("down", "--yes")
    assert laptop.holder is None


# ------------------------------------------------------------------------------------------------------------
# its log

WRITES = """\
import logging, pathlib, sys
from prime_train.app import logs
logs.BYTES_MAX = 20_000
take_over = logs.log_to_file(pathlib.Path(sys.argv[1]))
print("before", flush=True)
logging.getLogger("one").warning("a warning before")
logging.getLogger("one").info("an info before")
take_over()
for number in range(2_000):
    logging.getLogger("one").info("line %d with a \\x1b[31mcolour", number)
print("after", flush=True)
print("error after", file=sys.stderr, flush=True)
"""


def test_the_log_is_bounded_and_takes_what_the_process_prints(tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    done = subprocess.run(
        [sys.executable, "-c", WRITES, log], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert (done.stdout, done.stderr) == ("before\n", "warning: a warning before\n")
    text = log.read_text()
    assert text.endswith("after\nerror after\n")
    assert "line 1999 with a \\x1b[31mcolour" in text
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert len(sizes) == 2
    assert max(sizes) <= 20_000 + 100
