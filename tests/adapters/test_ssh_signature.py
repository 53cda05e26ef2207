"""Signatures by SSH keys, held against OpenSSH's own program where it is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from prime_train.errors import UsageError
from prime_train.interop.bundle.ssh_signature import fingerprint, public_key, sign, signer_of, signing_key

DATA, SPACE = b"abc  README.md\n", "prime-train-bundle"


def never() -> str:
    raise AssertionError("nobody is asked")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return made(tmp_path / "id_ed25519")


def made(path: Path, passphrase: bytes = b"") -> Path:
    pair = Ed25519PrivateKey.generate()
    how = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    path.write_bytes(pair.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, how))
    path.chmod(0o600)
    path.with_suffix(".pub").write_bytes(
        pair.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" me@here\n"
    )
    return path


def test_a_signature_names_its_key(key: Path) -> None:
    signature = sign(DATA, signing_key(key, never), SPACE)
    assert signer_of(DATA, signature, SPACE) == public_key(str(key.with_suffix(".pub")))
    assert public_key(key.with_suffix(".pub").read_text()) == public_key(str(key.with_suffix(".pub")))


def test_other_data_another_purpose_or_a_changed_signature_is_signed_by_nobody(key: Path) -> None:
    signature = sign(DATA, signing_key(key, never), SPACE)
    assert signer_of(DATA + b"x", signature, SPACE) is None
    assert signer_of(DATA, signature, "git") is None
    body = signature.splitlines()
    for broken in (
        b"",
        b"\xff" * 300,
        signature[:-60],
        body[0] + b"\nAAAA\n" + body[-1],
        signature.replace(body[2][:4], b"AAAA"),
    ):
        assert signer_of(DATA, broken, SPACE) is None


def test_a_key_with_a_passphrase_asks_for_it(tmp_path: Path) -> None:
    key = made(tmp_path / "id_ed25519", b"correct horse")
    signature = sign(DATA, signing_key(key, lambda: "correct horse"), SPACE)
    assert signer_of(DATA, signature, SPACE) == public_key(str(key.with_suffix(".pub")))
    with pytest.raises(UsageError, match="passphrase is wrong"):
        signing_key(key, lambda: "wrong")


def test_what_is_no_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("private words")
    for refused in (
        lambda: signing_key(file, never),
        lambda: public_key(str(file)),
        lambda: signing_key(tmp_path / "none", never),
    ):
        with pytest.raises(UsageError) as raised:
            refused()
        assert "private words" not in str(raised.value)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_openssh_verifies_ours_and_we_verify_openssh(key: Path, tmp_path: Path) -> None:
    (tmp_path / "sig").write_bytes(sign(DATA, signing_key(key, never), SPACE))
    (tmp_path / "allowed").write_text(f"me {key.with_suffix('.pub').read_text()}")
    verify = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-f",
        str(tmp_path / "allowed"),
        "-I",
        "me",
        "-n",
        SPACE,
        "-s",
        str(tmp_path / "sig"),
    ]
    assert subprocess.run(verify, input=DATA, capture_output=True, check=False).returncode == 0
    made_there = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", SPACE], input=DATA, capture_output=True, check=True
    ).stdout
    assert signer_of(DATA, made_there, SPACE) == public_key(str(key.with_suffix(".pub")))
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(key.with_suffix(".pub"))], capture_output=True, check=True, text=True
    ).stdout
    assert fingerprint(public_key(str(key.with_suffix(".pub")))) in shown
