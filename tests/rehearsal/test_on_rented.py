"""A config is rehearsed on rented machines, for cents: one is ended at its provider, the next one resumes."""

import json
import os
import sys
from pathlib import Path

from tests.cli.shell import Shell
from tests.e2e.prime_plane import HEALTH, python
from tests.fakes.prime import FakePrime
from tests.rehearsal.test_try_command import SCRIPT

CONFIG = f"""\
name: mine
trainer:
  command: python mine.py
  resume: --resume {{checkpoint}}
  progress: {{kind: regex, pattern: 'step (?P<step>\\d+): loss (?P<loss>[\\d.]+)'}}
checkpoints: {{folder: out, pattern: "ck_{{step}}.pkl", settled_s: 1}}
hardware: {{open_files_min: 1024, disk_gib: 1}}
health: {json.dumps(HEALTH)}
budget: {{usd: 50}}
"""


def test_a_machine_is_ended_at_its_provider_and_the_next_one_resumes_for_cents(tmp_path: Path) -> None:
    with FakePrime(tmp_path / "prime", running=True) as fake:
        shell = Shell(tmp_path)
        shell.write("mine.py", SCRIPT)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        shell.write("mine.yaml", CONFIG + f"environment: {{PATH: {json.dumps(path)}}}\n")
        done = shell.run(
            "try",
            "mine.yaml",
            "--on",
            "prime",
            "--json",
            PRIME_API_KEY=fake.api_key,
            PRIME_API_BASE_URL=fake.url,
            PRIME_TRAIN_POD_PYTHON=str(python(tmp_path / "python", {})),
        )
        said = json.loads(done.stdout)
        assert (done.returncode, said["proven"]) == (0, True), done.stderr
        assert "rented another one, resumed from step" in said["conclusions"][0]["text"]
        dollars = said["conclusions"][0]["evidence"].rpartition("$")[2]
        assert float(dollars) < 0.10
        assert not fake.alive
        assert "rehearsed: " in (tmp_path / "mine.yaml").read_text(encoding="utf-8")


def test_without_a_config_there_is_nothing_to_rent_for(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("try", "--on", "cheapest", "--", "python", "train.py")
    assert (done.returncode, "a config is rehearsed" in done.stdout + done.stderr) == (2, True)


def test_a_provider_without_a_key_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("mine.py", SCRIPT)
    shell.write("mine.yaml", CONFIG)
    refused = shell.run("try", "mine.yaml", "--on", "lambda")
    assert refused.returncode == 2
    assert "no key is set here" in refused.stderr
    assert "prime-train provider add lambda" in refused.stderr
    assert shell.ok("status", "--json").strip() == "[]"


def test_a_config_of_this_machine_is_not_rehearsed_on_rented_ones(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("mine.py", SCRIPT)
    shell.write("mine.yaml", CONFIG)
    refused = shell.run("try", "mine.yaml", "--on", "cheapest")
    assert (refused.returncode, "does not train on rented machines" in refused.stderr) == (2, True)
