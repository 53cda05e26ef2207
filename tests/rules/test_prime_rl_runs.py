"""Rules about prime-rl configs, if a run's spec has more information: its machine, its version, its
arguments.
"""

from pathlib import Path

import pytest

from prime_train.spec.finding import Finding, Severity
from tests.rules.prime_rl_given import GOOD, SPEC, changed, found_in_run, line

OVERRIDES = ("    config: rl.toml\n", "    config: rl.toml\n    overrides:\n      - {}\n")


def overridden(*words: str) -> tuple[str, str]:
    """Return a change of the spec."""
    old, new = OVERRIDES
    return old, new.format("\n      - ".join(f'"{word}"' for word in words))


def codes(findings: tuple[Finding, ...]) -> list[tuple[str, str, int]]:
    return [(finding.code, Path(finding.file).name, finding.line) for finding in findings]


def toml(*changes: tuple[str, str]) -> str:
    return changed(GOOD, *changes)


def test_a_run_that_is_right_is_left_alone(tmp_path: Path) -> None:
    assert found_in_run(tmp_path, GOOD) == ()


@pytest.mark.parametrize(
    ("written", "spec", "code", "at"),
    [
        (("num_infer_gpus = 6", "num_infer_gpus = 2"), None, "PR322", "num_train_gpus"),
        (("port = 9400", "port = 9400"), ("count: 8", "count: 4"), "PR321", "num_train_gpus"),
        (("keep_last = 2", "keep_last = 1"), None, "PR338", "keep_last"),
        (("keep_last = 2", 'keep_last = 2\noutput_dir = "/big"'), None, "PR346", 'output_dir = "/big"'),
        (("[run]", "[resume]\nstep = 5\n[run]"), None, "PR346", "[resume]"),
        (("[run]", "[resume]\n[run]"), None, "PR346", "[resume]"),
        (("max_steps = 200", "max_steps = 200\nclean = true"), None, "PR346", "clean"),
        (("max_steps = 200", "max_steps = 200\ndry_run = true"), None, "PR346", "dry_run"),
        (("[run]", '[monitors.file]\npath = "other.jsonl"\n[run]'), None, "PR346", "path"),
        (("[run]", '[trainer.monitors]\nfile = "None"\n[run]'), None, "PR346", "file"),
        (("[run]", '[slurm]\npartition = "all"\n[run]'), None, "PR326", "[slurm]"),
        (
            ('attn = "flash_attention_2"', 'attn = "flash_attention_3"'),
            ("[H100_80GB]", "[H100_80GB, A100_80GB]"),
            "PR372",
            "attn",
        ),
        (
            ('attn = "flash_attention_2"', 'attn = "flash_attention_4"'),
            ("[H100_80GB]", "[RTX4090]"),
            "PR372",
            "attn",
        ),
        (
            ("[trainer.optim]", '[trainer.model.quantization]\ntype = "fp8"\n[trainer.optim]'),
            ("H100", "A100"),
            "PR373",
            'type = "fp8"',
        ),
        (("cp = 2", "cp = 2\n[trainer]\nmax_steps = 100"), None, "PR380", "max_steps = 100"),
        (("[run]", "[run]\nkeep = 3"), None, "PR301", "keep = 3"),
    ],
)
def test_an_error_in_the_config_of_a_run(
    tmp_path: Path, written: tuple[str, str], spec: tuple[str, str] | None, code: str, at: str
) -> None:
    text = toml(written)
    findings = found_in_run(tmp_path, text, *([spec] if spec else []))
    assert codes(findings) == [(code, "rl.toml", line(text, at))], findings


ONE_GPU = ("count: 8", "count: 1")
SHARED = (
    "gpus_per_node = 8\nnum_train_gpus = 2\nnum_infer_gpus = 6",
    "num_train_gpus = 1\nnum_infer_gpus = 1",
)


def for_one_gpu(*more: tuple[str, str]) -> str:
    """Return the config with one GPU for both."""
    written = (
        SHARED,
        ("cp = 2", "cp = 1"),
        ("gpu_memory_utilization = 0.85", "gpu_memory_utilization = 0.3"),
    )
    return toml(*written, ("tensor_parallel_size = 2\n", ""), *more)


def test_one_gpu_is_shared_and_the_run_says_how(tmp_path: Path) -> None:
    findings = found_in_run(tmp_path, for_one_gpu(), ONE_GPU)
    (note,) = findings
    assert (note.code, note.severity, note.file.endswith("run.yaml")) == ("PR395", Severity.NOTE, True)
    assert "takes 0.3 of its memory" in note.message


def test_on_one_gpu_weights_cannot_go_over_nccl(tmp_path: Path) -> None:
    text = for_one_gpu(('type = "filesystem"', 'type = "nccl"'))
    assert ("PR396", "rl.toml", line(text, 'type = "nccl"')) in codes(found_in_run(tmp_path, text, ONE_GPU))


def test_one_gpu_that_the_config_itself_counts_is_an_error_that_says_what_to_delete(tmp_path: Path) -> None:
    text = toml(
        (
            "gpus_per_node = 8\nnum_train_gpus = 2\nnum_infer_gpus = 6",
            "gpus_per_node = 1\nnum_train_gpus = 1",
        ),
        ("cp = 2", "cp = 1"),
    )
    found = [finding for finding in found_in_run(tmp_path, text, ONE_GPU) if finding.code == "PR320"]
    assert [finding.fix for finding in found] == [
        "delete gpus_per_node; on a machine with one GPU both share it"
    ]


def test_several_machines_are_not_rented(tmp_path: Path) -> None:
    text = toml(
        (
            "gpus_per_node = 8\nnum_train_gpus = 2\nnum_infer_gpus = 6",
            'type = "multi_node"\nnum_train_nodes = 2',
        )
    )
    assert codes(found_in_run(tmp_path, text)) == [("PR326", "rl.toml", line(text, "type"))]


def test_a_variable_that_does_nothing_is_reported_in_the_spec(tmp_path: Path) -> None:
    spec = ("budget:", 'environment: {VLLM_USE_V1: "0"}\nbudget:')
    assert codes(found_in_run(tmp_path, GOOD, spec)) == [("PR388", "run.yaml", line(SPEC, "budget"))]


@pytest.mark.parametrize("resume", ["step = 0", 'dir = "latest"', 'dir = "outputs/step_5"\nstep = 5'])
def test_resuming_is_reported_once_however_it_is_reported(resume: str, tmp_path: Path) -> None:
    text = toml(("[run]", f"[resume]\n{resume}\n[run]"))
    assert codes(found_in_run(tmp_path, text)) == [("PR346", "rl.toml", line(text, "[resume]"))]


@pytest.mark.parametrize(
    "change",
    [
        ("num_train_gpus = 2", "num_train_gpus = 3"),
        ("num_infer_gpus = 6", "num_infer_gpus = 7"),
        ("num_train_gpus = 2", "num_train_gpus = 0"),
        ("num_infer_gpus = 6", "num_infer_gpus = 5"),
    ],
)
def test_gpus_dealt_out_wrongly_are_reported_once(change: tuple[str, str], tmp_path: Path) -> None:
    assert len(found_in_run(tmp_path, toml(change))) == 1


def test_gpus_that_nothing_deals_out_are_reported_where_they_are_rented(tmp_path: Path) -> None:
    text = toml(
        ("[deployment]\ngpus_per_node = 8\nnum_train_gpus = 2\nnum_infer_gpus = 6\n", ""),
        ("cp = 2\n", ""),
        ("tensor_parallel_size = 2\n", ""),
    )
    (finding,) = found_in_run(tmp_path, text)
    assert codes((finding,)) == [("PR322", "run.yaml", line(SPEC, "count"))]
    assert "the other 6 would be idle" in finding.message


@pytest.mark.parametrize("named", ["", "  count: 8\n", "  provider: prime\n"])
def test_no_machine_is_rented_for_gpus_that_nobody_requested(named: str, tmp_path: Path) -> None:
    (finding,) = found_in_run(
        tmp_path, GOOD, ("  gpus: [H100_80GB]\n  count: 8\n", f"  disk_gib: 20\n{named}")
    )
    assert codes((finding,)) == [("PR321", "rl.toml", line(GOOD, "num_train_gpus"))]
    assert finding.severity is Severity.ERROR
    assert (
        finding.message
        == "[deployment] assigns 8 GPUs, but hardware.gpus is not set, so the cheapest machine is rented"
    )
    assert "hardware.gpus and set hardware.count to 8," in finding.fix


def test_the_gpus_of_this_machine_are_not_counted(tmp_path: Path) -> None:
    assert (
        found_in_run(
            tmp_path, GOOD, ("  gpus: [H100_80GB]\n  count: 8\n", "  disk_gib: 20\n  provider: local\n")
        )
        == ()
    )


def test_attention_for_the_gpu_that_is_rented_is_right(tmp_path: Path) -> None:
    text = toml(('attn = "flash_attention_2"', 'attn = "flash_attention_3"'))
    assert found_in_run(tmp_path, text, ("[H100_80GB]", "[H100_80GB, H200_141GB, SOME_NEW_GPU]")) == ()


def test_checkpoints_are_the_spec_s_to_ask_for(tmp_path: Path) -> None:
    text = toml(("[ckpt]\ninterval = 10\nkeep_last = 2\n", ""))
    assert found_in_run(tmp_path, text) == ()
    (finding,) = found_in_run(tmp_path, text, ("checkpoints:\n  every_steps: 10\n", ""))
    assert (finding.code, finding.severity) == ("PR336", Severity.WARNING)
    assert found_in_run(tmp_path, GOOD, ("checkpoints:\n  every_steps: 10\n", "")) == ()


def test_what_a_launch_says_itself_may_stand_in_the_config(tmp_path: Path) -> None:
    text = toml(
        ("max_steps = 200", "max_steps = 50"),
        ('output_dir = "outputs"', 'output_dir = "/elsewhere"'),
        ("interval = 10\n", "interval = 7\n"),
    )
    assert found_in_run(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("words", "code", "at"),
    [
        (("--trainer.model.cp", "3"), "PR323", '- "3"'),
        (("--inference.vllm.gpu-memory-utilization", "1.5"), "PR317", '- "1.5"'),
        (("--orchestrator.group-size=1",), "PR350", '- "--orchestrator'),
        (("--orchestrator.rollouts-per-example", "8"), "PR302", '- "--orchestrator'),
        (("--trainer.optim.lrr", "1e-5"), "PR301", '- "--trainer'),
        (("--trainer.optim.lr", "fast"), "PR304", '- "fast"'),
        (("--trainer.model.ac", "None"), "PR360", '- "None"'),
        (("--trainer.model.lora.rank", "1024"), "PR330", '- "1024"'),
    ],
)
def test_an_argument_counts_as_a_setting_and_is_reported_in_its_line(
    tmp_path: Path, words: tuple[str, ...], code: str, at: str
) -> None:
    findings = found_in_run(tmp_path, GOOD, overridden(*words))
    text = (tmp_path / "run.yaml").read_text(encoding="utf-8")
    assert codes(findings) == [(code, "run.yaml", line(text, at))], findings


def test_arguments_that_are_right_are_left_alone(tmp_path: Path) -> None:
    words = (
        "--trainer.optim.lr",
        "1e-5",
        "--ckpt.keep-last",
        "3",
        "--monitors.wandb.name",
        "7",
        "--trainer.model.lora",
        "--run-x",
        "2",
    )
    assert found_in_run(tmp_path, GOOD, overridden(*words[:7])) == ()


def test_an_argument_mends_what_the_config_says(tmp_path: Path) -> None:
    assert (
        found_in_run(
            tmp_path,
            toml(("group_size = 16", "group_size = 1")),
            overridden("--orchestrator.group-size", "16"),
        )
        == ()
    )


# ------------------------------------------------------------------------------------------------------------
# versions


def test_another_version_is_reported_and_what_it_may_take_is_a_warning(tmp_path: Path) -> None:
    text = toml(("[monitors.wandb]", "[wandb]"))
    note, warning = sorted(found_in_run(tmp_path, text, ref="a" * 40), key=lambda finding: finding.code)
    assert (note.code, note.severity, Path(note.file).name) == ("PR307", Severity.NOTE, "run.yaml")
    assert (warning.code, warning.severity, warning.line) == (
        "PR308",
        Severity.WARNING,
        line(text, "[wandb]"),
    )
    assert "monitors.wandb" in warning.message


def test_an_older_version_had_what_has_moved_since(tmp_path: Path) -> None:
    text = toml(("[monitors.wandb]", "[wandb]"), ("keep_last = 2", "keep = 2"))
    findings = found_in_run(tmp_path, text, ref="e26b50503" + "0" * 31)
    assert [(finding.code, finding.line) for finding in findings if finding.code != "PR307"] == [
        ("PR308", line(text, "keep = 2"))
    ]


def test_a_later_setting_is_refused_by_a_version_that_is_named(tmp_path: Path) -> None:
    text = toml(
        (
            "[orchestrator.train.sampling]",
            "[orchestrator.train]\ngroup_size = 16 # later\n[orchestrator.train.sampling]",
        )
    )
    assert codes(found_in_run(tmp_path, text)) == [("PR301", "rl.toml", line(text, "group_size = 16 #"))]
    assert [finding.code for finding in found_in_run(tmp_path, text, ref="b" * 40)] == ["PR307"]


def test_models_that_another_version_may_know_are_not_queried_after(tmp_path: Path) -> None:
    text = toml(('name = "Qwen/Qwen3-4B"', 'name = "acme/new-model"'))
    assert codes(found_in_run(tmp_path, text)) == [("PR374", "rl.toml", line(text, 'name = "acme'))]
    assert [finding.code for finding in found_in_run(tmp_path, text, ref="c" * 40)] == ["PR307"]
