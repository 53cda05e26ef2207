"""`validate`, `lint` and `rules`: folders, a trainer's config with the run that names it, and each output
format.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

import pytest

from tests.cli.shell import Shell

RUN = """\
name: small
trainer:
  kind: prime_rl
  steps: 200
  prime_rl:
    config: rl.toml
    ref: 559b4477000000000000000000000000000000aa
hardware:
  provider: prime
  gpus: [H100_80GB]
  count: 2
  disk_gib: 2000
checkpoints:
  every_steps: 10
budget:
  usd: 20
"""
TOML = """\
seq_len = 2048
[model]
name = "Qwen/Qwen3-4B"
[deployment]
num_train_gpus = 1
num_infer_gpus = 1
[orchestrator]
batch_size = 128
group_size = 16
[orchestrator.train.sampling]
max_completion_tokens = 1024
[[orchestrator.train.source]]
name = "arithmetic"
[orchestrator.train.source.env.taskset]
id = "arithmetic"
[inference.vllm]
max_model_len = 2048
"""
ODD = "odd, 100%: name.yaml"


def rows(shell: Shell, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.run("validate", "--json", *args).stdout)
    return found


def reported(shell: Shell, *args: str) -> list[tuple[str, str, int]]:
    return [(row["code"], row["file"], row["line"]) for row in rows(shell, *args)]


def test_a_good_run_with_its_trainers_config_is_ok(shell: Shell) -> None:
    shell.write("run.yaml", RUN)
    shell.write("rl.toml", TOML)
    assert shell.ok("validate", "run.yaml") == "run.yaml: ok\n"


def test_an_error_in_the_trainers_config_is_reported_in_that_file(shell: Shell) -> None:
    shell.write("run.yaml", RUN)
    shell.write("rl.toml", TOML.replace("seq_len", "seq_lenn"))
    assert reported(shell, "run.yaml") == [("PR301", "rl.toml", 1)]


def test_a_trainers_config_can_stand_alone(shell: Shell) -> None:
    shell.write("rl.toml", TOML.replace("seq_len", "seq_lenn"))
    assert ("PR301", "rl.toml", 1) in reported(shell, "rl.toml")


def test_what_the_run_says_over_the_trainers_config_counts_and_is_reported_in_the_run(shell: Shell) -> None:
    over = '    overrides: [--orchestrator.batch-size, "100", "@", more.toml]\n'
    shell.write("run.yaml", RUN.replace("hardware:", f"{over}hardware:"))
    shell.write("rl.toml", TOML)
    shell.write("more.toml", "[inference.vllm]\ngpu_memory_utilization = 7.0\n")
    assert [(file, line) for _, file, line in reported(shell, "run.yaml")] == [
        ("more.toml", 2),
        ("run.yaml", 8),
    ]


def test_a_folder_is_looked_through_for_configs_and_nothing_else(shell: Shell) -> None:
    shell.write("configs/a/run.yaml", RUN.replace("config: rl.toml", "config: configs/a/rl.toml"))
    shell.write("configs/a/rl.toml", TOML.replace("group_size = 16", "group_size = 15"))
    shell.write("configs/b.yml", RUN.replace("usd: 20", "usd: -20"))
    shell.write("configs/pyproject.toml", "[project]\nname = 'x'\n")
    shell.write("configs/chart.yaml", "{{ if .Values.x }}\na: 1\n{{ end }}\n")
    shell.write("configs/c.yaml", "name: c\ntrainer: [\n")
    shell.write("configs/workflow.yaml", "name: ci\non: push\njobs: {}\n")
    shell.write("configs/.hidden/run.yaml", "name: [")
    shell.write("configs/notes.txt", "name: [")
    found = reported(shell, "configs")
    assert {file for _, file, _ in found} == {"configs/a/rl.toml", "configs/b.yml", "configs/c.yaml"}


def test_a_trainers_config_is_judged_with_its_run_and_not_once_more_alone(shell: Shell) -> None:
    # By itself it would lack its last step and its checkpoints.
    shell.write("run.yaml", RUN)
    shell.write("rl.toml", TOML)
    assert reported(shell, "rl.toml", "run.yaml", "./rl.toml") == []
    shell.write("run.yaml", RUN.replace("usd: 20", "usd: -20"))
    assert [code for code, _, _ in reported(shell, "rl.toml", "run.yaml")] == ["PT013"]


def test_a_file_of_nobody_we_know_is_reported_where_it_was_named(shell: Shell) -> None:
    shell.write("pyproject.toml", "[project]\nname = 'x'\n")
    assert reported(shell, "pyproject.toml") == [("PT009", "pyproject.toml", 1)]


def test_an_ignored_finding_is_not_reported(shell: Shell) -> None:
    shell.write("run.yaml", RUN)
    shell.write(
        "rl.toml",
        TOML.replace("batch_size = 128", "batch_size = 100  # prime-train: ignore[PR351] on purpose"),
    )
    assert reported(shell, "run.yaml") == []
    shell.write("rl.toml", TOML.replace("batch_size = 128", "batch_size = 100  # prime-train: ignore[PR351]"))
    assert [code for code, _, _ in reported(shell, "run.yaml")] == ["PR351", "PT090"]


# ------------------------------------------------------------------------------------------------------------
# forms of output


def test_sarif_has_what_its_readers_require(shell: Shell) -> None:
    shell.write(ODD, RUN.replace("usd: 20", "usd: -20").replace("name: small", "name: A B"))
    done = shell.run("validate", "--format", "sarif", ODD)
    assert done.returncode == 1
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "prime-train"
    assert [rule["id"] for rule in driver["rules"]] == ["PT013"]
    assert driver["rules"][0]["shortDescription"]["text"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert re.fullmatch(r"[A-Za-z0-9%._~/-]+", place["artifactLocation"]["uri"])
        assert unquote(place["artifactLocation"]["uri"]) == ODD
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1


def test_sarif_without_findings_is_a_run_all_the_same(shell: Shell) -> None:
    log = json.loads(shell.ok("validate", "--format", "sarif", shell.config()))
    assert [run["results"] for run in log["runs"]] == [[]]


def test_annotations_are_escaped_as_githubs_toolkit_does(shell: Shell) -> None:
    shell.write(ODD, RUN.replace("usd: 20", "usd: -20").replace("small", "100%"))
    done = shell.run("validate", "--format=github", ODD)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        found = re.fullmatch(r"::error file=(.*?),line=(\d+),col=(\d+),title=PT013::(.+)", line)
        assert found is not None, line
        assert found[1] == "odd%2C 100%25%3A name.yaml"
    assert "100%25" in lines[0].rpartition("::")[2]
    assert "%0Afix: " in lines[0]


def test_markdown_is_a_table_that_nothing_breaks(shell: Shell) -> None:
    shell.write("run.yaml", RUN.replace("usd: 20", "usd: 20\n  'a|b`<b>@me #1': 1"))
    done = shell.run("validate", "--format", "markdown", "run.yaml")
    assert done.returncode == 1
    head, _, *table = done.stdout.splitlines()
    assert head == "**1 error in 1 config**"
    assert table[:2] == ["| | where | what | what to do |", "|---|---|---|---|"]
    (row,) = table[2:]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert "<b>" not in row.replace(r"\<b\>", "")
    assert "@me" not in row
    assert "#1" not in row


def test_markdown_without_findings_is_a_sentence(shell: Shell) -> None:
    assert shell.ok("validate", "--format", "markdown", shell.config()) == "**1 config: nothing found**\n"


def test_a_key_in_a_trainers_config_is_shown_in_no_form(shell: Shell) -> None:
    key = "0123456789abcdef" * 2
    recover, logger = "recover: {mode: auto, freq_steps: 9}", f"stats_logger: {{wandb: {{api_key: {key}}}}}"
    shell.write("areal.yaml", f"experiment_name: a\ntrial_name: b\n{recover}\n{logger}\n")
    for form in ("text", "sarif"):
        done = shell.run("validate", "--format", form, "areal.yaml")
        assert "TR407" in done.stdout
        assert key not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("validate", "--format", "xml", "a.yaml"),
        ("lint", "--format"),
        ("lint",),
        ("validate", "--deeper", "a.yaml"),
    ],
)
def test_what_is_not_understood_is_a_usage_error(shell: Shell, args: tuple[str, ...]) -> None:
    done = shell.run(*args)
    assert done.returncode == 2
    assert "Error: " in done.stderr


# ------------------------------------------------------------------------------------------------------------
# lint and rules


def test_lint_tells_a_line_a_finding_and_no_notes(shell: Shell) -> None:
    shell.write("run.yaml", RUN.replace("usd: 20", "usd: 2000\n  ussd: 1"))
    shell.write("rl.toml", TOML)
    done = shell.run("lint", "run.yaml")
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if not line.startswith("       fix:")] == [
        "run.yaml:17:3: error PT010: unknown key 'ussd' in budget"
    ]


def test_rules_explains_a_code(shell: Shell) -> None:
    output = shell.ok("rules", "re504")
    assert output.startswith("RE504 (warning, resilience): ")
    assert "what to do: " in output
    assert shell.run("rules", "XX999").returncode == 2


def test_a_file_in_a_folder_that_is_only_laid_over_others_is_left_alone(shell: Shell) -> None:
    shell.write("configs/h100.toml", "[trainer.model]\nseq_lenn = 1\n")
    assert reported(shell, "configs") == []


def test_a_run_from_a_repository_is_judged_with_the_checkout_it_is_in(shell: Shell) -> None:
    over = "  code: {repo: 'https://github.com/a/b'}\n"
    shell.write("run.yaml", RUN.replace("hardware:", f"{over}hardware:"))
    assert reported(shell, "run.yaml") == [("PT033", "run.yaml", 8)]
    shell.write("rl.toml", TOML)
    assert reported(shell, "run.yaml") == []
    shell.write("rl.toml", TOML.replace("seq_len", "seq_lenn"))
    assert reported(shell, "run.yaml") == [("PR301", "rl.toml", 1)]
    shell.write(
        "run.yaml", RUN.replace("hardware:", f"{over.replace('}', ', ref: ' + 'a' * 40 + '}')}hardware:")
    )
    assert reported(shell, "run.yaml", "rl.toml") == []
