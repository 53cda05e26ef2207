"""The rule about models that are known to fail with a use, whatever the settings are (TR461)."""

from collections.abc import Iterator

from prime_train.checks.memory_plan import model_name
from prime_train.estimate.models.known_failures import Use, failures_of
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.prime_rl.conventions import KIND
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

_MODEL = {"areal": ("actor", "path"), "hf": ("model_name_or_path",)}


RULES = Rules("models", requires="trainer")


def _updates_a_server(subject: Subject) -> bool:
    """Return whether the training sends new weights to an inference server."""
    config = subject.trainer
    if config is None:
        return False
    match subject.format:
        case "prime_rl":
            return True
        case "areal":
            return (config.text("rollout", "backend") or "").startswith("vllm")
        case "hf":
            return config.value("use_vllm") is True
        case _:
            return False


@RULES.error(
    "TR461",
    "a model that is known to fail with this trainer",
    why="Others have tried it: the run ends after the machine, its set-up and the download of the model were "
    "paid for.",
    fix="take another model, or ignore this with the version that mends it as the reason",
)
def known_to_fail(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is None or not _updates_a_server(subject):
        return
    name = model_name(subject)
    for failure in failures_of(name, Use.VLLM_UPDATES):
        yield Violation(_place(subject), f"{name[:80]}: {failure.message}", document="trainer")


def _place(subject: Subject) -> tuple[str, ...]:
    if subject.format == KIND and subject.trainer is not None:
        return tuple(
            str(step)
            for step in ReceivedConfig(subject.trainer.root, subject.spec).place("trainer.model.name")
        )
    return _MODEL.get(subject.format, ())
