"""The control plane's folder."""

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from prime_train.app.home import PORT, Home
from prime_train.app.notifiers import loader_of
from prime_train.app.serving import Announced
from prime_train.errors import UsageError
from prime_train.runs.run import Run
from tests import builders as b
from tests.waiting import HANG_S


def home(folder: Path, **environment: str) -> Home:
    return Home.of({"PRIME_TRAIN_HOME": str(folder), **environment})


def test_the_master_key_is_made_once_however_many_come_first(tmp_path: Path) -> None:
    keys: list[bytes] = []
    together = threading.Barrier(8)

    def come() -> None:
        together.wait(HANG_S)
        keys.append(home(tmp_path / "home").master())

    threads = [threading.Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["master.key"]


def test_only_the_owner_reads_the_key_and_the_home(tmp_path: Path) -> None:
    home(tmp_path / "home").master()
    assert stat.S_IMODE((tmp_path / "home" / "master.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_a_key_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "master.key").write_bytes(b"short")
    with pytest.raises(UsageError, match="has 5 bytes, not 32"):
        home(tmp_path).master()


def test_the_bucket_is_a_folder_of_the_home_unless_it_is_elsewhere(tmp_path: Path) -> None:
    assert home(tmp_path).bucket_url == (tmp_path / "bucket").as_uri()
    assert home(tmp_path, PRIME_TRAIN_BUCKET="s3://team/runs").bucket_url == "s3://team/runs"


def test_a_home_is_in_the_users_folder_by_default() -> None:
    assert Home.of({}).root == Path.home() / ".prime-train"


def test_who_serves_is_remembered_with_its_port(tmp_path: Path) -> None:
    here = home(tmp_path)
    assert here.port() == PORT
    assert here.last_serving() is None
    here.write_serving("http://127.0.0.1:9123")
    output = here.last_serving()
    assert isinstance(output, Announced)
    assert output.url == "http://127.0.0.1:9123"
    assert here.port() == 9123
    assert here.serving() is None  # nobody answers there


def test_who_serves_only_for_a_while_is_in_nobodys_way(tmp_path: Path) -> None:
    assert home(tmp_path).port_meanwhile() == 0
    assert home(tmp_path, PRIME_TRAIN_URL="https://train.example.org").port_meanwhile() == PORT
    home(tmp_path).write_serving("http://127.0.0.1:9123")
    assert home(tmp_path).port_meanwhile() == 9123


def test_an_older_version_that_still_serves_rents_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "serve.json").write_text('{"url": "http://127.0.0.1:9123", "pid": 1, "provider": "prime"}')
    output = home(tmp_path).last_serving()
    assert isinstance(output, Announced)
    assert output.providers == ("prime",)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url": "http://x", "pid": "y"}'])
def test_what_cannot_be_read_of_serve_json_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "serve.json").write_text(text)
    assert home(tmp_path).last_serving() is None


def test_slack_is_notified_of_what_has_no_run_and_of_a_run_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = home(tmp_path / "home")
    here.store().create(Run("odd-1", b.spec(), created_s=1))
    with sqlite3.connect(here.root / "control.sqlite") as sql:
        sql.execute("UPDATE runs SET run = '{}'")
    held = loader_of(here.store())
    assert held("") is None
    assert held("odd-1") is None
    assert "run odd-1 is reported without its record" in caplog.text


def test_a_home_that_others_could_read_is_closed_to_them_when_it_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "home"
    (folder / "bucket" / "runs").mkdir(parents=True)
    (folder / "bucket" / "runs" / "spec.json").write_text("{}")
    (folder / "control.sqlite").touch()
    (folder / "serve.log").write_text("a log\n")
    for path in (folder, folder / "bucket", folder / "control.sqlite", folder / "serve.log"):
        path.chmod(0o755)

    with home(folder).serving_alone():
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}

    assert {path.name: mode for path, mode in modes.items() if mode & 0o077} == {
        "serve.lock": modes[folder / "serve.lock"]
    }
    assert modes[folder] == 0o700
    assert [record.getMessage() for record in caplog.records] == [
        f"{folder} could be read by other users of this machine (mode 755); now only you can"
    ]


def test_whoever_serves_a_home_of_another_user_is_told_that_its_owner_can_replace_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(folder, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with home(folder).serving_alone():
        told = [record.getMessage() for record in caplog.records]
    assert any("belongs to another user of this machine" in one and "its policy" in one for one in told)
    assert not any("now only you can" in one for one in told)


def test_a_new_home_and_its_bucket_are_for_their_owner_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    new = home(tmp_path / "home")
    new.make_bucket()
    with new.serving_alone():
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode)
            for path in (new.root, new.root / "bucket", new.root / "control.sqlite")
        }
    assert modes == {"home": 0o700, "bucket": 0o700, "control.sqlite": 0o600}
    assert not caplog.records
