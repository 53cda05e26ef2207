"""The code as it is deployed to AWS."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest

from prime_train.aws.account import Account
from prime_train.aws.code import own, pins
from prime_train.aws.package import ROOT, Target, compile_all, digest_of, zipped
from prime_train.errors import PermanentError
from prime_train.text.explained_errors import explained

ROOT_FOLDER = Path(__file__).parents[2]
FILES: Mapping[str, bytes] = {"a/b.py": b"x = 1\n", "c.so": b"\x7fELF", "d/program": b"\x7fELF..."}


def written(folder: Path) -> Path:
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def test_the_same_files_make_the_same_bytes_whenever_they_were_written(tmp_path: Path) -> None:
    first, second = written(tmp_path / "first"), written(tmp_path / "second")
    os.utime(second / "c.so", (1, 1))
    (second / "c.so").chmod(0o600)
    (first / "d" / "program").chmod(0o700)
    assert zipped(first) == zipped(second)
    with zipfile.ZipFile(BytesIO(zipped(first).data)) as archive:
        rights = {one.filename: oct(one.external_attr >> 16) for one in archive.infolist()}
    assert rights == {"a/b.py": "0o644", "c.so": "0o755", "d/program": "0o755"}


def test_compiled_files_need_no_look_at_their_sources(tmp_path: Path) -> None:
    compile_all(written(tmp_path), sys.executable)
    (compiled,) = (tmp_path / "a" / "__pycache__").glob("b.*.pyc")
    flags = int.from_bytes(compiled.read_bytes()[4:8], "little")
    assert flags == 0b01  # by hash, unchecked
    assert f"{ROOT}/a/b.py".encode() in compiled.read_bytes()


def test_the_name_of_the_code_tells_sources_pins_target_and_what_was_compiled_apart() -> None:
    one = digest_of(FILES, b"pins", Target(), compiled=True)
    assert one == digest_of(dict(sorted(FILES.items(), reverse=True)), b"pins", Target(), compiled=True)
    others = [
        digest_of({**FILES, "c.so": b"other"}, b"pins", Target(), compiled=True),
        digest_of(FILES, b"other pins", Target(), compiled=True),
        digest_of(FILES, b"pins", Target("x86_64"), compiled=True),
        digest_of(FILES, b"pins", Target(python="3.13"), compiled=True),
        digest_of(FILES, b"pins", Target(), compiled=False),
    ]
    assert len({one, *others}) == 6


@pytest.mark.parametrize(
    ("machine", "python", "words"), [("riscv", "3.12", "arm64 or x86_64"), ("arm64", "2.7", "3.12 or 3.13")]
)
def test_a_target_that_lambda_does_not_have_is_refused(machine: str, python: str, words: str) -> None:
    with pytest.raises(PermanentError, match=words):
        Target(machine, python)


def test_what_is_brought_can_send_itself_to_machines_and_has_its_template() -> None:
    files = own()
    names = (
        "prime_train/__init__.py",
        "prime_agent/main.py",
        "prime_lambdas/webhook.py",
        "prime_lambdas/template.yaml",
    )
    assert set(names) <= set(files)
    assert any(name.endswith(".dist-info/METADATA") for name in files)
    assert "prime_train/providers/install/runtime.txt" in files
    assert not [name for name in files if "__pycache__" in name]
    assert b"mangum==" in pins()
    assert b"wandb==" in pins()


def test_without_a_region_it_says_where_one_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PermanentError, match="no AWS region is set") as refused:
        Account({})
    assert "--region eu-central-1" in explained(refused.value)[1]
    with pytest.raises(PermanentError, match="nobody"):
        Account({"AWS_PROFILE": "nobody"}, "eu-central-1")


def test_what_is_brought_is_what_was_tested() -> None:
    tested = set(
        re.findall(
            r"^[a-z0-9-]+==[^ ]+", (ROOT_FOLDER / "requirements" / "dev.txt").read_text(), re.MULTILINE
        )
    )
    brought = set(re.findall(r"^[a-z0-9-]+==[^ ]+", pins().decode(), re.MULTILINE))
    assert brought
    assert brought <= tested


LOADS = """
import re, sys
from importlib.metadata import packages_distributions
pinned = {*sys.argv[1:], "prime-train"}
of = packages_distributions()

class Undeployed:
    def find_spec(self, name, path=None, target=None):
        if name in of and not pinned & {re.sub("[-_.]+", "-", one).lower() for one in of[name]}:
            raise ModuleNotFoundError(f"{name} is not deployed", name=name)

sys.meta_path.insert(0, Undeployed())
import prime_lambdas.webhook, prime_lambdas.watcher, prime_lambdas.homes, prime_train.pages.dashboard.dashboard, prime_train.buckets.open
"""


def test_heartbeats_sweeps_and_pages_load_nothing_that_is_not_deployed_with_the_functions() -> None:
    pinned = re.findall(r"^([a-z0-9-]+)==", pins().decode(), re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", LOADS, *pinned], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
