"""`prime-train bundle`: what is handed over explains the run, is verified, and is launched again by someone
who has nothing else.
"""

import csv
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.buckets.keys import code_key, evidence_key
from prime_train.runs.run import RunState
from tests import builders as b
from tests.cli.documented import check
from tests.cli.shell import CONFIG, Shell

SECRET = "hf_" + "a1B2" * 6
WANTED = "success: {loss_below: 1000, reward_above: 0.5, tokens_per_s_min: 10}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str, Path]:
    """Return the shell of a home with a run that has succeeded, its id, and its bundle with weights. The
    folder that its code came from is gone.
    """
    shell = Shell(tmp_path_factory.mktemp("first"))
    config = shell.config(CONFIG.replace("python -m prime_train.demo.train", "python train.py") + WANTED)
    shell.write(
        "tree/train.py", "import runpy\n\nrunpy.run_module('prime_train.demo.train', run_name='__main__')\n"
    )
    run_id = shell.ok("run", config, "--follow").split(" ", 1)[0]
    shutil.rmtree(shell.here / "tree")
    row = json.loads(shell.ok("bundle", run_id, "--weights", "--json"))
    check("bundle", row)
    assert (row["run"], row["step"], row["with_weights"], row["notes"]) == (run_id, 20, True, [])
    assert row["size_bytes"] == (shell.here / row["file"]).stat().st_size
    return shell, run_id, shell.here / f"{run_id}.tar.gz"


def members(bundle: Path) -> dict[str, bytes]:
    """Return the files below the run's folder, in their order."""
    with tarfile.open(bundle) as tar:
        return {
            one.name.split("/", 1)[1]: file.read()
            for one in tar
            if (file := tar.extractfile(one)) is not None
        }


def packed(file: Path, top: str, content: Mapping[str, bytes]) -> Path:
    with tarfile.open(file, "w:gz") as tar:
        for path, data in content.items():
            info = tarfile.TarInfo(f"{top}/{path}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


def with_sums(content: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with the hashes that they have now, as someone who changes a bundle could write
    them.
    """
    files = {path: data for path, data in content.items() if path != "SHA256SUMS"}
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items())
    return files | {"SHA256SUMS": lines.encode()}


def wrong_files(shell: Shell, bundle: Path) -> dict[str, str]:
    done = shell.run("bundle", "--verify", str(bundle), "--json")
    row = json.loads(done.stdout)
    check("bundle --verify", row)
    assert done.returncode == (0 if row["intact"] else 1)
    return {one["path"]: one["what"] for one in row["wrong_files"]}


def chunks_of_last_step(shell: Shell, run_id: str) -> list[tuple[str, list[str]]]:
    """Return the files of the last checkpoint with the hashes of their content."""
    manifest = max(
        (shell.home / "bucket" / "runs" / run_id / "manifests").iterdir(), key=lambda path: path.name
    )
    found = json.loads(manifest.read_text())
    assert found["step"] == 20
    return [(file["path"], [chunk["digest"] for chunk in file["chunks"]]) for file in found["files"]]


# ------------------------------------------------------------------------------------------------------------
# what is in it


def test_it_explains_the_run(made: tuple[Shell, str, Path]) -> None:
    _, run_id, bundle = made
    files = members(bundle)
    weights = [path for path in files if path.startswith("checkpoint/step_20/")]
    assert [path for path in files if path not in weights] == [
        "README.md",
        "checkpoint-manifest.json",
        "code.tar.gz",
        "config.yaml",
        "curves/loss.png",
        "curves/loss.svg",
        "metrics.csv",
        "page.html",
        "results.json",
        "run.json",
        "throughput.csv",
        "SHA256SUMS",
    ]
    assert len(weights) == 4
    about = json.loads(files["run.json"])
    assert (about["run"], about["status"]["state"], about["status"]["durable_step"]) == (
        run_id,
        "succeeded",
        20,
    )
    assert [attempt["offer"]["offer_id"] for attempt in about["attempts"]] == ["local-spot"]
    assert [one["outcome"] for one in about["success"]] == ["met", "unknown", "unknown"]
    rows = files["metrics.csv"].decode().splitlines()
    assert rows[0].startswith("attempt,step,time_s,loss,reward")
    assert [row.split(",")[:2] for row in rows[1:]] == [["1", str(step)] for step in range(1, 21)]
    assert b"loss over steps" in files["curves/loss.svg"]
    assert files["curves/loss.png"].startswith(b"\x89PNG")
    assert files["throughput.csv"].decode().splitlines()[1].startswith("1,no GPU,0.6,1,20,")
    readme = files["README.md"].decode()
    assert json.loads(files["results.json"])["run"] == run_id
    for words in (
        f"# {run_id}",
        "| loss | ",
        "loss below 1000 | met: ",
        "tokens per second at least 10 | unknown: ",
        "prime-train run config.yaml",
    ):
        assert words in readme


def test_the_archive_has_neither_owners_nor_absolute_paths_and_is_checked_by_sha256sum(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    _, run_id, bundle = made
    with tarfile.open(bundle) as tar:
        assert {(one.uid, one.gid, one.uname, one.name.split("/")[0]) for one in tar} == {(0, 0, "", run_id)}
        tar.extractall(tmp_path, filter="data")
    subprocess.run(
        ["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=tmp_path / run_id, check=True
    )


def test_a_bundle_without_weights_has_the_manifest_alone_and_no_file_is_overwritten(
    made: tuple[Shell, str, Path],
) -> None:
    shell, run_id, bundle = made
    output = shell.ok("bundle", "small", "--out", "light.tar.zst")
    assert f"files of {run_id}" in output
    assert "intact" in shell.ok("bundle", "--verify", "light.tar.zst")
    assert not wrong_files(shell, shell.here / "light.tar.zst")
    done = shell.run("bundle", run_id)
    assert done.returncode == 2
    assert f"{bundle.name} already exists" in done.stderr
    shell.ok("bundle", run_id, "--weights", "--replace")


def test_what_looks_like_a_secret_is_redacted_and_a_run_that_failed_early_has_a_bundle_too(
    shell: Shell,
) -> None:
    home = Home.of(shell.env)
    spec = b.spec(
        environment={"PASSWORD": SECRET, "NOTE": "plain"},
        secrets=["WANDB_API_KEY"],
        trainer={"command": f"t.py {SECRET}"},
    )
    assert home.store().create(b.run(RunState.FAILED, spec=spec, why=f"{SECRET} is not valid"))
    home.make_bucket()
    code = packed(shell.here / "code.tar.gz", ".", {"train.py": b"the code as it was uploaded"})
    home.bucket().put(code_key(b.RUN_ID), code.read_bytes())
    home.bucket().put(evidence_key(b.RUN_ID, 1, "gpu.txt"), f"Driver Version: 580.1\n{SECRET}\n".encode())
    shell.ok("bundle", b.RUN_ID)
    files = members(shell.here / f"{b.RUN_ID}.tar.gz")
    assert "checkpoint-manifest.json" not in files
    assert files["machines/attempt-1-gpu.txt"] == b"Driver Version: 580.1\n(hidden)\n"
    assert SECRET.encode() not in b"".join(files.values())
    assert "NOTE: plain" in files["config.yaml"].decode()
    readme = files["README.md"].decode()
    assert "The control plane must have `WANDB_API_KEY` in its environment." in readme
    assert "Values that look like secrets are replaced by `(hidden)`" in readme
    assert not wrong_files(shell, shell.here / f"{b.RUN_ID}.tar.gz")
    done = shell.run("bundle", b.RUN_ID, "--weights", "--replace")
    assert done.returncode == 2
    assert "has no complete checkpoint" in done.stderr


def test_a_bundle_that_refers_to_the_bucket_pins_the_checkpoint_and_is_compared_with_it(
    made: tuple[Shell, str, Path],
) -> None:
    shell, run_id, _ = made
    shell.ok("bundle", run_id, "--weights-in-bucket", "--out", "refers.tar.gz")
    files = members(shell.here / "refers.tar.gz")
    assert not [path for path in files if path.startswith(("checkpoint/", "weights/"))]
    rows = list(csv.DictReader(io.StringIO(files["checkpoint-objects.csv"].decode())))
    assert {row["blake3"] for row in rows} == {
        digest for _, digests in chunks_of_last_step(shell, run_id) for digest in digests
    }
    for row in rows:
        assert (shell.home / "bucket" / row["key"]).stat().st_size == int(row["stored_bytes"])
    assert [path.name for path in (shell.home / "bucket" / "runs" / run_id / "pins").iterdir()] == [
        "000000000020-e1.json"
    ]
    readme = files["README.md"].decode()
    assert f"prime-train bundle --verify {run_id}.tar.gz --weights-in-bucket" in readme
    said = shell.ok("bundle", "--verify", "refers.tar.gz")
    assert "intact" in said
    assert "were not compared; --weights-in-bucket does that" in said
    assert "compared" not in shell.ok("bundle", "--verify", "refers.tar.gz", "--weights-in-bucket")
    restore = next(line for line in readme.splitlines() if line.startswith("prime-train checkpoints restore"))
    shell.ok(*restore.replace("DIR", "restored").split()[1:])
    assert len(list((shell.here / "restored" / "step_20").iterdir())) == 4


def test_an_object_that_is_gone_from_the_bucket_is_named_and_a_bundle_has_the_files_or_refers_to_them(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    first, run_id, _ = made
    shell = Shell(tmp_path)
    shutil.copytree(first.home, shell.home)
    shell.ok("bundle", run_id, "--weights-in-bucket", "--out", "refers.tar.gz")
    (path, digests) = chunks_of_last_step(shell, run_id)[0]
    for blob in (shell.home / "bucket" / "runs" / run_id / "blobs").iterdir():
        if blob.name.startswith(digests[0]):
            blob.unlink()
    done = shell.run("bundle", "--verify", "refers.tar.gz", "--weights-in-bucket", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["objects_checked"]
    assert (path, "in the bucket: is missing") in [
        (one["path"].rpartition("/")[2], one["what"]) for one in found["wrong_files"]
    ]
    done = shell.run("bundle", run_id, "--weights", "--weights-in-bucket", "--out", "both.tar.gz")
    assert done.returncode == 2
    assert "not both" in done.stderr


# -----------------------------------------------------------------------------------------------------------
# launched again


def test_someone_who_has_only_the_bundle_gets_the_same_final_checkpoint(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    first, run_id, bundle = made
    here = tmp_path / "another" / "place"
    here.mkdir(parents=True)
    shutil.copy(bundle, here)
    assert "intact" in Shell(here).ok("bundle", "--verify", bundle.name)
    subprocess.run(["tar", "-xzf", bundle.name], cwd=here, check=True)
    second = Shell(here / run_id)
    steps = (here / run_id / "README.md").read_text().split("```sh\n")[1].split("```")[0].splitlines()
    assert steps == ["mkdir code", "tar -xzf code.tar.gz -C code", "prime-train run config.yaml"]
    for step in steps[:-1]:
        subprocess.run(step.split(), cwd=second.here, check=True)
    output = second.ok(*steps[-1].split()[1:], "--follow")
    again = output.split(" ", 1)[0]
    assert again != run_id
    assert f"{again} succeeded: finished at step 20" in output
    assert chunks_of_last_step(second, again) == chunks_of_last_step(first, run_id)


# ------------------------------------------------------------------------------------------------------------
# what is refused


def changed(path: str, change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda files: files | {path: change(files[path])}


def other_checkpoint(data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"created_s": 1}).encode()


@pytest.mark.parametrize(
    ("change", "path", "what"),
    [
        (
            changed("metrics.csv", lambda data: data + b"1,21\n"),
            "metrics.csv",
            "has another content than SHA256SUMS says",
        ),
        (
            lambda files: {name: data for name, data in files.items() if name != "page.html"},
            "page.html",
            "is missing",
        ),
        (lambda files: files | {"more.sh": b"rm -rf /"}, "more.sh", "is not in SHA256SUMS"),
        (
            changed("SHA256SUMS", lambda data: data + b"?\n"),
            "SHA256SUMS",
            "has a line that is no hash and path: ?",
        ),
        (
            lambda files: with_sums(changed("checkpoint-manifest.json", other_checkpoint)(files)),
            "checkpoint-manifest.json",
            "is not of the checkpoint of this run",
        ),
        (
            lambda files: with_sums(changed("checkpoint/step_20/COMPLETE", lambda data: data + b"!")(files)),
            "checkpoint/step_20/COMPLETE",
            "has another content than the manifest says",
        ),
        (
            lambda files: with_sums(
                {name: data for name, data in files.items() if name != "checkpoint/step_20/COMPLETE"}
            ),
            "checkpoint/step_20/COMPLETE",
            "is missing",
        ),
        (
            lambda files: with_sums(changed("code.tar.gz", lambda data: data + b"!")(files)),
            "code.tar.gz",
            "is not the code of the run",
        ),
        (
            lambda files: with_sums(changed("config.yaml", lambda data: data + b"nmae: x\n")(files)),
            "config.yaml",
            "is not a valid config: ",
        ),
        (
            lambda files: with_sums(changed("run.json", lambda data: b"[]")(files)),
            "run.json",
            "is not of the format ",
        ),
        (
            lambda files: with_sums(
                {name: data for name, data in files.items() if name != "checkpoint-manifest.json"}
            ),
            "checkpoint-manifest.json",
            "is missing",
        ),
    ],
)
def test_each_file_that_does_not_belong_is_named(
    made: tuple[Shell, str, Path],
    tmp_path: Path,
    change: Callable[[dict[str, bytes]], dict[str, bytes]],
    path: str,
    what: str,
) -> None:
    shell, run_id, bundle = made
    found = wrong_files(shell, packed(tmp_path / "changed.tar.gz", run_id, change(members(bundle))))
    assert found[path].startswith(what)


def test_a_bundle_under_the_name_of_another_run_does_not_belong(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    shell, _, bundle = made
    found = wrong_files(shell, packed(tmp_path / "other.tar.gz", "other-1", members(bundle)))
    assert set(found) == {"run.json", "checkpoint-manifest.json"}


def refused(shell: Shell, file: Path) -> str:
    done = shell.run("bundle", "--verify", str(file))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bug in prime-train" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/evil", "small-1/../../evil", "evil"],
    ids=["parent", "absolute", "through the folder", "beside it"],
)
def test_a_path_that_leads_elsewhere_is_refused(shell: Shell, name: str) -> None:
    with tarfile.open(shell.here / "bad.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name))
    assert "is not safe to unpack" in refused(shell, shell.here / "bad.tar.gz")


def test_links_and_files_that_are_there_twice_are_refused(shell: Shell) -> None:
    link = tarfile.TarInfo("small-1/run.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    for members_ in (
        [link],
        [tarfile.TarInfo("small-1/run.json")] * 2,
        [tarfile.TarInfo("small-1/a"), tarfile.TarInfo("small-1/A")],
    ):
        with tarfile.open(shell.here / "bad.tar.gz", "w:gz") as tar:
            for member in members_:
                tar.addfile(member)
        assert "is not safe to unpack" in refused(shell, shell.here / "bad.tar.gz")


def test_an_archive_that_is_cut_off_anywhere_or_no_archive_is_refused(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    shell, _, bundle = made
    data = bundle.read_bytes()
    for size in (5, 600, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.tar.gz").write_bytes(data[:size])
        assert "is truncated, damaged or not an archive" in refused(shell, tmp_path / "cut.tar.gz")
    (tmp_path / "text.tar.gz").write_text("hello\n" * 1000)
    assert "is truncated, damaged or not an archive" in refused(shell, tmp_path / "text.tar.gz")
    with tarfile.open(tmp_path / "empty.tar.gz", "w:gz"):
        pass
    assert "is not a bundle" in refused(shell, tmp_path / "empty.tar.gz")


def test_a_call_that_names_nothing_or_too_much_is_refused(shell: Shell) -> None:
    for words, message in (
        ((), "no run was named"),
        (("demo", "--verify", "x.tar.gz"), "--verify cannot be combined"),
        (("--verify", "x.tar.gz"), "x.tar.gz cannot be read: No such file or directory"),
        (("demo",), "there is no run demo"),
    ):
        done = shell.run("bundle", *words)
        assert done.returncode == 2
        assert message in done.stderr


def test_code_or_a_checkpoint_that_changed_in_the_bucket_is_not_handed_over(
    made: tuple[Shell, str, Path], tmp_path: Path
) -> None:
    first, run_id, _ = made
    shutil.copytree(first.home, tmp_path / "home")
    shell = Shell(tmp_path)
    below = shell.home / "bucket" / "runs" / run_id
    blob = max((below / "blobs").iterdir(), key=lambda path: path.stat().st_size)
    blob.write_bytes(bytes(blob.stat().st_size))
    done = shell.run("bundle", run_id, "--weights")
    assert done.returncode == 1
    assert "is damaged in the bucket" in done.stderr
    (below / "code.tar.gz").write_bytes(b"other")
    done = shell.run("bundle", run_id)
    assert done.returncode == 1
    assert "is not what was launched" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
