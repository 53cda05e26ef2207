"""Rules about lengths in a prime-rl config: a completion with its prompt must fit into the served and the
trained sequence length.

How long prompts are, the config may say (`trainer.prime_rl.prompt_tokens`); otherwise it is what is known of
the environment.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.spec.rule import Violation
from prime_train.trainers.prime_rl.reference.prompt_lengths import UNKNOWN_TOKENS, known_prompt_tokens
from prime_train.trainers.prime_rl.rules.rule import PrimeRlRules, violation
from prime_train.trainers.prime_rl.rules.schema_errors import Where, dotted
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_SEQ = "orchestrator.seq_len"
_SERVED = "inference.vllm.max_model_len"
_LIMIT = "max_completion_tokens"


@dataclass(frozen=True)
class _Completion:
    """A limit of completions, where it is written, and the tokens of the prompts before them. `whose`: in
    words, whose prompts they are; empty if they are not known.
    """

    where: Where
    tokens: int
    prompt: int
    whose: str

    @property
    def total(self) -> int:
        return self.tokens + self.prompt


RULES = PrimeRlRules()


def _completions(settings: ReceivedConfig, side: str) -> Iterator[_Completion]:
    """Yield every completion limit of `side` ("train" or "eval"): that of all its sources without one, and
    those of single sources.
    """
    sources = list(settings.items(f"orchestrator.{side}.source"))
    own = [where for where, _ in sources if settings.number_at((*where, "sampling", _LIMIT)) is not None]
    places: list[tuple[Where, list[Where]]] = [
        (("orchestrator", side), [where for where, _ in sources if where not in own])
    ]
    places += [(where, [where]) for where in own]
    for place, served in places:
        tokens = settings.number_at((*place, "sampling", _LIMIT))
        if tokens is not None:
            yield _Completion((*place, "sampling", _LIMIT), int(tokens), *_prompts(settings, served))


def _prompts(settings: ReceivedConfig, sources: list[Where]) -> tuple[int, str]:
    """Return the tokens of the longest prompts of these sources, and in words, whose they are."""
    section = settings.spec.trainer.prime_rl if settings.spec is not None else None
    if section is not None and section.prompt_tokens is not None:
        return section.prompt_tokens, "as trainer.prime_rl.prompt_tokens says"
    names = [_environment(settings, where) for where in sources]
    known = [(tokens, name) for name in names if (tokens := known_prompt_tokens(name)) is not None]
    longest, name = max(known, default=(0, ""))
    if longest < UNKNOWN_TOKENS and (len(known) < len(sources) or not sources):
        return UNKNOWN_TOKENS, ""
    return longest, f"in {name[:60]!r}"


def train_environments(settings: ReceivedConfig) -> list[str]:
    """Return the names of the environments that are trained on, an empty one for each that has none."""
    return [_environment(settings, where) for where, _ in settings.items("orchestrator.train.source")]


def _environment(settings: ReceivedConfig, source: Where) -> str:
    return (
        settings.text_at((*source, "env", "taskset", "id")) or settings.text_at((*source, "env", "id")) or ""
    )


def _served_is_wrong(settings: ReceivedConfig) -> bool:
    """Return whether the served length is below the trained one and is probably the wrong one of the two:
    completions fit into the trained length, or into both.
    """
    seq, served = settings.integer(_SEQ), settings.integer(_SERVED)
    if seq is None or served is None or served >= seq:
        return False
    totals = [completion.total for completion in _completions(settings, "train")]
    return all(total <= served for total in totals) or (
        served < 2 * UNKNOWN_TOKENS and all(total <= seq for total in totals)
    )


def _limit(settings: ReceivedConfig, side: str) -> tuple[int, str] | None:
    """Return the number of tokens that fit and the setting that limits them; of two equal limits, the served
    one. None if this file sets none.
    """
    names = (_SERVED, _SEQ) if side == "train" else (_SERVED,)
    names_used = [name for name in names if name == _SEQ or not _served_is_wrong(settings)]
    names_given = [name for name in names_used if settings.is_complete or settings.given_at(name) is not None]
    found = [
        (limit, name) for name in names_given if (limit := settings.integer(name)) is not None and limit > 0
    ]
    return min(found, key=lambda limit: limit[0], default=None)


def _too_long_for(settings: ReceivedConfig, whose: str) -> Iterator[tuple[_Completion, int]]:
    """Yield every completion that exceeds the limit set by `whose`, prompt included, and that limit."""
    for side in ("train", "eval"):
        limit, name = _limit(settings, side) or (0, "")
        for completion in _completions(settings, side) if name == whose else ():
            if completion.total > limit:
                yield completion, limit


@RULES.error(
    "PR310",
    "no room for a prompt",
    why="The server rejects every request, and the run stops after ten empty batches.",
    fix="request fewer tokens",
)
def refused(settings: ReceivedConfig) -> Iterator[Violation]:
    for completion, limit in _too_long_for(settings, _SERVED):
        if completion.tokens >= limit:
            yield _too_long(
                settings, completion, f"leaves no room for a prompt: {_SERVED} is {limit:,}", limit
            )


@RULES.warning(
    "PR311",
    "little room for a prompt",
    why="The server rejects prompts that are longer than what is left. How long they are is known of some "
    "environments; otherwise "
    f"{UNKNOWN_TOKENS} tokens are to be left.",
    fix="request fewer tokens",
)
def short_prompts(settings: ReceivedConfig) -> Iterator[Violation]:
    for completion, limit in _too_long_for(settings, _SERVED):
        if completion.tokens < limit:
            yield _too_long(settings, completion, _left(completion, limit, f"{_SERVED} {limit:,}"), limit)


@RULES.warning(
    "PR315",
    "completions longer than the trainer's sequences",
    why="The ends of the completions, where the answers are, are generated and paid for, but cut off before "
    "training.",
    fix="request fewer tokens, or raise seq_len",
)
def cut(settings: ReceivedConfig) -> Iterator[Violation]:
    for completion, limit in _too_long_for(settings, _SEQ):
        if completion.tokens > limit:
            yield _too_long(
                settings, completion, f"is more than the trainer uses: seq_len is {limit:,}", limit
            )


@RULES.note(
    "PR314",
    "long rollouts are cut off",
    why="The trainer uses only the first seq_len tokens of a rollout, including its prompt.",
    fix="request fewer tokens, or raise seq_len",
)
def nearly_cut(settings: ReceivedConfig) -> Iterator[Violation]:
    for completion, limit in _too_long_for(settings, _SEQ):
        if completion.tokens <= limit:
            yield _too_long(settings, completion, _left(completion, limit, f"seq_len {limit:,}"), limit)


def _left(completion: _Completion, limit: int, whole: str) -> str:
    needed = (
        f", where prompts take up to {completion.prompt:,} ({completion.whose})" if completion.whose else ""
    )
    return f"leaves {limit - completion.tokens:,} tokens for the prompt, of {whole}{needed}"


def _too_long(settings: ReceivedConfig, completion: _Completion, what: str, limit: int) -> Violation:
    raised = "max_model_len" if settings.integer(_SERVED) == limit else "seq_len"
    room = limit - completion.prompt
    fix = (
        f"request at most {room:,}, or raise {raised}"
        if room > 0
        else f"raise {raised} above {completion.prompt:,}"
    )
    if not completion.whose and settings.spec is not None:
        fix += "; if you know how long prompts are, write trainer.prime_rl.prompt_tokens"
    return violation(completion.where, f"{dotted(completion.where)} of {completion.tokens:,} {what}", fix)


@RULES.warning(
    "PR312",
    "the server's length limit is below the trainer's",
    why="The trainer reserves memory for sequences that are longer than any rollout can be.",
    fix="raise max_model_len to seq_len, or lower seq_len",
)
def served_short(settings: ReceivedConfig) -> Iterator[Violation]:
    served, seq = settings.integer(_SERVED), settings.integer(_SEQ)
    is_given = settings.is_complete or settings.given_at(_SEQ) is not None
    if served is not None and seq is not None and is_given and _served_is_wrong(settings):
        yield violation(
            settings.place(_SERVED),
            f"{_SERVED} of {served:,} cuts every rollout short of the {seq:,} tokens of {_SEQ}",
        )


@RULES.error(
    "PR313",
    "the trainer's sequence length is below the orchestrator's",
    why="prime-rl rejects the config: the trainer must accept sequences as long as the orchestrator's.",
    fix="set seq_len once, at the top level, for both",
)
def trained_short(settings: ReceivedConfig) -> Iterator[Violation]:
    trained, seq = settings.integer("trainer.model.seq_len"), settings.integer(_SEQ)
    if seq is not None and seq < 1:
        yield violation(
            settings.place(_SEQ),
            f"{_SEQ} is {seq}, so there would be no tokens to train on",
            "write 2048, say",
        )
    if settings.has("seq_len") or not settings.is_complete:
        return
    if trained is not None and seq is not None and trained < seq:
        given = settings.has("trainer.model.seq_len") or not settings.has(_SEQ)
        where = settings.place("trainer.model.seq_len" if given else _SEQ)
        yield violation(
            where,
            f"trainer.model.seq_len is {trained:,}, less than the {seq:,} of {_SEQ}: the trainer could not "
            "accept a full rollout",
        )
