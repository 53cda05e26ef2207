"""Room that the prompts of known environments take, in tokens, read in August 2026.

The code of an environment, which makes its prompts, is not on this machine. So a row is what those who train
with it leave beside the completion, or cut prompts at: with several turns, the turns before count as the
prompt of the next.
"""

from typing import NamedTuple


class PromptLength(NamedTuple):
    """The room of one environment's prompts. `source`: where the number is from, by repository and commit."""

    tokens: int
    source: str


_PRIME_RL = "PrimeIntellect-ai/prime-rl@559b4477"
_VERL_MATH = (
    "verl-project/verl@3234ce2e, examples/grpo_trainer/run_qwen2-7b_math.sh: longer prompts of gsm8k and "
    "math are left out"
)

PROMPT_LENGTHS = {
    "alphabet-sort": PromptLength(
        1280, f"{_PRIME_RL}, examples/basic/alphabet-sort/rl.toml: 768 of 2,048 are for each of 3 to 5 turns"
    ),
    "color-codeword": PromptLength(
        4032, f"{_PRIME_RL}, configs/ci/nightly/multimodal_color_codeword.toml: 64 of 4,096 are for an answer"
    ),
    "gsm8k": PromptLength(512, _VERL_MATH),
    "kuhn-poker": PromptLength(
        3584, f"{_PRIME_RL}, configs/debug/algo/rae.toml: 512 of 4,096 are for a turn"
    ),
    "math-env": PromptLength(512, _VERL_MATH),
    "reverse-text": PromptLength(
        256, f"{_PRIME_RL}, examples/basic/reverse-text: 128 hold the reversed prompt"
    ),
    "wiki-search": PromptLength(
        3584, f"{_PRIME_RL}, examples/basic/wiki-search/rl.toml: 512 of 4,096 are for a turn"
    ),
    "wordle": PromptLength(
        3072,
        f"{_PRIME_RL}, examples/basic/wordle/README.md: a context of 4,096, of which 1,024 are for a turn",
    ),
}
"""By the id of the taskset."""
UNKNOWN_TOKENS = 500
"""The room for the prompts of an environment of which nothing is known."""


def known_prompt_tokens(taskset: str) -> int | None:
    """Return the room that prompts of this taskset take; None if it is not known. An id may be written with
    its owner or a version, as in primeintellect/wordle@1.2.
    """
    name = taskset.rpartition("/")[2].partition("@")[0].replace("_", "-")
    found = PROMPT_LENGTHS.get(name)
    return found.tokens if found is not None else None
