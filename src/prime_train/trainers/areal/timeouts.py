"""Rules about AReaL's time-outs and retries (TR447 to TR449), as of August 2026.

`rollout.setup_timeout` (300 s) is how long the start of a server may take, the download of its model
included; `rollout.request_timeout` (3,600 s) limits the whole of one answer, and a request that exceeds it is
sent again from its beginning, `rollout.request_retries` (3) times in all (areal/infra/remote_inf_engine.py at
cbff54d645d).
"""

from collections.abc import Iterator

from prime_train.checks.memory_plan import plan_of
from prime_train.spec.rule import Document, Rules, Subject, Violation

TOPIC = "AReaL"
GB = 10**9
SETUP_S, REQUEST_S = 300.0, 3600.0
"""AReaL's defaults."""
DOWNLOAD_GB_PER_S = 0.2
"""A fast download of a model from the hub, together with reading it into the GPUs' memory."""
START_S = 60.0
"""What a server needs beside that at least: its processes, its graphs."""
TOKENS_PER_S = 20.0
"""How fast one answer grows at a server that works on many at once."""
WEIGHT_BYTES = 2.0


RULES = Rules(TOPIC, requires="areal")


def _number(config: Document, name: str, default: float) -> float:
    value = config.number("rollout", name)
    return float(value) if value is not None else default


def _violation(name: str, message: str, fix: str = "") -> Violation:
    return Violation(("rollout", name), message, fix, document="trainer")


@RULES.warning(
    "TR447",
    "a server that has too little time to start",
    why="The download of the model counts. AReaL ends when the time is over, and each attempt begins it "
    "again on a new machine.",
    fix="raise rollout.setup_timeout, or fetch the model under setup",
)
def started_too_late(subject: Subject) -> Iterator[Violation]:
    config, plan = subject.trainer, plan_of(subject)
    if config is None or plan is None or not plan.serve_gpus:
        return
    limit_s, size_gb = _number(config, "setup_timeout", SETUP_S), plan.model.params * WEIGHT_BYTES / GB
    needed_s = START_S + size_gb / DOWNLOAD_GB_PER_S
    if needed_s > limit_s:
        message = (
            f"a server has {limit_s:g} s to start, but to fetch and load the {size_gb:,.0f} GB of "
            f"{plan.model.name} takes it about {needed_s:,.0f} s"
        )
        yield _violation(
            "setup_timeout",
            message,
            f"write rollout.setup_timeout={-int(-needed_s * 2 // 100) * 100}, or fetch it under setup",
        )


@RULES.warning(
    "TR448",
    "requests that are given up before their answers are complete",
    why="A request that takes longer than rollout.request_timeout is sent again from its beginning, and then "
    "fails: long answers are generated and paid for several times and never trained on.",
    fix="raise rollout.request_timeout, or lower gconfig.max_new_tokens",
)
def cut_off(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    new = config.number("gconfig", "max_new_tokens") if config is not None else None
    if config is None or new is None:
        return
    limit_s, needed_s = _number(config, "request_timeout", REQUEST_S), new / TOKENS_PER_S
    if needed_s > limit_s:
        message = (
            f"an answer of {new:,.0f} tokens takes about {needed_s:,.0f} s at {TOKENS_PER_S:g} tokens a "
            "second, but a request is given up "
            f"after {limit_s:g} s"
        )
        yield _violation(
            "request_timeout", message, f"write rollout.request_timeout={-int(-needed_s * 2 // 100) * 100}"
        )


@RULES.warning(
    "TR449",
    "requests that are never repeated",
    why="rollout.request_retries counts all tries, the first one included (0 stands for the default, 3). A "
    "connection that breaks once, as while a server is restarted, fails the whole rollout.",
    fix="write 3, AReaL's default",
)
def never_repeated(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    retries = config.number("rollout", "request_retries") if config is not None else None
    if retries is not None and (retries < 0 or retries == 1):
        message = (
            "with a single try a request is never sent again"
            if retries == 1
            else f"with {retries:g} tries no request is ever sent"
        )
        yield _violation("request_retries", message)
