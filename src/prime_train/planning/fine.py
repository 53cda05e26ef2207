"""What was checked of a config and is fine, for people who want to see more than the absence of findings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prime_train.checks.all_rules import by_code, rules_for
from prime_train.checks.memory_plan import model_name, plan_of
from prime_train.configs.loader import LoadedConfig
from prime_train.estimate.memory.phases import GIB
from prime_train.planning.memory_report import memory_report
from prime_train.planning.models import registry
from prime_train.planning.suitability import CheckResult, Known, Wanted, checks
from prime_train.runs.forecast import Fit
from prime_train.spec.finding import Finding
from prime_train.spec.rule import Subject

MODEL, MEMORY = "model", "memory"
_OF_MODEL = {"access": "access", "kind": "kind", "vLLM": "server", "context": "lengths"}
"""Checks of a model that are told, by their names there, with the names here."""


@dataclass(frozen=True)
class Fine:
    """A point that was checked. `text`: what was found."""

    name: str
    text: str


def fine_points(loaded: LoadedConfig, findings: Sequence[Finding]) -> tuple[Fine, ...]:
    """Return what was checked of the config and is fine. `findings`: all that were made on it; what they are
    about is left out.
    """
    found = [point for title, subject in loaded.judged for point in _of_subject(subject, title, findings)]
    return tuple(dict.fromkeys(found))


def _of_subject(subject: Subject, variant: str, findings: Sequence[Finding]) -> Iterator[Fine]:
    at_fault = {rule.topic for finding in findings if (rule := by_code().get(finding.code)) is not None}
    if subject.spec is not None:
        yield Fine("keys", "all are known, and all values are possible")
    yield from _of_model(subject)
    if MEMORY not in at_fault:
        yield from _of_memory(subject, variant)
    counts = Counter(rule.topic for rule in rules_for(subject))
    yield from (
        Fine(topic, f"{count} {'rule' if count == 1 else 'rules'}")
        for topic, count in counts.items()
        if topic not in at_fault
    )


def _of_model(subject: Subject) -> Iterator[Fine]:
    name, plan = model_name(subject), plan_of(subject)
    ours = registry()
    entry = ours.entry(name) if name else None
    if entry is None:
        return
    yield Fine(MODEL, f"{entry.id} exists (registry of {entry.read})")
    wanted = Wanted(seq_len=plan.training.seq_len if plan is not None and subject.format == "prime_rl" else 0)
    for check in checks(Known.of(entry), wanted, ours.vllm):
        if check.result is CheckResult.YES and check.name in _OF_MODEL:
            asked = (
                f", of which {wanted.seq_len:,} are used"
                if check.name == "context" and wanted.seq_len
                else ""
            )
            yield Fine(_OF_MODEL[check.name], f"{check.message}{asked}")


def _of_memory(subject: Subject, variant: str) -> Iterator[Fine]:
    plan, spec = plan_of(subject), subject.spec
    if plan is None or spec is None:
        return
    for one in (report := memory_report("", plan, spec.hardware.gpus)).kinds:
        if one.fit is Fit.YES and (one.share is None or one.serves >= 1):
            served = (
                f", and the server holds {one.serves:.0f} sequences at once" if one.share is not None else ""
            )
            where = f" ({variant})" if variant else ""
            need = f"{report.need.low / GIB:.0f} to {report.need.high / GIB:.0f}"
            yield Fine(
                MEMORY, f"{one.kind}{where}: the trainer needs {need} of {one.left / GIB:.0f} GiB{served}"
            )
