"""Scripts that fail, flood, hide or write where they should not: a rehearsal ends, says so, and leaves nothing
behind.
"""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

from prime_train.rehearsal.conclusions import conclusions
from prime_train.rehearsal.process import MARK, why_not_walled
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.rehearse import rehearse
from tests.rehearsal.rehearsals import request_of
from tests.waiting import HANG_S, await_true

SAVING = """
import pickle, sys, time
from pathlib import Path
step = 0
for path in Path().glob("ckpt_*.pkl"):
    step = max(step, int(path.stem[5:]))
{before}
while step < {steps}:
    time.sleep(0.03)
    step += 1
    {each}
    print("step", step, flush=True)
    if step % 15 == 0:
        {save}
        Path(f"ckpt_{{step}}.pkl").write_bytes(pickle.dumps([0.5] * 900))
"""


@pytest.fixture(autouse=True)
def folder_for_what_is_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which rehearsals make theirs; it must be empty after each."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def tried(project: Path, text: str) -> Rehearsal:
    """Rehearse a script with this text, and check that nothing is left behind."""
    (project / "train.py").write_text(textwrap.dedent(text))
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}

    found = rehearse(request_of(project), os.environ, lambda _: None)

    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    assert list(Path(tempfile.gettempdir()).iterdir()) == []
    assert not left_processes()
    return found


def left_processes() -> list[int]:
    """Return the processes of this test's rehearsals that still run."""
    found = []
    for process in psutil.process_iter():
        try:
            own = process.environ()
            is_ours = MARK in own and own["HOME"].startswith(tempfile.gettempdir())
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def said(found: Rehearsal) -> dict[str, str]:
    return {one.topic: f"{one.text}; {one.evidence}" for one in conclusions(found)}


def saving(*, before: str = "", each: str = "pass", save: str = "pass", steps: int = 400) -> str:
    return SAVING.format(before=before, each=each, save=save, steps=steps)


def test_a_script_that_fails_at_once_is_said_to_with_its_last_line(project: Path) -> None:
    found = tried(project, "import nothing_of_this_name\n")

    assert "code 1" in said(found)["failed"]
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in said(found)["failed"]
    assert not found.saves.saves


def test_a_script_whose_name_is_misspelt_is_told_which_was_meant(project: Path) -> None:
    (project / "train.py").write_text("print('step 1')\n")

    found = rehearse(request_of(project, script="trian.py"), os.environ, lambda _: None)

    assert "did you mean train.py?" in said(found)["advice"]
    assert set(said(found)) == {"failed", "advice"}  # and nothing about steps that it could not print


def test_a_checkpoint_that_cannot_be_loaded_is_told_by_the_exception_and_not_by_its_last_line(
    project: Path,
) -> None:
    before = """
if step:
    def load():
        raise pickle.UnpicklingError("Weights only load failed.\\n\\nRead the manual of load to learn more.")
    load()  # load_checkpoint("ckpt")
"""

    found = tried(project, saving(before=before))

    resume = [f"{one.text}; {one.evidence}" for one in conclusions(found) if one.topic == "resume"]
    assert "failed (_pickle.UnpicklingError: Weights only load failed." in resume[0]
    assert [one for one in resume if "it loads in train.py:" in one]
    assert not [one for one in resume if "not what was restored" in one or "where to begin" in one]


def test_a_script_that_reads_its_input_gets_none(project: Path) -> None:
    found = tried(project, "input('which run? ')\n")

    assert "code 1" in said(found)["failed"]
    assert "EOFError" in said(found)["failed"]


def test_a_script_of_thirty_steps_is_proven_by_what_it_left(project: Path) -> None:
    found = tried(project, saving(steps=40))

    assert found.saves.numbers == [15, 30]
    assert found.is_proven, found.tries
    assert found.again is not None
    assert (found.again.restored, found.again.first) == (30, 31)


def test_a_flood_of_lines_does_not_hide_the_step(project: Path) -> None:
    found = tried(project, saving(each='print(("debug tensor stats " * 4 + "\\n") * 300)'))

    assert found.progress is not None
    assert found.is_proven, found.tries


def test_bytes_that_are_no_text_and_escape_codes_do_no_harm(project: Path) -> None:
    found = tried(
        project, saving(each='sys.stdout.buffer.write(bytes(range(256)) + b"\\x1b]0;title\\x07\\n")')
    )

    assert found.is_proven, found.tries
    assert not [text for text in said(found).values() if "\x1b" in text or "\x07" in text]


def test_pipes_links_and_names_with_line_breaks_beside_the_checkpoints_do_no_harm(project: Path) -> None:
    hostile = (
        "import os; os.path.exists('ckpt_7.pkl') or os.mkfifo('ckpt_7.pkl'); "
        "os.path.lexists('ckpt_8.pkl') or os.symlink('/etc/passwd', 'ckpt_8.pkl'); "
        "os.path.exists('log.txt') or os.mkfifo('log.txt'); "
        r"Path('a\nb\x1b[31m_' + str(step)).write_bytes(bytes(50))"
    )
    found = tried(project, saving(save=hostile).replace("int(path.stem[5:])", "int(path.stem[5:]) // 9 * 9"))

    assert found.saves.pattern == "ckpt_{step}.pkl"
    assert set(found.saves.numbers) >= {15, 30, 45}


def test_a_script_that_hears_no_signal_is_killed_and_said_not_to(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_train.rehearsal.observe.STOP_S_MAX", 1.0)
    found = tried(project, saving(before="import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"))

    assert "it goes on" in said(found)["SIGTERM"]
    assert found.is_proven, found.tries


def test_a_disk_without_room_for_copies_is_said_to_be_too_small(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_train.rehearsal.aside.FREE_BYTES_MIN", 2**60)

    found = tried(project, saving(steps=60))

    assert "set TMPDIR to a folder on a larger disk" in said(found)["resume"]
    assert not found.tries


def test_a_daemon_of_the_script_is_ended_with_it(project: Path) -> None:
    daemon = (
        "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(10000)'], "
        "start_new_session=True)"
    )
    found = tried(project, saving(before=daemon))

    assert found.is_proven, found.tries


@pytest.mark.skipif(bool(why_not_walled(Path("/nowhere"))), reason="bubblewrap does not work here")
def test_a_path_that_leads_into_the_project_leads_into_the_copy(project: Path) -> None:
    text = saving().replace('Path(f"ckpt', f'Path("{project}", f"ckpt')
    found = tried(project, text)

    assert found.is_proven, found.tries


def test_the_folder_for_what_is_temporary_may_be_in_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(project / "temporary"))

    found = tried(project, "print('step 1')\nprint('step 2')\nprint('step 3')\n")

    assert found.first.code == 0


@pytest.mark.skipif(bool(why_not_walled(Path("/nowhere"))), reason="bubblewrap does not work here")
def test_a_file_outside_of_the_project_cannot_be_changed(project: Path, tmp_path: Path) -> None:
    outside = Path.home() / f".prime-train-test-{os.getpid()}-{tmp_path.name}"
    found = tried(project, f"open({str(outside)!r}, 'w').write('changed')\n")

    assert not outside.exists()
    assert "failed" in said(found)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_rehearsal_that_is_interrupted_leaves_nothing_behind(
    number: signal.Signals, project: Path, folder_for_what_is_temporary: Path
) -> None:
    (project / "train.py").write_text(saving(steps=100_000).replace("% 15", "% 10_000"))
    command = [str(Path(sys.executable).with_name("prime-train")), "try", "--", "python", "train.py"]
    with subprocess.Popen(
        command,
        cwd=project,
        env={**os.environ, "TMPDIR": str(folder_for_what_is_temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith("watching"))
        await_true("the script runs", left_processes)
        process.send_signal(number)
        process.stderr.read()
        assert process.wait(HANG_S) != 0

    await_true("all of its processes have ended", lambda: not left_processes())
    assert list(folder_for_what_is_temporary.iterdir()) == []
    assert [path.name for path in project.iterdir()] == ["train.py"]
