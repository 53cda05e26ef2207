"""How much room a prime-rl config leaves for prompts is judged by its environment, or by the number in the
config.
"""

import re
from pathlib import Path

import pytest

from prime_train.trainers.prime_rl.reference.prompt_lengths import (
    PROMPT_LENGTHS,
    UNKNOWN_TOKENS,
    known_prompt_tokens,
)
from tests.rules.prime_rl_given import GOOD, changed, found_in, found_in_run

SUMS = 'env.taskset = { id = "sums", digits = 3 }'


def tokens(limit: int, taskset: str = "sums") -> str:
    """Return the good config with this limit of completions, of 4,096 tokens in all."""
    return changed(
        GOOD,
        ("max_completion_tokens = 2048", f"max_completion_tokens = {limit}"),
        (SUMS, f'env.taskset.id = "{taskset}"'),
    )


@pytest.mark.parametrize(
    ("taskset", "limit", "codes"),
    [
        ("sums", 4096 - UNKNOWN_TOKENS, []),
        ("sums", 4096 - UNKNOWN_TOKENS + 1, ["PR311"]),
        ("reverse-text", 3700, []),
        ("alphabet-sort", 2816, []),
        ("alphabet-sort", 2817, ["PR311"]),
        ("wordle", 2048, ["PR311"]),
        ("primeintellect/wordle@1.2", 2048, ["PR311"]),
        ("alphabet_sort", 3000, ["PR311"]),
    ],
)
def test_the_room_for_prompts_is_that_of_the_environment(
    taskset: str, limit: int, codes: list[str], tmp_path: Path
) -> None:
    assert [finding.code for finding in found_in(tmp_path, tokens(limit, taskset))] == codes


def test_the_finding_says_how_long_prompts_are_and_in_which_environment(tmp_path: Path) -> None:
    (finding,) = found_in(tmp_path, tokens(2048, "wordle"))
    assert finding.message.endswith("leaves 2,048 tokens for the prompt, of inference.vllm.max_model_len "
                                    "4,096, where prompts take up to 3,072 (in 'wordle')")  # fmt: skip
    assert finding.fix == "request at most 1,024, or raise max_model_len"


def test_a_number_in_the_config_counts_more_than_the_table(tmp_path: Path) -> None:
    said = ("    config: rl.toml\n", "    config: rl.toml\n    prompt_tokens: {}\n")
    assert found_in_run(tmp_path, tokens(3700), (said[0], said[1].format(300))) == ()
    (finding,) = found_in_run(tmp_path, tokens(3700, "reverse-text"), (said[0], said[1].format(900)))
    assert (finding.code, finding.fix) == ("PR311", "request at most 3,196, or raise max_model_len")
    assert "(as trainer.prime_rl.prompt_tokens says)" in finding.message


def test_a_run_whose_prompts_are_not_known_is_told_where_to_say_it(tmp_path: Path) -> None:
    (finding,) = found_in_run(tmp_path, tokens(3700))
    assert finding.fix.endswith("write trainer.prime_rl.prompt_tokens")


def test_of_several_environments_the_longest_prompts_count(tmp_path: Path) -> None:
    second = (
        f'{SUMS}\nenv.agent.harness.id = "null"\n\n[[orchestrator.train.source]]\nname '
        "= "
        '"letters"\nenv.taskset.id = "alphabet-sort"'
    )
    both = changed(
        GOOD,
        ("max_completion_tokens = 2048", "max_completion_tokens = 3000"),
        (f'{SUMS}\nenv.agent.harness.id = "null"', second),
    )
    assert [finding.code for finding in found_in(tmp_path, both)] == ["PR311"]
    alone = changed(
        both,
        (
            'env.taskset.id = "alphabet-sort"',
            'env.taskset.id = "alphabet-sort"\nsampling.max_completion_tokens = 512',
        ),
    )
    assert found_in(tmp_path, alone) == ()


def test_every_row_has_a_source_with_its_commit() -> None:
    for name, row in PROMPT_LENGTHS.items():
        assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{8}, \S", row.source), name
        assert 0 < row.tokens < 32_768
        assert known_prompt_tokens(name) == row.tokens
