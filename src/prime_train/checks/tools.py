"""Rules about where the tools of an environment run (TO6xx)."""

from collections.abc import Iterator

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Listing

TOPIC = "tools"
REMOTE = frozenset(("prime", "modal", "daytona", "e2b", "morph"))
"""The names in prime-rl of sandboxes on remote servers."""


RULES = Rules(TOPIC, requires="prime_rl")


@RULES.note(
    "TO601",
    "tools that run on a remote service",
    why="A call takes about 1.5 s, nearly all of it network time. A rollout with ten calls in sequence is 10 "
    "to 15 times slower, and the GPUs wait. It looks like an inference bottleneck, but is not.",
    fix='write runtime = {type = "subprocess"} if the tools are harmless, or keep more rollouts in flight',
)
def remote(subject: Subject) -> Iterator[Violation]:
    trainer = subject.trainer
    sources = trainer.at("orchestrator", "train", "source") if trainer is not None else None
    for at in range(len(sources.items) if isinstance(sources, Listing) else 0):
        path = ("orchestrator", "train", "source", at, "env", "agent", "runtime", "type")
        if trainer is not None and trainer.value(*path) in REMOTE:
            yield Violation(
                path, f"each tool call makes a round trip to {trainer.value(*path)}", document="trainer"
            )
