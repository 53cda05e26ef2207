"""`prime-train run` without a config, and with values that replace the config's."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.runs.run import Run
from prime_train.spec.choices import Spot
from prime_train.spec.overrides import config_text, read_setting
from prime_train.spec.reader import read_text
from prime_train.spec.spec import HardwareSpec, RunSpec
from prime_train.spec.tree import plain
from tests.cli.inside import Inside
from tests.cli.shell import CONFIG, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    shell.write("tune_it.py", "print(1)\n")
    shell.config()
    return shell


def newest(shell: Shell) -> Run:
    return Home(shell.home, {}).store().list_runs()[0]


def launched(shell: Shell, *words: str) -> RunSpec:
    assert "is queued" in shell.ok("run", *words)
    return newest(shell).spec


def test_a_command_is_launched_without_a_config_and_what_is_assumed_is_reported(shell: Inside) -> None:
    done = shell.run(
        "run",
        "--usd",
        "5",
        "--",
        "python",
        "tune_it.py",
        "--lr",
        "1e-3",
        "--set",
        "a b",
        "--help",
        "--json",
        "--usd",
        "9",
        "-q",
        "--",
        "-e",
    )
    assert done.returncode == 0, done.stderr
    spec = newest(shell).spec
    assert spec.trainer.command == "python tune_it.py --lr 1e-3 --set 'a b' --help --json --usd 9 -q -- -e"
    assert (spec.name, spec.budget.usd, spec.checkpoints.folder) == ("tune-it", 5, "checkpoints")
    assert done.stdout.startswith("tune-it-")
    for words in (
        "assumed because there is no config",
        "tune-it, from the script",
        "checkpoints/step_N",
        "the option --resume-step",
    ):
        assert words in done.stderr


def test_what_is_reported_is_not_assumed(shell: Inside) -> None:
    words = (
        "--usd",
        "5",
        "--name",
        "mine",
        "--set",
        "trainer.steps=10",
        "--set",
        "checkpoints.folder=out",
        "--",
        "python tune_it.py",
    )
    done = shell.run("run", *words)
    assert done.stderr.splitlines()[1:3] == [
        "  code         the current folder is copied to the machine",
        "  restart      the same command, which finds the restored checkpoint by itself or has the option "
        "--resume-step",
    ]
    assert "home/ looks like the home of a control plane" in done.stderr
    spec = newest(shell).spec
    assert (spec.name, spec.trainer.steps, spec.checkpoints.folder) == ("mine", 10, "out")


def test_braces_of_a_command_mean_themselves_but_for_the_checkpoint_folder(shell: Inside) -> None:
    spec = launched(
        shell, "--usd", "5", "--", "python tune_it.py --cfg '{\"lr\": 1}' --out {checkpoints}/x && echo ok"
    )
    assert (
        spec.trainer.command.format(checkpoints="/c")
        == "python tune_it.py --cfg '{\"lr\": 1}' --out /c/x && echo ok"
    )


def test_the_config_that_is_launched_can_be_written_and_launched_again(shell: Inside) -> None:
    first = launched(
        shell,
        "--usd",
        "5",
        "--save",
        "made/saved.yaml",
        "-e",
        "MODE=010",
        "--set",
        'tags=["a", b]',
        "--",
        "python tune_it.py --x '{}'",
    )
    assert first.tags == ("a", "b")
    assert "made/saved.yaml: ok" in shell.ok("validate", "made/saved.yaml")
    assert launched(shell, "made/saved.yaml") == first
    done = shell.run("run", "small.yaml", "--name", "other", "--save", "made/saved.yaml")
    assert (done.returncode, "made/saved.yaml already exists and was not changed" in done.stderr) == (2, True)
    assert newest(shell).spec.name == "tune-it"


def test_values_replace_those_of_a_config_with_their_own_types(shell: Inside) -> None:
    spec = launched(
        shell,
        *(
            "small.yaml",
            "--usd",
            "7",
            "--set",
            "trainer.steps=5",
            "--set",
            "hardware.spot=never",
            "--set",
            "budget.hours=90m",
        ),
        *(
            "--set",
            "setup=[echo a, 'echo b: c']",
            "--set",
            "wandb={project: tries}",
            "-e",
            "SEED=1",
            "-e",
            "URL=a=b: c",
            "--name",
            "renamed",
        ),
    )
    assert (spec.name, spec.trainer.steps, spec.budget.usd, spec.budget.hours) == ("renamed", 5, 7, 1.5)
    assert spec.setup == ("echo a", "echo b: c")
    assert spec.environment == {"SEED": "1", "URL": "a=b: c"}
    assert spec.wandb is not None
    assert spec.hardware.disk_gib == 1
    assert spec.trainer.progress.file == "progress.jsonl"


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (
            ("--set", "trainer.steps=five"),
            "--set trainer.steps: error PT012: trainer.steps: expected a whole number, got 'five'",
        ),
        (
            ("--set", "trainer.stepz=5"),
            "--set trainer.stepz: error PT010: unknown key 'stepz' in trainer\n       fix: did you mean "
            "steps?",
        ),
        (
            ("--set", "trainer.steps=-1"),
            "--set trainer.steps: error PT013: trainer.steps: must be at least 1, got -1",
        ),
        (("--set", "hardware.count=3"), "error PT013: hardware"),
        (("--set", "setup.0=x"), "--set setup.0: error PT012: setup: expected a list"),
        (("-e", "1X=y"), "-e 1X: error PT013: environment.1X: must be the name of a variable"),
        (
            ("-e", "SOME_PASSWORD=hunter2"),
            "-e SOME_PASSWORD: error PT020: environment.SOME_PASSWORD contains a secret",
        ),
        (("--usd", "0"), "--usd budget.usd: error PT013: budget.usd: must be greater than"),
    ],
)
def test_a_value_that_is_not_possible_is_reported_with_its_key_and_nothing_is_launched(
    shell: Inside, options: tuple[str, ...], output: str
) -> None:
    if "count" in options[-1]:
        options += ("--set", "hardware.gpus=[H100_80GB]")
    done = shell.run("run", "small.yaml", *options)
    assert done.returncode == 1
    assert output in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert json.loads(shell.ok("status", "--json")) == []


def test_a_secret_is_refused_whatever_its_name_and_reported_to_belong_under_secrets(shell: Inside) -> None:
    token = "hf_" + "x" * 30
    for option in (
        ("-e", f"ANY={token}"),
        ("--set", f"environment.ANY={token}"),
        ("--set", f"trainer.command=train {token}"),
    ):
        done = shell.run("run", "small.yaml", *option, "--save", "saved.yaml")
        assert done.returncode == 1
        assert "secrets" in done.stdout
        assert token not in done.stdout + done.stderr
    assert not (shell.here / "saved.yaml").exists()


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (
            ("--usd", "5"),
            "give either a config or a command\n  fix: prime-train run CONFIG, or prime-train run --usd 5 -- "
            "python train.py",
        ),
        (("small.yaml", "--", "python", "x.py"), "give either a config or a command"),
        (("--", "python", "tune_it.py"), "a command without a config needs a budget (--usd)"),
        (("--usd", "5", "--"), "no command was given"),
        (
            ("small.yaml", "--set", "steps"),
            "'steps' is not a setting of the form KEY=VALUE\n  fix: write KEY=VALUE",
        ),
        (
            ("small.yaml", "--set", "trainer..steps=1"),
            "'trainer..steps' is not a setting of the form KEY=VALUE",
        ),
        (("small.yaml", "--set", "setup=[a"), "--set setup: the value cannot be read: not YAML"),
        (
            ("small.yaml", "--set", "setup=[a]\nbudget: {usd: 900}"),
            "--set setup: the value cannot be read: there is more than one value",
        ),
        (("small.yaml", "-e", "HF_TOKEN"), "-e 'HF_TOKEN' has no value"),
    ],
)
def test_a_call_that_is_none_is_refused(shell: Inside, words: tuple[str, ...], output: str) -> None:
    done = shell.run("run", *words)
    assert done.returncode == 2
    assert output in done.stderr
    assert json.loads(shell.ok("status", "--json")) == []


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    st.sampled_from(["environment.A", "trainer.command"]),
)
def test_any_text_is_a_value_or_refused_and_a_saved_config_reads_as_the_same_spec(
    text: str, key: str
) -> None:
    try:
        setting = read_setting(f"{key}={text}", "--set")
    except UsageError:
        return
    read = read_text(CONFIG, "small.yaml", settings=[setting])
    if read.spec is not None:
        assert read.root is not None
        assert read_text(config_text(plain(read.root)), "saved.yaml").spec == read.spec


def test_the_machines_of_one_launch_are_chosen_on_the_command_line(shell: Inside) -> None:
    command = ("--usd", "5", "--", "python", "tune_it.py")

    def hardware(name: str, *words: str) -> HardwareSpec:
        shell.ok("run", "--name", name, *words, *command)
        return next(
            run.spec.hardware for run in Home(shell.home, {}).store().list_runs() if run.spec.name == name
        )

    assert hardware("cheap", "--spot", "--provider", "local").spot is Spot.ONLY
    assert hardware("safe", "--on-demand").spot is Spot.NEVER
    assert (
        hardware("here", "--provider", "local", "--set", "hardware.providers=[prime, runpod]").provider
        == "local"
    )
    done = shell.run("run", "--provider", "nobody", *command)
    assert (done.returncode, "--provider hardware.provider: error PT013" in done.stdout) == (1, True)


def test_a_bucket_for_one_launch_gets_its_code(shell: Inside, tmp_path: Path) -> None:
    bucket = tmp_path / "other-bucket"
    assert "is queued" in shell.ok("run", "small.yaml", "--bucket", bucket.as_uri())
    assert list(bucket.rglob("code.tar.gz"))
    assert not list(shell.home.rglob("code.tar.gz"))
