"""`prime-train config` as a user sees it: versions, differences, the runs that used them, and what is
refused.
"""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from prime_train.checks.changes import of_config, of_trainer
from prime_train.checks.compare_versions import Side, VersionRow, compare, rows
from prime_train.configs.commands.side_by_side import render
from prime_train.configs.history.versions import Texts
from prime_train.errors import UsageError
from tests.cli.inside import Inside
from tests.cli.shell import CONFIG, Shell

TRACKED = CONFIG + "wandb: {project: pilots, entity: team}\n"
RL = """\
name: tiny
trainer:
  kind: prime_rl
  steps: 20
  code: {folder: rl}
  prime_rl: {config: rl.toml, ref: "REF"}
budget: {usd: 5}
""".replace("REF", "559b4477" + "0" * 32)


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Inside(tmp_path)


@pytest.fixture(name="file")
def _file(shell: Shell) -> str:
    """Create a config with two versions; the file has the content of the second."""
    path = shell.config(TRACKED)
    shell.ok("config", "save", path, "-m", "as it\x1b[2J was")
    Path(path).write_text(
        Path(path).read_text().replace("usd: 5", "usd: 50").replace("--batch-size 8", "--batch-size 16")
    )
    shell.ok("config", "save", path, "--note", "twice the batch")
    return path


def test_versions_are_listed_with_their_notes_and_the_runs_that_used_them(shell: Shell, file: str) -> None:
    run_id = shell.ok("run", file, "--name", "other").split()[0]
    lines = shell.ok("config", "list", file).splitlines()
    assert re.match(r"   2  20\d\d-\d\d-\d\d \d\d:\d\d UTC  twice the batch", lines[0])
    assert lines[1].strip() == f"{run_id} (queued, step 0), W&B team/pilots/{run_id}"
    assert lines[2].endswith("as it[2J was")
    assert lines[-1].endswith("is the same as version 2 (twice the batch)")


def test_two_versions_are_shown_side_by_side_with_what_it_means(shell: Shell, file: str) -> None:
    output = shell.ok("config", "diff", file, "1", "2")
    assert re.search(r"budget: \{usd: 5, hours: 2\} +\| +\d+ budget: \{usd: 50, hours: 2\}", output)
    assert re.search(r"^budget.usd +5 to 50 *$", output, re.MULTILINE)
    assert "Command line, run by /bin/sh in the working tree" in output
    assert "no run used version 1 (as it[2J was)" in output
    assert shell.ok("config", "diff", file) == "version 2 (twice the batch) and now are the same\n"


def test_a_version_is_written_back_but_nothing_is_lost(shell: Shell, file: str) -> None:
    second = Path(file).read_text()
    shell.ok("config", "restore", file, "1")
    assert "--batch-size 8" in Path(file).read_text()
    Path(file).write_text("never saved\n")
    done = shell.run("config", "restore", file, "2")
    assert (done.returncode, "would be lost" in done.stderr) == (2, True)
    assert Path(file).read_text() == "never saved\n"
    shell.ok("config", "restore", file, "2", "--force")
    assert Path(file).read_text() == second


def test_the_trainers_file_belongs_to_the_version(shell: Shell) -> None:
    shell.write("tiny.yaml", RL)
    toml = shell.write("rl/rl.toml", "seq_len = 2048\n")
    shell.ok("config", "save", "tiny.yaml")
    toml.write_text("seq_len = 4096\n")
    output = shell.ok("config", "diff", "tiny.yaml")
    assert "the trainer's file" in output
    assert re.search(r"^seq_len +2048 to 4096 *$", output, re.MULTILINE)
    shell.ok("config", "save", "tiny.yaml")
    toml.unlink()
    shell.ok("config", "restore", "tiny.yaml", "1")
    assert toml.read_text() == "seq_len = 2048\n"


def test_a_change_in_the_trainers_file_is_explained_by_the_table_of_settings_and_the_rules(
    shell: Shell,
) -> None:
    shell.write("tiny.yaml", RL)
    text = (
        "seq_len = 2048\n[trainer.optim]\ntype = 'adamw'\nlr = 1e-6\n[orchestrator]\nbatch_size "
        "= "
        "64\ngroup_size = 8\n"
    )
    toml = shell.write("rl/rl.toml", text)
    shell.ok("config", "save", "tiny.yaml", "--name", "short")
    toml.write_text(
        text.replace("2048", "4096").replace("adamw", "muon").replace("1e-6", "1e-5").replace("64", "60")
    )
    output = " ".join(shell.ok("config", "diff", "tiny.yaml", "short").split())
    assert "seq_len 2048 to 4096" in output
    assert "It applies to trainer.model.seq_len and orchestrator.seq_len, unless they are set." in output
    assert "trainer.optim.lr 1e-06 to 1e-05 Each step changes the weights 10 times as much" in output
    assert re.search(
        r"trainer.optim.type adamw to muon prime-rl allows ('\w+', )*'adamw', ('\w+', )*'muon'", output
    )
    assert re.search(r"orchestrator\.batch_size now PR351, error: .*60", output)


def test_a_change_in_the_file_that_a_command_names_is_explained_too(shell: Shell) -> None:
    path = "tiny.yaml"
    shell.write(
        path,
        "name: tiny\ntrainer: {kind: areal, command: python train.py --config areal.yaml}\nbudget: {usd: "
        "5}\n",
    )
    text = (
        "experiment_name: a\ntrial_name: b\nrecover: {mode: auto, freq_steps: 10}\nactor: "
        "{optimizer: "
        "{lr: 1.0e-6}}\n"
    )
    areal = shell.write("areal.yaml", text)
    shell.ok("config", "save", path)
    areal.write_text(text.replace("auto", "disabled").replace("1.0e-6", "1.0e-5"))
    output = shell.ok("config", "diff", path)
    assert re.search(r"^actor.optimizer.lr +1e-06 to 1e-05 *$", output, re.MULTILINE)
    assert re.search(r"^recover.mode +now TR402, warning: recovery is off", output, re.MULTILINE)
    shell.ok("config", "save", path)
    shell.ok("config", "restore", path, "1")
    assert areal.read_text() == text


def test_a_name_means_its_version_wherever_a_number_does(shell: Shell, file: str) -> None:
    first = Path(file).read_text()
    assert "nothing has changed since version 2, twice (twice the batch)" in shell.ok(
        "config", "save", file, "--name", "twice"
    )
    assert "version 2, twice (twice the batch) and now are the same" in shell.ok(
        "config", "diff", file, "twice"
    )
    Path(file).write_text(first.replace("usd: 50", "usd: 60"))
    shell.ok("config", "save", file, "--name", "dear")
    assert re.search(r"budget.usd +50 to 60", shell.ok("config", "diff", file, "twice", "dear"))
    shell.ok("config", "restore", file, "twice")
    assert Path(file).read_text() == first
    names = [row["name"] for row in json.loads(shell.ok("config", "list", file, "--json"))]
    assert names == ["dear", "twice", ""]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("save", "--name", "now"), "not possible as the name"),
        (("save", "--name", "2"), "not possible as the name"),
        (("save", "--name", "../x"), "not possible as the name"),
        (("diff", "baseline"), "has no version called baseline"),
        (("restore", "²"), "has no version called"),
    ],
)
def test_a_name_that_is_not_possible_or_not_there_is_reported(
    shell: Shell, file: str, args: tuple[str, ...], words: str
) -> None:
    done = shell.run("config", args[0], file, *args[1:])
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_a_version_keeps_its_name_when_the_same_files_are_saved_under_another(
    shell: Shell, file: str
) -> None:
    shell.ok("config", "save", file, "--name", "baseline")
    assert "saved version 3, before-the-sweep" in shell.ok(
        "config", "save", file, "--name", "before-the-sweep"
    )
    names = [row["name"] for row in json.loads(shell.ok("config", "list", file, "--json"))]
    assert names == ["before-the-sweep", "baseline", ""]
    assert "nothing has changed" in shell.ok("config", "save", file, "--name", "before-the-sweep")
    assert "are the same" in shell.ok("config", "diff", file, "baseline", "before-the-sweep")


def test_without_a_config_all_that_have_versions_are_listed(shell: Shell, file: str) -> None:
    shell.write("other.yaml", Path(file).read_text().replace("usd: 50", "usd: 7"))
    shell.ok("config", "save", "other.yaml", "--name", "cheap", "-m", "a try")
    assert re.search(r"^other +1 .*cheap  a try$", shell.ok("config", "list"), re.MULTILINE)
    rows = json.loads(shell.ok("config", "list", "--json"))
    assert [(row["config"], row["version"], row["name"]) for row in rows] == [
        ("other", 1, "cheap"),
        ("small", 2, ""),
    ]


def test_a_name_belongs_to_one_version(shell: Shell, file: str) -> None:
    shell.ok("config", "save", file, "--name", "good")
    Path(file).write_text(Path(file).read_text().replace("usd: 50", "usd: 60"))
    done = shell.run("config", "save", file, "--name", "good")
    assert (done.returncode, "has the name good already" in done.stderr) == (2, True)
    assert "version 3" not in shell.ok("config", "list", file)


def test_a_version_from_before_names_is_read(shell: Shell, file: str) -> None:
    old = shell.home / "configs" / "small" / "0001.json"
    content = json.loads(old.read_text())
    del content["name"]
    old.write_text(json.dumps(content))
    assert "as it[2J was" in shell.ok("config", "list", file)


def test_a_secret_is_not_kept(shell: Shell) -> None:
    secret = "hf_" + "x" * 34
    path = shell.config(CONFIG + f"environment: {{HF_TOKEN: {secret}}}\n")
    done = shell.run("config", "save", path)
    assert (done.returncode, "a secret in plain text" in done.stderr) == (2, True)
    assert not (shell.home / "configs").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("save", "none.yaml"), "there is no file none.yaml"),
        (("diff", "none.yaml"), "has no versions yet"),
        (("restore", "none.yaml", "3"), "has no version 3"),
        (("save", "."), "is not the name of a file"),
    ],
)
def test_what_cannot_be_done_is_reported(shell: Shell, args: tuple[str, ...], words: str) -> None:
    done = shell.run("config", *args)
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (2, True, False)


@pytest.mark.parametrize(
    "content", ["{", "[" * 100_000, '{"number": 1, "saved_s": 1e999, "note": "", "texts": {"config": ""}}']
)
def test_a_damaged_version_is_reported_with_its_file(shell: Shell, file: str, content: str) -> None:
    damaged = shell.home / "configs" / "small" / "0001.json"
    damaged.write_text(content)
    done = shell.run("config", "list", file)
    assert (done.returncode, f"{damaged} is not a version of a config" in done.stderr) == (4, True)


def test_other_files_beside_the_versions_are_none(shell: Shell, file: str) -> None:
    first = shell.home / "configs" / "small" / "0001.json"
    first.with_name("0001 copy.json").write_bytes(first.read_bytes())
    Path(file).write_text(f"{Path(file).read_text()}# changed\n")
    shell.ok("config", "save", file)
    assert shell.ok("config", "list", file).count(" UTC ") == 3


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_chart_is_as_wide_as_the_terminal_and_cuts_nothing(width: int) -> None:
    before = TRACKED
    after = (
        TRACKED.replace("--steps 20", "--steps 2000")
        .replace("usd: 5", "usd: 7")
        .replace("disk_gib: 1", "disk_gib: 1, count: 2")
    )
    console = Console(
        width=width, record=True, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    console.print(
        render(compare("small.yaml", Side("version 1", Texts(before), ()), Side("now", Texts(after))))
    )
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    complete = re.sub(r"\W", "", text)
    assert "demotrain" in complete
    assert "hardwarecount" in complete


def test_unchanged_lines_far_from_a_change_are_left_out() -> None:
    before = [f"line {number}" for number in range(1, 41)]
    found = rows("\n".join(before), "\n".join([*before[:19], "other", *before[20:]]))
    assert [row.mark for row in found] == ["", "", "", "", "|", "", "", ""]
    assert found[0] == VersionRow(None, "", None)
    assert found[4] == VersionRow((20, "line 20"), "|", (20, "other"))


def test_lines_that_came_and_went_have_an_empty_half() -> None:
    assert rows("a\nb", "a") == [VersionRow((1, "a"), "", (1, "a")), VersionRow((2, "b"), "<", None)]
    assert rows("", "a") == [VersionRow(None, ">", (1, "a"))]


def test_a_change_is_reported_with_defaults_and_meaning() -> None:
    changes = of_config(
        "name: a\nbudget: {usd: 1}\n",
        "name: a\nbudget: {usd: 1}\nhealth: {stall_s: 600}\nhardware: {gpus: [H100_80GB]}\n",
    )
    assert changes is not None
    reported = {change.key: change for change in changes}
    assert reported["health.stall_s"].text == "300 (its default) to 600"
    assert "Shortest step deadline" in reported["health.stall_s"].meaning
    assert reported["hardware.gpus"].text == 'nothing to ["H100_80GB"]'


def test_a_default_that_is_no_longer_spelled_out_changes_nothing() -> None:
    changes = of_config("name: a\nhardware: {spot: prefer, count: 1}\n", "name: a\nhardware: {count: 1}\n")
    assert changes is not None
    assert [change.text for change in changes] == ["prefer to prefer (its default): the same"]


def test_what_cannot_be_read_has_no_words() -> None:
    assert of_config("a: [", "a: 1\n") is None
    assert of_trainer("a = ", "a = 1\n") is None
    assert of_trainer("a = " + "[" * 5000, "a = 1\n") is None
    assert of_trainer(f"{'a.' * 5000}a = 1", "a = 1\n") is None


def test_a_deleted_file_has_no_keys_and_what_is_nan_on_both_sides_has_not_changed() -> None:
    changes = of_trainer("a = nan\nb = 1\n", "") or ()
    assert [change.key for change in changes] == ["a", "b"]
    assert [change.key for change in of_trainer("a = nan\nb = 1\n", "a = nan\nb = 2\n") or ()] == ["b"]


def test_a_number_too_long_to_print_is_no_stumbling_block() -> None:
    changes = of_trainer("a = 1\n", f"a = 0x{'f' * 5000}\n")
    assert changes is not None
    assert changes[0].text == "1 to a number with too many digits to show"


def test_a_text_too_long_for_a_chart_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 5,000 lines"):
        rows("a\n" * 5001, "")
