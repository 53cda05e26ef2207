"""Secrets in the code that a launch would upload, and what looks like them and is none. The values are put
together here, so that no file of the project holds one.
"""

import base64
import hashlib
import json
import random
import string
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from prime_train.launch.code.archive import survey
from prime_train.launch.code.secrets import secrets_in
from prime_train.launch.launch import looked_through
from prime_train.spec.finding import Severity

_RANDOM = random.Random(7)
ALNUM = string.ascii_letters + string.digits


def some(count: int, of: str = ALNUM) -> str:
    return "".join(_RANDOM.choice(of) for _ in range(count))


def private_key() -> str:
    return (
        Ed25519PrivateKey.generate()
        .private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        .decode()
    )


SECRETS = {
    "notes.md": f"token: hf_{some(34)}",
    "train.py": f'WANDB_API_KEY = "{some(40, "0123456789abcdef")}"',
    "run.sh": f"wandb login {some(40, '0123456789abcdef')}",
    "a.py": f"key = 'AKIA{some(16, string.ascii_uppercase + string.digits)}'",
    "b.ini": f"aws_secret_access_key = {some(40)}",
    "c.py": f"GH = 'ghp_{some(36)}'",
    "d.py": f"'sk-ant-api03-{some(60)}'",
    "e.py": f"'sk-proj-{some(60)}'",
    "f.txt": f"xox{'b'}-{some(12, string.digits)}-{some(12, string.digits)}-{some(24, string.ascii_lowercase)}",
    "keys/deploy": private_key(),
    "account.json": json.dumps({"type": "service_account", "private_key": private_key()}),
    "prod.env": f"DB_PASSWORD={some(12)}",
    ".aws/credentials": "[default]",
    "id_rsa": "CANARY",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_with_its_line_and_never_with_its_value(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(f"\n\n{SECRETS[name]}\n")
    (found,) = secrets_in(tmp_path, [name])
    assert found.line == (1 if name in (".aws/credentials", "id_rsa") else 3)
    assert found.kind
    assert not any(word in repr(found) for word in SECRETS[name].split() if len(word) >= 20)


def notebook() -> str:
    image = base64.b64encode(_RANDOM.randbytes(300_000)).decode()
    return json.dumps(
        {"cells": [{"outputs": [{"data": {"image/png": image}}], "source": ["model = 'Qwen/Qwen3-8B'"]}]}
    )


def lock() -> str:
    hashes = (hashlib.sha256(bytes([at])).hexdigest() for at in range(250))
    return "".join(
        f'    {{ url = "https://x/y-{at}.whl", hash = "sha256:{one}" }},\n' for at, one in enumerate(hashes)
    )


HARMLESS = {
    "uv.lock": lock(),
    "demo.ipynb": notebook(),
    "README.md": "export HF_TOKEN=hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx and WANDB_API_KEY=<your key>; "
    "AKIAIOSFODNN7" + "EXAMPLE",
    ".env.example": "HF_TOKEN=hf_your_token_here\nDB_PASSWORD=correct-horse-battery\n",
    "settings.env": "WANDB_PROJECT=first\nHF_TOKEN=${HF_TOKEN}\nMAX_TOKENS=123456789\nPASSWORD=changeme\n",
    "patterns.py": 'PEM = r"-----BEGIN [A-Z ]*PRIVATE KEY-----"\nSTART = "-----BEGIN RSA PRIVATE KEY-----"\n',
    "tokenizer.json": json.dumps({"vocab": {some(8): at for at in range(3000)}}),
    "model.py": f"sha = '{hashlib.sha256(b'x').hexdigest()}'\npad = '<|endoftext|>'\nname = "
    "'sk-learn-pipeline-with-a-long-name'",
    "spinner.css": ".sk-fading-circle-with-many-dots-and-more-dots { color: red }",
    "data.csv": "".join(f"{some(32, '0123456789abcdef')},{at}\n" for at in range(2000)),
    "cert.pem": "-----BEGIN CERTIFICATE-----\n"
    + base64.encodebytes(_RANDOM.randbytes(600)).decode()
    + "-----END CERTIFICATE-----\n",
    "db.py": "URL = 'postgres://user:password@localhost/db'",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_usual_repositories_have_refuses_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HARMLESS[name])
    assert not list(secrets_in(tmp_path, [name]))


def test_binary_files_and_links_are_not_looked_through(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\0" + SECRETS["notes.md"].encode())
    (tmp_path / "link").symlink_to("weights.bin")
    assert not list(secrets_in(tmp_path, ["weights.bin", "link", "gone"]))


def test_a_file_is_let_through_by_its_name_and_no_other_one(tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(SECRETS["notes.md"])
    found = looked_through(survey(tmp_path), ["./a.md"])
    assert [(one.code, Path(one.file).name, one.severity) for one in found.findings] == [
        ("PT020", "b.md", Severity.ERROR)
    ]
    assert "--allow-secret-file b.md" in found.findings[0].fix
    assert "hf_" not in repr(found.findings)


def test_a_dotenv_that_git_does_not_track_stays_here_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x")
    (tmp_path / ".env").write_text("PROJECT=first\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    found = looked_through(survey(tmp_path), [])
    assert [name for name, _ in found.files] == ["train.py"]
    assert [(one.severity, ".env" in one.message) for one in found.findings] == [(Severity.WARNING, True)]
    allowed = looked_through(survey(tmp_path), [".env"])
    assert ([name for name, _ in allowed.files], allowed.findings) == ([".env", "train.py"], ())
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    tracked = looked_through(survey(tmp_path), [])
    assert ([name for name, _ in tracked.files], tracked.findings) == ([".env", "train.py"], ())


def test_a_folder_that_became_a_link_leads_nothing_else_into_the_archive(tmp_path: Path) -> None:
    repo, private = tmp_path / "repo", tmp_path / "private"
    for folder in (repo / "data", private):
        folder.mkdir(parents=True)
        (folder / "notes").write_text("x")
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    subprocess.run(["git", "add", "-A"], cwd=repo, check=True)
    (repo / "data" / "notes").unlink()
    (repo / "data").rmdir()
    (repo / "data").symlink_to(private)
    assert [name for name, size in survey(repo).files if size] == []


def test_the_home_of_a_control_plane_in_the_code_is_not_uploaded(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    home = tmp_path / "our home"
    (home / "bucket").mkdir(parents=True)
    (home / "master.key").write_bytes(bytes(range(32)))
    (home / "bucket" / "bucket.json").write_text("{}")
    found = looked_through(survey(tmp_path), [])
    assert [name for name, _ in found.files] == ["train.py"]
    assert [
        (one.severity, "our home/ looks like the home of a control plane" in one.message)
        for one in found.findings
    ] == [(Severity.WARNING, True)]


def test_a_master_key_beside_the_code_refuses_the_launch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "master.key").write_bytes(bytes(range(32)))
    (finding,) = looked_through(survey(tmp_path), []).findings
    assert (finding.severity, "master.key would be uploaded" in finding.message) == (Severity.ERROR, True)


def test_looking_through_varied_text_writes_nothing_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """RE2 writes to stderr by itself where its memory does not suffice."""
    text = "".join(some(40) + some(3, " =:'\"/-_.\n") for _ in range(20_000))
    (tmp_path / "varied.txt").write_text(text)
    assert list(secrets_in(tmp_path, ["varied.txt"])) == []
    assert capfd.readouterr().err == ""
