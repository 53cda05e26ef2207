"""`prime-train init`: answered on a terminal, called from a script, and what it refuses."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.errors import UsageError
from prime_train.estimate.memory.phases import Method
from prime_train.estimate.models.hardware_presets import PRESETS, known_preset, preset
from prime_train.estimate.models.lookup import resolve_model
from prime_train.planning.new_configs import text as init_text
from prime_train.planning.new_configs.new_config import (
    PRIME_RL,
    checked_environment,
    checked_gpus,
    checked_model,
    checked_usd,
)
from prime_train.planning.new_configs.own_script import TEMPLATES
from prime_train.planning.new_configs.plan import GPUS, How, InitChoices, Wanted, settings_for
from prime_train.spec.reader import read_config
from prime_train.trainers.registry import TRAINERS
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.cli.terminal import terminal

READY = ("--model", "Qwen/Qwen3-4B", "--preset", "h100-80gb", "--gpus", "2", "--yes")


@pytest.fixture(name="shell")
def _shell(tmp_path: Path) -> Shell:
    return Inside(tmp_path)


def wanted(
    model: str = "Qwen/Qwen3-4B", hardware: str = "h100-80gb", gpus: int = 2, how: How = How.AUTO
) -> Wanted:
    shape, chosen = resolve_model(model), preset(hardware)
    assert shape is not None
    assert chosen is not None
    return Wanted(model, shape, chosen, gpus, "reverse-text", how, 50.0, 100, init_text.KNOWN_REF)


def settled(one: Wanted) -> InitChoices:
    found = settings_for(one)
    assert isinstance(found, InitChoices), found
    return found


def test_questions_are_answered_on_a_terminal_and_the_files_are_written(shell: Shell) -> None:
    with terminal(shell, "init") as screen:
        screen.answer("Trainer [prime_rl]: ")
        screen.expect("Write its id at Hugging Face")
        screen.answer("Model [Qwen/Qwen3-4B]: ", "Qwen/Qwen3-4x")
        screen.expect("is unknown, and its name does not contain its size")
        screen.answer("Model [Qwen/Qwen3-4B]: ", "Qwen/Qwen3-8B")
        screen.expect("rtx4090")
        screen.answer("Hardware [h100-80gb]: ")
        screen.answer("GPUs [2]: ", "3")
        screen.expect("write one of 2, 4, 8")
        screen.answer("GPUs [2]: ", "4")
        screen.expect("comes with prime-rl")
        screen.answer("Environment [reverse-text]: ")
        screen.answer("Dollars [50]: ", "30")
        screen.expect("--- configs/qwen3-8b-full.yaml")
        screen.expect("--- configs/qwen3-8b-full/rl.toml")
        assert not (shell.here / "configs").exists()
        screen.answer("Write these files? [Y/n]: ")
        assert screen.end() == 0
        assert "run configs/qwen3-8b-full.yaml --dry-run" in screen.seen
        assert screen.is_coloured
        assert max(screen.seen.splitlines(), key=len)[80:] == ""
    read = read_config(shell.here / "configs" / "qwen3-8b-full.yaml")
    assert read.findings == ()
    assert read.spec is not None
    assert (read.spec.hardware.count, read.spec.budget.usd) == (4, 30.0)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--command", "python fit.py --lr 1e-4"), "fit"),
        (("--kind", "torchrun", "--command", "ddp.py", "--preset", "h100-80gb", "--gpus", "8"), "ddp"),
        (("--kind", "hf", "--command", "python tune.py --output_dir output", "--steps", "20"), "tune"),
        (("--kind", "trm", "--command", "fit.py arch=trm", "--preset", "h100-80gb", "--gpus", "4"), "fit"),
    ],
)
def test_a_script_of_ones_own_gets_a_config_that_is_right(
    shell: Shell, words: tuple[str, ...], name: str
) -> None:
    for script in ("fit.py", "ddp.py", "tune.py"):
        shell.write(script, "")
    shell.ok("init", *words, "--yes")
    path = shell.here / "configs" / f"{name}.yaml"
    read = read_config(path)
    assert read.findings == ()
    assert read.spec is not None
    assert read.spec.trainer.command == words[words.index("--command") + 1]
    assert read.spec.trainer.kind == (words[1] if words[0] == "--kind" else "command")
    assert read.spec.checkpoints.every_steps in ((None,) if "trm" in words else (20, 50))
    assert ": ok" in shell.ok("validate", str(path))


@pytest.mark.parametrize("hardware", [(), ("--preset", "h100-80gb", "--gpus", "8")], ids=["here", "rented"])
@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_kind_gets_a_config_that_is_right_and_says_what_a_resume_needs(
    shell: Shell, kind: str, hardware: tuple[str, ...]
) -> None:
    shell.write("train.py", "")
    shell.ok("init", "--kind", kind, *hardware, "--name", "made", "--yes")
    path = shell.here / "configs" / "made.yaml"
    (loaded,) = load_configs([path])
    assert loaded.subject is not None
    assert [*loaded.findings, *findings_with_ignored(loaded.subject)] == []
    read = read_config(path)
    assert read.spec is not None
    assert read.spec.trainer.kind == kind
    assert TRAINERS[kind].conflicts(read.spec) == ()
    appended = read.spec.trainer.resume.partition(" ")[0].partition("=")[0].lstrip("+")
    assert appended in path.read_text(), "the arguments that are appended on a resume are named"
    processes = read.spec.hardware.count if hardware and TRAINERS[kind].starts_workers else 1
    assert read.spec.trainer.workers == processes
    assert all(len(line) <= 140 for line in path.read_text().splitlines() if "command: " not in line)


def test_a_script_with_an_option_of_a_resume_is_told_it(shell: Shell) -> None:
    shell.write("fit.py", "parser.add_argument('--resume-from', default=None)\n")
    shell.ok("init", "--command", "python fit.py", "--yes")
    read = read_config(shell.here / "configs" / "fit.yaml")
    assert read.spec is not None
    assert read.spec.trainer.resume == "--resume-from {checkpoint}"


def test_every_kind_but_prime_rl_has_a_template() -> None:
    assert {*TEMPLATES, PRIME_RL} == set(TRAINERS)


def test_a_hugging_face_run_is_looked_for_where_its_command_saves(shell: Shell) -> None:
    shell.write("tune.py", "")
    shell.ok("init", "--kind", "hf", "--command", "python tune.py --output_dir=runs/a", "--yes")
    read = read_config(shell.here / "configs" / "tune.yaml")
    assert read.spec is not None
    assert read.spec.checkpoints.folder == "runs/a"


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("--command", "python fit.py --tag {x}"), "unknown placeholder {x}"),
        (("--command", "python fit.py", "--steps", "9" * 20), "trainer.steps"),
        (
            ("--kind", "torchrun", "--command", "torchrun --nproc_per_node 2 fit.py"),
            "begin the command with the script",
        ),
    ],
)
def test_no_config_is_written_that_validate_would_refuse(
    shell: Shell, words: tuple[str, ...], output: str
) -> None:
    shell.write("fit.py", "")
    done = shell.run("init", *words, "--yes")
    assert done.returncode == 1
    assert output in done.stdout + done.stderr
    assert not (shell.here / "configs").exists()


def test_a_script_of_ones_own_is_requested_on_a_terminal(shell: Shell) -> None:
    shell.write("train.py", "")
    with terminal(shell, "init") as screen:
        screen.answer("Trainer [prime_rl]: ", "keras")
        screen.expect("write one of command, torchrun, hf, lightning")
        screen.answer("Trainer [prime_rl]: ", "command")
        screen.answer("Command [python train.py]: ")
        screen.answer("Dollars [50]: ", "5")
        screen.expect("--- configs/")
        screen.answer("Write these files? [Y/n]: ")
        assert screen.end() == 0
    (path,) = (shell.here / "configs").glob("*-train.yaml")
    read = read_config(path)
    assert read.spec is not None
    assert (read.spec.trainer.command, read.spec.budget.usd) == ("python train.py", 5.0)


def test_files_that_are_there_are_replaced_only_after_a_yes(shell: Shell) -> None:
    shell.ok("init", *READY)
    config = shell.here / "configs" / "qwen3-4b-full.yaml"
    config.write_text("mine\n")
    done = shell.run("init", *READY)
    assert (done.returncode, "already exists and was not changed" in done.stderr) == (2, True)
    with terminal(shell, "init", *READY[:-1], "--env", "reverse-text", "--budget", "5") as screen:
        screen.answer("Replace them? [y/N]: ")
        assert screen.end() == 2
    assert config.read_text() == "mine\n"
    shell.ok("init", *READY, "--force")
    assert config.read_text() != "mine\n"


def test_a_person_who_leaves_leaves_nothing_behind(shell: Shell) -> None:
    with terminal(shell, "init", "--model", "Qwen/Qwen3-4B") as screen:
        screen.expect("Hardware [h100-80gb]: ")
        screen.press_control_d()
        assert screen.end() == 130
        assert screen.seen.endswith("prime-train: interrupted\n")
    assert not (shell.here / "configs").exists()


def test_without_a_terminal_it_does_not_wait_for_answers(shell: Shell) -> None:
    done = shell.run("init", "--model", "Qwen/Qwen3-4B")
    assert (done.returncode, "this is not a terminal" in done.stderr, "--yes" in done.stderr) == (
        2,
        True,
        True,
    )


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("hardware", [known.name for known in PRESETS])
@pytest.mark.parametrize(
    "model",
    ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B", "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"],
)
def test_what_is_written_for_any_hardware_can_be_read_and_fits(
    model: str, hardware: str, gpus: int, tmp_path: Path
) -> None:
    found = settings_for(wanted(model, hardware, gpus))
    if isinstance(found, str):
        assert "needs up to" in found
        return
    path, beside = tmp_path / f"{found.name}.yaml", tmp_path / found.name
    beside.mkdir()
    (beside / "rl.toml").write_text(init_text.trainer(found))
    path.write_text(init_text.config(found, str(beside)))
    read = read_config(path)
    assert read.spec is not None
    (loaded,) = load_configs([path])
    assert loaded.subject is not None
    assert [*loaded.findings, *findings_with_ignored(loaded.subject)] == []
    toml = tomllib.loads(init_text.trainer(found))
    division = toml["deployment"]
    assert division["num_train_gpus"] + division["num_infer_gpus"] == read.spec.hardware.count == gpus
    assert division["num_infer_gpus"] % toml["inference"]["vllm"].get("tensor_parallel_size", 1) == 0
    assert (
        toml["orchestrator"]["train"]["sampling"]["max_completion_tokens"]
        < toml["seq_len"]
        == toml["inference"]["vllm"]["max_model_len"]
    )
    assert toml["orchestrator"]["batch_size"] % toml["orchestrator"]["group_size"] == 0


def test_adapters_are_trained_where_all_weights_do_not_fit() -> None:
    assert settled(wanted("Qwen/Qwen3-4B", "h100-80gb")).method is Method.FULL
    assert settled(wanted("Qwen/Qwen3-14B", "h100-80gb")).method is Method.LORA
    assert settled(wanted("Qwen/Qwen3-4B", "h100-80gb", how=How.LORA)).name == "qwen3-4b-lora"


def test_a_folder_with_an_unusual_name_is_still_one(shell: Shell) -> None:
    shell.ok("init", *READY, "--folder", "my: configs #1")
    spec = read_config(shell.here / "my: configs #1" / "qwen3-4b-full.yaml").spec
    assert spec is not None
    assert spec.trainer.code.folder == "my: configs #1/qwen3-4b-full"


def test_what_does_not_fit_is_reported_with_its_numbers() -> None:
    found = settings_for(wanted("Qwen/Qwen3-32B", "rtx4090"))
    assert isinstance(found, str)
    assert "2 x RTX4090_24GB have 24 GB each" in found


def test_a_model_is_not_given_more_tokens_than_it_was_made_for() -> None:
    assert settled(replace(wanted(), context=4096)).seq_len == 4096


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        (checked_model, "Qwen/Qwen3-VL-4B-Instruct", "vision-language"),
        (checked_model, "../../etc/passwd-8B", "is unknown"),
        (checked_model, "", "is unknown"),
        (known_preset, "tpu", "is unknown"),
        (checked_gpus, 1, "one GPU for training and one for generation"),
        (checked_gpus, 3, "3 GPUs"),
        (checked_environment, "a b; rm -rf", "is not an environment"),
        (checked_usd, "free", "is not an amount"),
        (checked_usd, "-3", "is not an amount"),
        (checked_usd, "nan", "is not an amount"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_a_reason(check: object, answer: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(answer)  # type: ignore[operator]  # checks of answers of different kinds


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--yes",), 2, "--yes needs --model and --preset"),
        (("--kind", "prime_rl", "--yes"), 2, "--yes needs --model and --preset"),
        ((*READY, "--ref", "main"), 2, "is not a commit"),
        ((*READY, "--name", "My Run"), 2, "is not a valid name"),
        ((*READY, "--budget", "inf"), 2, "is not an amount"),
        ((*READY, "--budget", "0"), 2, "is not an amount"),
        (("--command", "python train.py", "--yes", "--budget", "0"), 2, "is not an amount"),
        (("--model", "Qwen/Qwen3-32B", "--preset", "rtx4090", "--yes"), 1, "larger GPUs"),
        (("--preset", "hf-stf", "--yes"), 2, "the hardware hf-stf is unknown, and no config has this name"),
        (
            ("--preset", "hf-stf", "--kind", "hf", "--yes"),
            2,
            "configs that are ready to run are areal-1gpu-1h",
        ),
        (
            ("--preset", "hf-sft", "--model", "Qwen/Qwen3-4B", "--full", "--yes"),
            2,
            "ready to run, so it takes no --model, --full",
        ),
        (
            ("--preset", "hf-sft", "--steps", "5", "--command", "x", "--yes"),
            2,
            "so it takes no --steps, --command",
        ),
    ],
)
def test_wishes_that_cannot_be_met_get_a_line_and_a_code(
    shell: Shell, args: tuple[str, ...], code: int, words: str
) -> None:
    done = shell.run("init", *args)
    assert (done.returncode, words in " ".join(done.stderr.split()), "Traceback" in done.stderr) == (
        code,
        True,
        False,
    ), done.stderr
    assert not (shell.here / "configs").exists()
