"""Rules about lengths in a prime-rl config: a completion with its prompt must fit into the served and the trained sequence length."""

from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.rules.prime_rl.rule import row, violation
from prime_train.rules.prime_rl.schema_errors import Where, dotted
from prime_train.rules.prime_rl.settings import Settings
from prime_train.rules.rule import Violation

PROMPT_TOKENS_MIN = 500
"""The tokens to leave for a prompt; their real length depends on the environment and is not known."""

_SEQ = "orchestrator.seq_len"
_SERVED = "inference.vllm.max_model_len"
_LIMIT = "max_completion_tokens"


def _completion_limits(settings: Settings, side: str) -> Iterator[tuple[Where, int]]:
    """Yield the path and the number of tokens of every completion limit of `side` ("train" or "eval")."""
    places: list[Where] = [("orchestrator", side, "sampling")]
    places += [(*where, "sampling") for where, _ in settings.items(f"orchestrator.{side}.source")]
    for place in places:
        tokens = settings.number_at((*place, _LIMIT))
        if tokens is not None:
            yield (*place, _LIMIT), int(tokens)


def _served_is_wrong(settings: Settings) -> bool:
    """Return whether the served length is below the trained one and is probably the wrong one of the two: completions fit into the trained
    length, or into both."""
    seq, served = settings.integer(_SEQ), settings.integer(_SERVED)
    if seq is None or served is None or served >= seq:
        return False
    tokens = [limit + PROMPT_TOKENS_MIN for _, limit in _completion_limits(settings, "train")]
    return all(total <= served for total in tokens) or (served < 2 * PROMPT_TOKENS_MIN and all(total <= seq for total in tokens))


def _limit(settings: Settings, side: str) -> tuple[int, str] | None:
    """Return the number of tokens that fit and the setting that limits them; of two equal limits, the served one. None if this file sets
    none."""
    names = (_SERVED, _SEQ) if side == "train" else (_SERVED,)
    names_used = [name for name in names if name == _SEQ or not _served_is_wrong(settings)]
    names_given = [name for name in names_used if settings.is_complete or settings.given_at(name) is not None]
    found = [(limit, name) for name in names_given if (limit := settings.integer(name)) is not None and limit > 0]
    return min(found, key=lambda limit: limit[0], default=None)


def _too_long_for(settings: Settings, whose: str) -> Iterator[tuple[Where, int, int]]:
    """Yield path, tokens and limit of every completion that exceeds the limit set by `whose`, prompt included."""
    for side in ("train", "eval"):
        limit, name = _limit(settings, side) or (0, "")
        for where, tokens in _completion_limits(settings, side) if name == whose else ():
            if tokens + PROMPT_TOKENS_MIN > limit:
                yield where, tokens, limit


def _refused(settings: Settings) -> Iterator[Violation]:
    for where, tokens, limit in _too_long_for(settings, _SERVED):
        if tokens >= limit:
            yield _too_long(settings, where, tokens, f"leaves no room for a prompt: {_SERVED} is {limit:,}", limit)


def _short_prompts(settings: Settings) -> Iterator[Violation]:
    for where, tokens, limit in _too_long_for(settings, _SERVED):
        if tokens < limit:
            yield _too_long(settings, where, tokens, f"leaves {limit - tokens:,} tokens for the prompt, of {_SERVED} {limit:,}", limit)


def _cut(settings: Settings) -> Iterator[Violation]:
    for where, tokens, limit in _too_long_for(settings, _SEQ):
        if tokens > limit:
            yield _too_long(settings, where, tokens, f"is more than the trainer uses: seq_len is {limit:,}", limit)


def _nearly_cut(settings: Settings) -> Iterator[Violation]:
    for where, tokens, limit in _too_long_for(settings, _SEQ):
        if tokens <= limit:
            yield _too_long(settings, where, tokens, f"leaves {limit - tokens:,} tokens for the prompt, of seq_len {limit:,}", limit)


def _too_long(settings: Settings, where: Where, tokens: int, what: str, limit: int) -> Violation:
    raised = "max_model_len" if settings.integer(_SERVED) == limit else "seq_len"
    fix = f"request at most {max(limit - PROMPT_TOKENS_MIN, 1):,}, or raise {raised}"
    return violation(where, f"{dotted(where)} of {tokens:,} {what}", fix)


def _served_short(settings: Settings) -> Iterator[Violation]:
    served, seq = settings.integer(_SERVED), settings.integer(_SEQ)
    is_given = settings.is_complete or settings.given_at(_SEQ) is not None
    if served is not None and seq is not None and is_given and _served_is_wrong(settings):
        yield violation(settings.place(_SERVED), f"{_SERVED} of {served:,} cuts every rollout short of the {seq:,} tokens of {_SEQ}")


def _trained_short(settings: Settings) -> Iterator[Violation]:
    trained, seq = settings.integer("trainer.model.seq_len"), settings.integer(_SEQ)
    if seq is not None and seq < 1:
        yield violation(settings.place(_SEQ), f"{_SEQ} is {seq}, so there would be no tokens to train on", "write 2048, say")
    if settings.has("seq_len") or not settings.is_complete:
        return
    if trained is not None and seq is not None and trained < seq:
        given = settings.has("trainer.model.seq_len") or not settings.has(_SEQ)
        where = settings.place("trainer.model.seq_len" if given else _SEQ)
        yield violation(
            where, f"trainer.model.seq_len is {trained:,}, less than the {seq:,} of {_SEQ}: the trainer could not accept a full rollout"
        )


RULES = (
    row(
        "PR310",
        Severity.ERROR,
        "no room for a prompt",
        _refused,
        why="The server rejects every request, and the run stops after ten empty batches.",
        fix="request fewer tokens",
    ),
    row(
        "PR311",
        Severity.WARNING,
        "little room for a prompt",
        _short_prompts,
        why=f"With fewer than {PROMPT_TOKENS_MIN} tokens left, the server rejects longer prompts.",
        fix="request fewer tokens",
    ),
    row(
        "PR312",
        Severity.WARNING,
        "the server's length limit is below the trainer's",
        _served_short,
        why="The trainer reserves memory for sequences that are longer than any rollout can be.",
        fix="raise max_model_len to seq_len, or lower seq_len",
    ),
    row(
        "PR313",
        Severity.ERROR,
        "the trainer's sequence length is below the orchestrator's",
        _trained_short,
        why="prime-rl rejects the config: the trainer must accept sequences as long as the orchestrator's.",
        fix="set seq_len once, at the top level, for both",
    ),
    row(
        "PR314",
        Severity.NOTE,
        "long rollouts are cut off",
        _nearly_cut,
        why="The trainer uses only the first seq_len tokens of a rollout, including its prompt.",
        fix="request fewer tokens, or raise seq_len",
    ),
    row(
        "PR315",
        Severity.WARNING,
        "completions longer than the trainer's sequences",
        _cut,
        why="The ends of the completions, where the answers are, are generated and paid for, but cut off before training.",
        fix="request fewer tokens, or raise seq_len",
    ),
)
