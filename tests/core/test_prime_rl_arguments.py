"""The interpretation of prime-rl's command line."""

import pytest

from prime_train.spec.tree import Scalar, SourcePosition, place_of, plain
from prime_train.trainers.prime_rl.arguments import Include, arguments


def words(line: str) -> list[Scalar]:
    return [Scalar(SourcePosition(1, at + 1), word, word) for at, word in enumerate(line.split())]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--trainer.optim.lr 1e-5", {"trainer": {"optim": {"lr": 1e-5}}}),
        ("--max-steps=50 --seq-len 2048", {"max_steps": 50, "seq_len": 2048}),
        ("--max-steps 50 --max-steps 60", {"max_steps": 60}),
        ("--model.name Qwen/Qwen3-4B", {"model": {"name": "Qwen/Qwen3-4B"}}),
        ("--trainer.model.ac None", {"trainer": {"model": {"ac": None}}}),
        ("--trainer.model.lora", {"trainer": {"model": {"lora": {}}}}),
        ("--trainer.model.fsdp-cpu-offload", {"trainer": {"model": {"fsdp_cpu_offload": True}}}),
        (
            "--no-trainer.model.fsdp-cpu-offload --x 1",
            {"trainer": {"model": {"fsdp_cpu_offload": False}}, "x": 1},
        ),
        ("--no-trainer.model.ac", {"trainer": {"model": {"ac": None}}}),
        ("--bench true --clean-up False", {"bench": True, "clean_up": False}),
        ("--monitors.wandb.tags a b", {"monitors": {"wandb": {"tags": ["a", "b"]}}}),
        ('--inference.vllm {"a":[1,null]}', {"inference": {"vllm": {"a": [1, None]}}}),
        ("--inference.vllm {not-json", {"inference": {"vllm": "{not-json"}}),
        ("--lr -1e-3", {"lr": -1e-3}),
        ("orphan words", {}),
        ("-- --", {}),
        ("", {}),
    ],
)
def test_arguments_are_settings(line: str, values: dict[str, object]) -> None:
    assert plain(arguments(words(line)).values) == values


def test_files_are_named_by_an_at_for_the_complete_or_for_a_part() -> None:
    message = arguments(words("@ a.toml --seq-len 1 @ b.toml --trainer.model @ c.toml --wandb @d.toml --x 2"))
    assert message.includes == (
        Include((), "a.toml", SourcePosition(1, 2)),
        Include((), "b.toml", SourcePosition(1, 6)),
        Include(("trainer", "model"), "c.toml", SourcePosition(1, 9)),
        Include(("wandb",), "d.toml", SourcePosition(1, 11)),
    )
    assert plain(message.values) == {"seq_len": 1, "x": 2}


@pytest.mark.parametrize("line", ["@", "--x @", "@a.toml", "--x 1 @"])
def test_an_at_without_its_file_names_none(line: str) -> None:
    assert arguments(words(line)).includes == ()


def test_an_argument_stands_at_its_word() -> None:
    assert place_of(arguments(words("--a 1 --b.c 2")).values, ("b", "c")) == SourcePosition(1, 4)
