"""`prime-train validate`: what a user reads, and what a program does."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.shell import Shell

ROOT = Path(__file__).parents[3]
FIVE = (
    "name: My Run\ntrainer:\n  comand: python x\n  steps: three\nhardware:\n  spot: no\nbudgett:\n  usd: 1\n"
)
SECRET = "hf_" + "x" * 30


def test_a_config_with_five_errors_gives_five_findings_and_exit_1(shell: Shell) -> None:
    shell.write("run.yaml", FIVE)
    done = shell.run("validate", "run.yaml")
    assert done.returncode == 1
    heads = re.findall(r"^run\.yaml:(\d+):(\d+): error (PT\d+)", done.stdout, re.MULTILINE)
    assert heads == [
        ("1", "7", "PT013"),
        ("3", "3", "PT010"),
        ("4", "10", "PT012"),
        ("6", "9", "PT014"),
        ("7", "1", "PT010"),
    ]
    assert "5 findings in 1 file" in done.stderr


def test_the_line_is_shown_with_a_caret_under_the_place_and_the_remedy(shell: Shell) -> None:
    shell.write("run.yaml", FIVE)
    lines = shell.run("validate", "run.yaml").stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if "comand" in line and "|" in line)
    assert lines[at].index("comand") == lines[at + 1].index("^")
    assert lines[at + 2].strip() == "fix: did you mean command?"


def test_secrets_that_are_not_set_and_scripts_that_are_not_there_are_named_though_packages_are_installed(
    shell: Shell,
) -> None:
    setup = "setup: [pip install torch, sudo apt-get install -y git, python -m pip install -r /opt/r.txt]\n"
    own = (
        "name: a\ntrainer: {command: python trian.py, steps: 5}\nsecrets: "
        "[NOBODY_HAS_SET_THIS]\nbudget: "
        "{usd: 1}\n"
    )
    shell.write("run.yaml", own + setup)
    output = shell.run("validate", "run.yaml", CI="").stdout
    assert "run.yaml:3:11: note PT021: NOBODY_HAS_SET_THIS" in output
    assert "note PT034: there is no file trian.py" in output
    assert "PT021" not in shell.run("validate", "run.yaml", CI="true").stdout
    shell.write("run.yaml", own + "setup: [sh fetch_code.sh]\n")
    assert "trian.py" not in shell.run("validate", "run.yaml").stdout.replace("python trian.py", "")


def test_durations_and_sizes_may_have_units(shell: Shell) -> None:
    units = "health: {silence_s: 10m}\nhardware: {disk_gib: 100GB}\nbudget: {usd: 1, hours: 2h 30m}\n"
    shell.write("run.yaml", "name: a\ntrainer: {command: python -V, steps: 5, stop_s: 90s}\n" + units)
    done = shell.run("validate", "run.yaml")
    assert (done.returncode, "error" in done.stdout) == (0, False)


def test_json_is_a_list_with_a_row_a_finding(shell: Shell) -> None:
    shell.write("run.yaml", FIVE)
    done = shell.run("validate", "--json", "run.yaml")
    rows = json.loads(done.stdout)
    assert (done.returncode, len(rows)) == (1, 5)
    assert all(set(row) == {"code", "severity", "file", "line", "column", "message", "fix"} for row in rows)


def test_good_configs_are_called_ok(shell: Shell) -> None:
    good = str(ROOT / "configs" / "demo.yaml")
    assert shell.ok("validate", good) == f"{good}: ok\n"
    assert json.loads(shell.ok("validate", "--json", good)) == []


def test_several_files_are_checked_together(shell: Shell) -> None:
    shell.write("a.yaml", FIVE)
    shell.write("b.yaml", "")
    done = shell.run("validate", "a.yaml", shell.config(), "b.yaml", "none.yaml")
    assert done.returncode == 1
    assert "7 findings in 3 files" in done.stderr
    assert "small.yaml: ok" in done.stdout


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "there is no file run.yaml"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is binary, not text"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"a: b\n" * 2_000_000, "is larger than 1 MiB"),
        (b"", "the file is empty"),
        (b"a: &a [x,x]\n" + b"b: [" + b"*a, " * 200 + b"]\n", "more than 100 aliases"),
    ],
    ids=["missing", "binary", "not-utf8", "ten-megabytes", "empty", "bomb"],
)
def test_a_bad_file_is_one_clear_finding_without_a_traceback(
    shell: Shell, data: bytes | None, words: str
) -> None:
    if data is not None:
        (shell.here / "run.yaml").write_bytes(data)
    done = shell.run("validate", "run.yaml")
    assert done.returncode == 1
    assert words in done.stdout
    assert done.stdout.count("error PT") == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_a_secret_is_not_shown_not_even_in_its_own_line(shell: Shell) -> None:
    shell.write("run.yaml", f"name: a b\nenvironment: {{HF_TOKEN: {SECRET}}}\nsecrets: {SECRET}\n")
    done = shell.run("validate", "run.yaml")
    assert "PT020" in done.stdout
    assert SECRET not in done.stdout + done.stderr
    assert SECRET not in shell.run("validate", "--json", "run.yaml").stdout


def test_without_a_file_it_is_a_usage_error(shell: Shell) -> None:
    assert shell.run("validate").returncode == 2


def test_what_was_checked_and_is_fine_is_listed_on_request(shell: Shell) -> None:
    rl = ROOT / "configs" / "qwen3-4b-lora"
    shell.write("configs/qwen3-4b-lora/rl.toml", (rl / "rl.toml").read_text())
    text = (ROOT / "configs" / "qwen3-4b-lora.yaml").read_text()
    shell.write("configs/qwen3-4b-lora.yaml", text)
    found = shell.ok("validate", "-v", "configs/qwen3-4b-lora.yaml")
    for line in (
        r"keys +all are known",
        r"model +Qwen/Qwen3-4B exists",
        r"kind +text",
        r"server +Qwen3ForCausalLM",
        r"lengths +40,960 tokens, of which 8,192 are used",
        r"memory +L40S_48GB: the trainer needs \d+ to \d+ of 47 GiB",
        r"prime-rl +\d+ rules",
    ):
        assert re.search(rf"^  {line}", found, re.MULTILINE), found
    assert "checked and fine" not in shell.ok("validate", "configs/qwen3-4b-lora.yaml")


def test_what_is_wrong_is_not_also_fine(shell: Shell) -> None:
    rl = (ROOT / "configs" / "qwen3-4b-lora" / "rl.toml").read_text()
    shell.write("configs/qwen3-4b-lora/rl.toml", rl.replace("[trainer.model.lora]", "[trainer.model.loar]"))
    shell.write("configs/qwen3-4b-lora.yaml", (ROOT / "configs" / "qwen3-4b-lora.yaml").read_text())
    done = shell.run("validate", "-v", "configs/qwen3-4b-lora.yaml")
    assert done.returncode == 1
    assert not re.search(r"^  prime-rl ", done.stdout, re.MULTILINE)
    refused = shell.run("validate", "-v", "--json", "configs/qwen3-4b-lora.yaml")
    assert (refused.returncode, "cannot be combined" in refused.stderr) == (2, True)
