"""Behaviour that only the SQLite store has: several processes, sudden ends, versions of the file, and the
conversion of its errors.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.run import Change, Lease, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.stored_json import dump
from prime_train.runs.wire import Outcome
from prime_train.status.status import statuses
from prime_train.stores.sqlite.file import connect
from prime_train.stores.sqlite.schema import MIGRATIONS, Statement, migrate
from prime_train.stores.sqlite.store import SqliteStore
from tests.builders import RUN_ID, T0_S, alert, heartbeat, history_event, lease, run
from tests.waiting import HANG_S

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 3
TURNS = 100

# Each child process: its first argument is the file.
SETUP = """
import sys
from dataclasses import replace
from pathlib import Path
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.runs.run import Change
from prime_train.errors import TemporaryError
from tests.builders import RUN_ID, heartbeat, history_event
store = SqliteStore(Path(sys.argv[1]))

def once():
    held = store.load(RUN_ID)
    after = replace(held.run, version=held.run.version + 1, backoffs=held.run.backoffs + 1)
    saved = store.save(Change(after, events=(history_event("x" * 2000),)))
    return after.backoffs if saved else None

def remember():
    watch = store.watch()
    return store.save_watch(replace(watch, version=watch.version + 1, last_sweep_s=(watch.last_sweep_s or 0) + 1), version=watch.version)
"""
COUNT = """
def saved(act):
    try:
        return bool(act())
    except TemporaryError:
        return False  # the others have kept the file for longer than a writer waits
print("ready", flush=True)
sys.stdin.readline()
done = 0
while done < int(sys.argv[2]):
    done += saved(lambda: once() is not None)
done = 0
while done < int(sys.argv[2]):
    done += saved(remember)
"""
STREAM = """
seq = store.load(RUN_ID).lease.seq
while True:
    seq += 1
    said = store.heartbeats([heartbeat(seq)], seq)[0].outcome.value == "ok"
    print(once(), seq if said else None, flush=True)
"""
UNTIL_FULL = """
import resource
room, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
done = 0
try:
    while done < 10_000:
        done = once()
except TemporaryError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    print(done, once(), error)
"""
OPEN = """
store.create(__import__("tests.builders").builders.run(run_id=sys.argv[2]))
"""


@contextmanager
def child(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run SETUP and the script in a process of their own; kill it at the end if it still runs."""
    command = [sys.executable, "-c", SETUP + script, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@contextmanager
def opened(path: Path, *, busy_s: float = 5.0) -> Iterator[SqliteStore]:
    store = SqliteStore(path, busy_s=busy_s)
    try:
        yield store
    finally:
        store.close()


def loaded(store: SqliteStore) -> RunRecord:
    record = store.load(RUN_ID)
    assert record is not None
    return record


def train(path: Path) -> None:
    """Store a run in the file that may send heartbeats."""
    new = run(RunState.TRAINING)
    with opened(path) as store:
        store.create(new)
        store.save(
            Change(
                replace(new, version=2), lease(new, seq=0, heartbeat=None, heartbeat_s=None), lease_version=0
            )
        )


def intact(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as sql:
        return sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# ------------------------------------------------------------------------------------------------- several
# processes, sudden ends


def test_processes_that_count_together_lose_no_update(path: Path) -> None:
    train(path)
    with (
        child(COUNT, path, TURNS) as one,
        child(COUNT, path, TURNS) as two,
        child(COUNT, path, TURNS) as three,
    ):
        children = (one, two, three)
        for process in children:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in children:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.wait(HANG_S) for process in children] == [0] * PROCESSES
    with opened(path) as store:
        assert loaded(store).run.backoffs == PROCESSES * TURNS
        assert store.watch().last_sweep_s == PROCESSES * TURNS
        assert len(store.history(RUN_ID)) == PROCESSES * TURNS


def test_processes_that_open_a_new_file_together_all_find_a_working_store(path: Path) -> None:
    with (
        child(OPEN, path, "one") as one,
        child(OPEN, path, "two") as two,
        child(OPEN, path, "three") as three,
    ):
        assert [process.wait(HANG_S) for process in (one, two, three)] == [0, 0, 0]
    with opened(path) as store:
        assert sorted(found.run_id for found in store.list_runs()) == ["one", "three", "two"]


def test_threads_that_open_a_new_file_together_all_find_a_working_store(path: Path) -> None:
    failed: list[BaseException] = []
    gate = threading.Barrier(8)

    def turn(number: int) -> None:
        gate.wait(HANG_S)
        try:
            with opened(path) as store:
                store.create(run(run_id=f"r{number}"))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with opened(path) as store:
        assert len(store.list_runs()) == 8


@pytest.mark.parametrize("lines", [1, 20, 75])
def test_a_writer_that_is_killed_leaves_every_acknowledged_write(path: Path, lines: int) -> None:
    train(path)
    for _ in range(2):
        with child(STREAM, path) as process:
            assert process.stdout is not None
            received = [process.stdout.readline() for _ in range(lines)]
            process.send_signal(signal.SIGKILL)
            received += process.stdout.read().splitlines(keepends=True)
        count, seq = max(
            tuple(int(word) for word in line.split()) for line in received if line.endswith("\n")
        )
        with opened(path) as store:
            record = loaded(store)
            assert record.run.backoffs in (count, count + 1)
            assert record.lease.seq in (seq, seq + 1)
            assert record.lease.heartbeat == heartbeat(record.lease.seq)
            assert len(store.history(RUN_ID)) == record.run.backoffs, "a save was kept in part"
        assert intact(path)


def test_a_disk_that_takes_no_more_is_a_temporary_error_until_there_is_room_again(path: Path) -> None:
    train(path)
    with child(UNTIL_FULL, path, 1_000_000) as process:
        wording, _ = process.communicate(timeout=HANG_S)
    before, after, message = wording.split(" ", 2)
    assert 10 < int(before) == int(after) - 1
    assert str(path) in message
    with opened(path) as store:
        assert loaded(store).run.backoffs == len(store.history(RUN_ID)) == int(after)
    assert intact(path)


def test_every_commit_is_flushed_to_the_disk(path: Path) -> None:
    """Only a power failure could show the difference."""
    with closing(connect(path)) as sql:
        assert sql.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        assert sql.execute("PRAGMA synchronous").fetchall() == [(2,)]


def test_a_store_that_is_opened_again_knows_everything(path: Path) -> None:
    train(path)
    with opened(path) as store:
        before = loaded(store)
        after = Change(replace(before.run, version=3), events=(history_event(),), alerts=(alert(),))
        assert store.save(after)
        store.heartbeat(heartbeat(4), T0_S + 70)
    with opened(path) as store:
        assert loaded(store).run == after.run
        assert loaded(store).lease.seq == 4
        assert (store.history(RUN_ID), store.outbox(9)) == ([history_event()], [alert()])


# ------------------------------------------------------------------------------------------------------------
# while others write


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the file's write lock, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_readers_do_not_wait_for_a_writer(path: Path) -> None:
    train(path)
    with writing(path), opened(path, busy_s=0.01) as store:
        assert loaded(store).run.run_id == RUN_ID
        assert [lease_status.run_id for lease_status in store.lease_statuses()] == [RUN_ID]
        assert store.due(T0_S, 9) == [RUN_ID]


def test_a_writer_that_waits_too_long_gets_a_temporary_error_and_changes_nothing(path: Path) -> None:
    train(path)
    with opened(path, busy_s=0.01) as store:
        with writing(path):
            with pytest.raises(TemporaryError, match="another process is writing"):
                store.heartbeat(heartbeat(1), T0_S)
            with pytest.raises(TemporaryError, match="another process is writing"):
                store.wake(RUN_ID, T0_S)
        assert loaded(store).run.version == 2
        assert store.heartbeat(heartbeat(1), T0_S).outcome is Outcome.OK


def test_a_store_that_was_closed_opens_the_file_again(path: Path) -> None:
    with opened(path) as store:
        store.close()
        store.close()
        assert store.create(run())


# ------------------------------------------------------------------------------------------------------------
# versions of the file


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as sql:
        return {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


NEXT: Sequence[Sequence[Statement]] = (
    *MIGRATIONS,
    ("ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT 'nobody'", "CREATE TABLE more (x)"),
)


def test_an_older_file_is_migrated_and_keeps_what_it_holds(path: Path) -> None:
    train(path)
    with closing(connect(path)) as sql:
        migrate(sql, path, NEXT)
        assert sql.execute("SELECT run_id, owner FROM runs").fetchall() == [(RUN_ID, "nobody")]
        assert sql.execute("SELECT version FROM schema_version").fetchall() == [(len(NEXT),)]
        migrate(sql, path, NEXT)


def test_alerts_that_waited_in_a_file_of_before_wait_for_every_notifier(path: Path) -> None:
    with closing(connect(path)) as sql:
        migrate(sql, path, MIGRATIONS[:1])
        for key, sent in (("told", 1), ("waits", 0)):
            sql.execute(
                "INSERT INTO outbox (key, sent, alert) VALUES (?, ?, ?)", (key, sent, dump(alert(key)))
            )
    with opened(path) as store:
        assert store.outbox(9) == store.outbox(9, lacking="log") == [alert("waits")]
        assert store.mark_sent("waits", "log", among=("log", "slack"))
    with opened(path) as store:
        assert (store.outbox(9, lacking="log"), store.outbox(9, lacking="slack")) == ([], [alert("waits")])
        assert not store.mark_sent("waits", "slack", among=("log", "slack"))
        store.enqueue_alert(alert("told"))
        assert store.outbox(9) == []


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    train(path)
    broken = (*MIGRATIONS, ("CREATE TABLE more (x)", "CREATE TABLE more (x)"))
    with closing(connect(path)) as sql, pytest.raises(sqlite3.OperationalError):
        migrate(sql, path, broken)
    assert "more" not in tables(path)
    with opened(path) as store:
        assert loaded(store).run.version == 2


def test_a_file_of_a_newer_version_is_refused_and_says_what_to_do(path: Path) -> None:
    train(path)
    with closing(connect(path)) as sql:
        migrate(sql, path, NEXT)
    with pytest.raises(PermanentError, match=r"newer version.*upgrade prime-train"):
        SqliteStore(path)


def test_another_programs_database_is_refused_and_not_touched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("CREATE TABLE schema_version (theirs)")
    before = path.read_bytes()
    with pytest.raises(PermanentError, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


# ------------------------------------------------------------------------------------------------------------
# errors


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"name: tiny\n" * 1000)
    with pytest.raises(PermanentError, match=r"store\.sqlite.*not a SQLite database"):
        SqliteStore(path)
    assert path.read_bytes() == b"name: tiny\n" * 1000


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=r"nowhere/store\.sqlite.*folder exists"):
        SqliteStore(tmp_path / "nowhere" / "store.sqlite")


def test_a_path_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=str(tmp_path)):
        SqliteStore(tmp_path)


def test_a_database_in_memory_is_refused_because_nobody_could_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermanentError, match="a write-ahead log is not possible"):
        SqliteStore(Path(":memory:"))


def test_a_damaged_file_is_a_permanent_error(path: Path) -> None:
    with opened(path) as store:
        for number in range(50):
            store.create(run(run_id=f"r{number}"))
    with closing(sqlite3.connect(path)) as sql:
        sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    complete = path.read_bytes()
    path.write_bytes(complete[:4096] + b"\xa5" * (len(complete) - 4096))
    with pytest.raises(PermanentError, match="damaged"), opened(path) as store:
        store.list_runs()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"run_id": "tiny-1", "spec": {"hunter2": "hunter2"}, "created_s": 1}']
)
def test_a_run_that_cannot_be_read_is_named_without_what_is_in_it(path: Path, text: str) -> None:
    train(path)
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE runs SET run = ?", (text,))
    with opened(path) as store:
        with pytest.raises(PermanentError, match=f"run {RUN_ID} cannot be read") as caught:
            store.load(RUN_ID)
        assert "= 'hunter2'" not in str(caught.value)
        assert "input_value" not in str(caught.value)
        assert store.list_runs() == []
        assert store.heartbeat(heartbeat(1), T0_S).outcome is Outcome.OK, "a heartbeat does not need the run"


def test_text_that_is_no_unicode_is_stored_readable(path: Path) -> None:
    """Such text comes from file names."""
    unusual = "caf\udce9"
    with opened(path) as store:
        store.create(run(why=unusual))
        before = loaded(store)
        ordered = replace(Lease(RUN_ID, version=1), order_reason=unusual)
        assert store.save(
            Change(
                replace(before.run, version=2, why=unusual),
                ordered,
                lease_version=0,
                events=(history_event(unusual),),
                alerts=(alert(text=unusual),),
            )
        )
        assert loaded(store).run.why == loaded(store).lease.order_reason == "caf?"
        assert (store.history(RUN_ID)[0].text, store.outbox(9)[0].text) == ("caf?", "caf?")


def test_a_copy_of_the_file_taken_between_two_runs_of_the_program_is_a_backup(
    path: Path, tmp_path: Path
) -> None:
    train(path)
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    with opened(path) as store, opened(copy) as copied:
        assert loaded(copied) == loaded(store)


def test_nobody_else_on_the_machine_reads_the_store_whatever_the_umask_is(path: Path) -> None:
    path.touch(0o644)
    path.chmod(0o644)  # as one of an earlier version was left
    before = os.umask(0)
    try:
        store = SqliteStore(path)
        store.create(run())
        assert {found.stat().st_mode & 0o777 for found in path.parent.glob("store.sqlite*")} == {0o600}
        assert len(list(path.parent.glob("store.sqlite*"))) == 3
    finally:
        os.umask(before)
    store.close()


LOOK = "print(store.load(RUN_ID).run.backoffs)"


def test_what_is_written_is_there_for_others_though_processes_come_and_go(tmp_path: Path) -> None:
    """The process that leaves last deletes the log. A process that goes on writing must count as present,
    however many connections it has.
    """
    path = tmp_path / "store.sqlite"
    store = SqliteStore(path)
    assert store.create(run())
    for turn in range(1, 3):
        SqliteStore(path).list_runs()
        record = store.load(RUN_ID)
        assert record is not None
        assert store.save(Change(replace(record.run, version=record.run.version + 1, backoffs=turn)))
        done = subprocess.run(
            [sys.executable, "-c", SETUP + LOOK, str(path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{turn}\n"


@pytest.mark.parametrize(
    "place", ["runs SET run", "leases SET heartbeat", "leases SET order_reason", "leases SET committed_key"]
)
def test_bytes_that_are_no_text_hide_no_other_run(path: Path, place: str) -> None:
    train(path)
    with opened(path) as store:
        assert store.create(replace(run(), run_id="tiny-2"))
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(f"UPDATE {place} = CAST(x'7b22ff22' AS TEXT) WHERE run_id = ?", (RUN_ID,))
    with opened(path) as store:
        assert [run.run_id for run in store.list_runs()] == ["tiny-2"]
        assert [one.run_id for one in store.unreadable()] == [RUN_ID]
        with pytest.raises(PermanentError, match=f"run {RUN_ID} cannot be read"):
            store.load(RUN_ID)


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE leases SET heartbeat_s = 'x'",
        "UPDATE leases SET overdue_s = 'x', heartbeat_s = 5",
        "UPDATE leases SET heartbeat = '{'",
        f"UPDATE leases SET heartbeat = '{'[' * 100_000}'",
        "UPDATE leases SET order_reason = x'ff'",
        "UPDATE leases SET version = 'x'",
        "UPDATE leases SET seq = 1.5",
        "UPDATE runs SET next_check_s = 'x'",
        "UPDATE runs SET version = 'x'",
        "UPDATE runs SET run = '{'",
        f"UPDATE runs SET run = '{'[' * 100_000}'",
        "DELETE FROM leases",
    ],
    ids=lambda sql: sql[:50],
)
def test_whatever_is_in_the_row_of_one_run_the_others_are_listed_and_judged(path: Path, poison: str) -> None:
    other = "good-1"
    with opened(path) as store:
        for run_id in (RUN_ID, other):
            assert store.create(run(RunState.QUEUED, run_id=run_id))
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE leases SET open = 1, attempt = 1")
        sql.execute(f"{poison} WHERE run_id = ?", (RUN_ID,))
    with opened(path) as store:
        shown = statuses(store)
        assert other in [one.run for one in shown.runs]
        heard = [
            T0_S - one.heartbeat_s > one.overdue_s
            for one in store.lease_statuses()
            if one.heartbeat_s is not None
        ]
        assert all(isinstance(one, bool) for one in heard)
        assert other in [one.run_id for one in store.lease_statuses()]
        if RUN_ID not in [one.run for one in shown.runs]:
            assert RUN_ID in [one.run_id for one in shown.unreadable]
