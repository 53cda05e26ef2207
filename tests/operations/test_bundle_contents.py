"""A bundle of a run with several attempts, and of checkpoints with files of every kind."""

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_train.app.home import Home
from prime_train.buckets.keys import METRICS_STREAM, code_key, piece_key
from prime_train.checkpoints.manifest import CHUNK_BYTES
from prime_train.environment import HOME
from prime_train.interop.bundle import contents
from prime_train.interop.bundle.verify import verify_bundle
from prime_train.interop.bundle.write import WrittenBundle, write_bundle
from prime_train.outputs.results.numbers import ResultSource, RunResults, parse_run_results
from prime_train.outputs.results.numbers import number as result
from prime_train.pages.charts.png import _family as png_family
from prime_train.runs.run import Run, RunState
from prime_train.trainers.of_spec import Progress
from tests import builders as b
from tests.agent.checkpoints.saving import save, ship, uploader
from tests.agent.outputs.leaving_outputs import identity_of, text_stream
from tests.checkpoints.torch_files import Kept, safetensors_in, torch_file


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.of({HOME: str(tmp_path / "home")})
    home.make_bucket()
    home.bucket().put(code_key(b.RUN_ID), code_archive())
    return home


def code_archive() -> bytes:
    """Return the code as it was uploaded."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("train.py"))
    return packed.getvalue()


def stored(home: Home, run: Run) -> Run:
    assert home.store().create(run)
    return run


def written(home: Home, file: Path, *, with_weights: bool = False) -> tuple[WrittenBundle, Path]:
    """Write the bundle, verify it, and return it with the folder that tar unpacks it to."""
    made = write_bundle(home, b.RUN_ID, file, with_weights=with_weights)
    found = verify_bundle(file)
    assert (found.wrong_files, found.run, found.step, found.with_weights) == (
        (),
        b.RUN_ID,
        made.step,
        with_weights,
    )
    assert found.files == len(made.files)
    with tarfile.open(file) as tar:
        tar.extractall(file.parent, filter="data")
    return made, file.parent / b.RUN_ID


def test_the_metrics_are_those_of_all_attempts_and_identities_are_left_out(
    home: Home, tmp_path: Path
) -> None:
    made = b.run(RunState.FAILED, attempt=2)
    run = stored(
        home,
        replace(
            made, attempts=tuple(replace(one, identity=identity_of(one.number)) for one in made.attempts)
        ),
    )
    for number, rows in (
        (1, [Progress(1, 3.0), Progress(2, 2.5)]),
        (2, [Progress(2, 2.25, None, {"lr": 0.5}), Progress(3, 2.0)]),
    ):
        table = tmp_path / f"attempt-{number}" / "metrics.csv"
        with closing(MetricsCsv(table)) as metrics:
            metrics.add(rows)
        with closing(text_stream(home.bucket(), table, attempt=number)) as streamed:
            streamed.upload(is_last=True)
    _, folder = written(home, tmp_path / "a.tar.gz")
    with (folder / "metrics.csv").open(newline="") as file:
        found = [(row["attempt"], row["step"], row["loss"], row["lr"]) for row in csv.DictReader(file)]
    assert found == [
        ("1", "1", "3.0", ""),
        ("1", "2", "2.5", ""),
        ("2", "2", "2.25", "0.5"),
        ("2", "3", "2.0", ""),
    ]
    assert "step 3: 2" in (folder / "curves" / "loss.svg").read_text()
    about = json.loads((folder / "run.json").read_text())
    assert [one["number"] for one in about["attempts"]] == [1, 2]
    assert not [one for one in run.attempts if one.identity in (folder / "run.json").read_text()]


def test_files_of_a_checkpoint_are_verified_whatever_their_size_and_name(home: Home, tmp_path: Path) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    large = os.urandom(CHUNK_BYTES) + bytes(CHUNK_BYTES) + b"the end"
    names = {
        "a": b"a",
        "large": large,
        "empty": b"",
        "two\nlines": b"2",
        "deep/" * 30 + "down": b"d",
        "COMPLETE": b"5\n",
    }
    save(tmp_path / "old" / "tree", 5, names)
    ship(uploader(home.bucket(), tmp_path / "old", files=[]))
    made, folder = written(home, tmp_path / "a.tar.gz", with_weights=True)
    assert made.step == 5
    assert (folder / "checkpoint" / "step_5" / "large").read_bytes() == large
    assert (folder / "checkpoint" / "step_5" / "two\nlines").read_bytes() == b"2"
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=folder, check=True)


def test_the_files_of_an_ended_run_are_the_same_in_every_bundle_but_for_the_page(
    home: Home, tmp_path: Path
) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    first, second = (write_bundle(home, b.RUN_ID, tmp_path / f"{name}.tar.gz") for name in ("a", "b"))
    assert first.files == second.files
    with tarfile.open(first.file) as one, tarfile.open(second.file) as other:
        assert [(member.name, member.mtime, member.mode) for member in one] == [
            (member.name, member.mtime, member.mode) for member in other
        ]


def test_the_throughput_of_each_attempt_is_told_with_the_price_of_its_tokens(
    home: Home, tmp_path: Path
) -> None:
    stored(home, b.run(RunState.FAILED, attempt=2))
    for number, tokens in ((1, 1000.0), (2, 4000.0)):
        table = tmp_path / f"attempt-{number}" / "metrics.csv"
        with closing(MetricsCsv(table)) as metrics:
            metrics.add([Progress(step, 3.0, None, {"tokens_per_s": tokens}) for step in (1, 2)])
        lines = table.read_text().splitlines()
        timed = [
            lines[0],
            *(
                ",".join([*line.split(",")[:1], str(10.0 * at), *line.split(",")[2:]])
                for at, line in enumerate(lines[1:])
            ),
        ]
        table.write_text("\n".join(timed) + "\n")
        with closing(text_stream(home.bucket(), table, attempt=number)) as streamed:
            streamed.upload(is_last=True)
    _, folder = written(home, tmp_path / "a.tar.gz")
    with (folder / "throughput.csv").open(newline="") as file:
        found = [
            (row["attempt"], row["first_step"], row["last_step"], row["step_s"], row["tokens_per_s"])
            for row in csv.DictReader(file)
        ]
    assert found == [("1", "1", "2", "10.0", "1000.0"), ("2", "1", "2", "10.0", "4000.0")]
    assert "| 1 to 2 | 10 | 4000 |" in (folder / "README.md").read_text()


def test_results_and_seeds_are_told(home: Home, tmp_path: Path) -> None:
    spec = b.spec(
        trainer={"command": "python train.py --config conf/a.yaml --data_seed=4"},
        environment={"PYTHONHASHSEED": "7"},
    )
    stored(home, b.run(RunState.SUCCEEDED, spec=spec))
    code = io.BytesIO()
    texts = {
        "train.py": "torch.manual_seed(42)  # seed: 9\n",
        "conf/a.yaml": "lr: 1\nseed: 3\n",
        "other.yaml": "seed: 5\n",
    }
    with tarfile.open(fileobj=code, mode="w:gz") as tar:
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    home.bucket().put(code_key(b.RUN_ID), code.getvalue())
    numbers = (
        result("loss", 1.5, step=20),
        result("arc/accuracy", 0.25, ResultSource.EVALUATION, step=10),
        result("x", 1.0, ResultSource.AFTER, by="eval"),
    )
    made = RunResults(
        run=b.RUN_ID,
        attempt=1,
        numbers=numbers,
        state="succeeded",
        config="tiny",
        config_sha256="0" * 64,
        ended_s=b.T0_S,
        step=20,
    )
    home.bucket().put(made.key, made.data)
    _, folder = written(home, tmp_path / "a.tar.gz")
    about = json.loads((folder / "run.json").read_text())
    assert [(seed["name"], seed["value"], seed["where"]) for seed in about["seeds"]] == [
        ("PYTHONHASHSEED", 7, "environment"),
        ("data_seed", 4, "trainer.command"),
        ("torch.manual_seed", 42, "train.py:1"),
        ("seed", 3, "conf/a.yaml:2"),
    ]
    readme = (folder / "README.md").read_text()
    assert "| arc/accuracy | 0.25 | evaluation | 10 |" in readme
    assert "| x | 1 | after (eval) | - |" in readme
    assert (
        "torch.manual\\_seed = 42 (train.py:1)" in readme or "torch.manual_seed = 42 (train.py:1)" in readme
    )
    assert parse_run_results((folder / "results.json").read_bytes(), b.RUN_ID) == made


def test_where_no_png_can_be_drawn_the_svg_is_there_and_the_reason_is_noted(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    png_family.cache_clear()
    stored(home, b.run(RunState.SUCCEEDED))
    table = tmp_path / "attempt-1" / "metrics.csv"
    with closing(MetricsCsv(table)) as metrics:
        metrics.add([Progress(1, 3.0), Progress(2, 2.5)])
    with closing(text_stream(home.bucket(), table, attempt=1)) as streamed:
        streamed.upload(is_last=True)
    made, folder = written(home, tmp_path / "a.tar.gz")
    assert [path.name for path in (folder / "curves").iterdir()] == ["loss.svg"]
    assert made.notes == ("curves as PNG: resvg-py is not installed: pip install 'prime-train[charts]'",)


@pytest.mark.parametrize("top", ["", "model"])
def test_weights_that_torch_saved_are_handed_over_as_safetensors_too(
    home: Home, tmp_path: Path, top: str
) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    model = {
        "embed.weight": Kept("FloatStorage", (300, 1000), os.urandom(1_200_000)),
        "scale": Kept("BFloat16Storage", (), b"\x80\x3f"),
    }
    state = {top: model, "optimizer": {"step": 5}} if top else model
    save(
        tmp_path / "old" / "tree",
        5,
        {"model.pt": torch_file(state), "optimizer.pt": torch_file(model), "COMPLETE": b"5\n"},
    )
    ship(uploader(home.bucket(), tmp_path / "old", files=[]))
    made, folder = written(home, tmp_path / "a.tar.gz", with_weights=True)
    assert made.notes == ()
    assert [path.name for path in (folder / "weights").iterdir()] == ["model.pt.safetensors"]
    header, numbers = safetensors_in((folder / "weights" / "model.pt.safetensors").read_bytes())
    assert header["embed.weight"] == {"dtype": "F32", "shape": [300, 1000], "data_offsets": [0, 1_200_000]}
    assert header["scale"] == {"dtype": "BF16", "shape": [], "data_offsets": [1_200_000, 1_200_002]}
    assert numbers == model["embed.weight"].data + model["scale"].data
    assert "weights/" in (folder / "README.md").read_text()


def test_where_nothing_can_be_converted_the_files_are_handed_over_as_they_are_and_the_reason_is_noted(
    home: Home, tmp_path: Path
) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    save(tmp_path / "old" / "tree", 5, {"state.pt": torch_file({"step": 5}), "COMPLETE": b"5\n"})
    ship(uploader(home.bucket(), tmp_path / "old", files=[]))
    made, folder = written(home, tmp_path / "a.tar.gz", with_weights=True)
    assert not (folder / "weights").exists()
    assert made.notes == (
        "state.pt as safetensors: it has no model: no mapping from names to tensors was found in it",
    )


def test_no_cell_of_a_table_is_calculated_by_whoever_opens_it(home: Home, tmp_path: Path) -> None:
    """Names of figures, machines and files are chosen by a machine, and a spreadsheet program would call
    addresses and programs.
    """
    made = b.run(RunState.FAILED, attempt=1)
    (attempt,) = made.attempts
    offer = replace(attempt.offer, gpu='=HYPERLINK("http://evil","see")')
    stored(home, replace(made, attempts=(replace(attempt, identity=identity_of(1), offer=offer),)))
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\uff1d1", " =1", "lr"]
    rows = [
        f"step,time_s,loss,reward,{','.join(chr(34) + name + chr(34) for name in names)}",
        *(f"{n},{n},1,,1,1,1,1,1,1,1" for n in (1, 2, 3)),
    ]
    home.bucket().put(piece_key(b.RUN_ID, 1, identity_of(1), METRICS_STREAM, 1), "\n".join(rows).encode())
    save(tmp_path / "old" / "tree", 5, {"=1+1": b"a", "COMPLETE": b"5\n"})
    ship(uploader(home.bucket(), tmp_path / "old", files=[]))

    written(home, tmp_path / "a.tar.gz")

    tables = sorted((tmp_path / b.RUN_ID).glob("*.csv"))
    cells = [cell for table in tables for row in csv.reader(table.read_text().splitlines()) for cell in row]
    assert not [cell for cell in cells if cell.strip().startswith(tuple("=+-@\uff1d"))]
    assert {"lr", "'=cmd|' /C calc'!A0", "'@SUM(1)"} <= set(cells)


def test_a_machine_that_names_other_figures_in_every_row_makes_no_table_of_any_width(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "COLUMNS_MAX", 10)
    made = b.run(RunState.FAILED, attempt=1)
    stored(home, replace(made, attempts=(replace(made.attempts[0], identity=identity_of(1)),)))
    rows = "".join(f"step,time_s,a{n},b{n}\n{n},1,1,1\n" for n in range(1, 100))
    home.bucket().put(piece_key(b.RUN_ID, 1, identity_of(1), METRICS_STREAM, 1), rows.encode())

    _, folder = written(home, tmp_path / "a.tar.gz")

    with (folder / "metrics.csv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file)} == {5 + 10}


def test_metrics_beyond_the_limit_are_left_out_and_that_is_noted(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "METRICS_BYTES_MAX", 2**20)
    made = b.run(RunState.FAILED, attempt=1)
    stored(home, replace(made, attempts=(replace(made.attempts[0], identity=identity_of(1)),)))
    for number, filler in ((1, 100), (2, 2**20)):
        text = f"step,time_s,loss\n{number},1,0.5\n{'x' * filler}\n"
        home.bucket().put(piece_key(b.RUN_ID, 1, identity_of(1), METRICS_STREAM, number), text.encode())

    _, folder = written(home, tmp_path / "a.tar.gz")

    assert [row["step"] for row in csv.DictReader((folder / "metrics.csv").read_text().splitlines())] == ["1"]
    assert "after the first 1 MiB" in (folder / "README.md").read_text()
