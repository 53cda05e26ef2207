"""The rule about models that are known to fail with a use, whatever the settings are (TR461)."""

from collections.abc import Iterator

from prime_train.estimate.models.known_failures import Use, failures_of
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.settings.of_subject import training_of

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
        case "verl":
            return config.text("actor_rollout_ref", "rollout", "name") == "vllm"
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
    training = training_of(subject)
    if training is None:
        return
    name = training.model.value
    for failure in failures_of(name, Use.VLLM_UPDATES):
        yield Violation(training.model.path, f"{name[:80]}: {failure.message}", document="trainer")
