"""The position at which a refusal of prime-rl's own validators is shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.checks.engine import findings_with_ignored
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from prime_train.spec.upstream import Upstream, ValidatorError
from prime_train.trainers.prime_rl.rules.upstream import RULES
from tests.rules.prime_rl_given import GOOD, line


def reported(folder: Path, *refusals: ValidatorError) -> tuple[Finding, ...]:
    path = folder / "rl.toml"
    path.write_text(GOOD)
    (loaded,) = load_configs([path])
    assert loaded.subject is not None
    return findings_with_ignored(
        replace(loaded.subject, upstream=Upstream("1234567890", refusals)), rules=RULES
    )


@pytest.mark.parametrize(
    ("where", "kind", "text", "at", "name"),
    [
        (("trainer", "optim", "lr"), "less_than", "too high", "lr =", "trainer.optim.lr"),
        (
            ("orchestrator", "train", "source", 0, "name"),
            "x",
            "no",
            'name = "sums"',
            "orchestrator.train.source[0].name",
        ),
        (
            ("deployment", "single_node", "num_train_gpus"),
            "x",
            "no",
            "num_train_gpus",
            "deployment.num_train_gpus",
        ),
        (
            ("deployment", "single_node"),
            "value_error",
            "more than gpus_per_node (8)",
            "gpus_per_node",
            "deployment.single_node",
        ),
        (("seq_len", "constrained-int"), "x", "no", "seq_len", "seq_len.constrained-int"),
        (("trainer", "model", "seq_len"), "x", "no", "seq_len", "trainer.model.seq_len"),
        (("trainer", "novelty"), "missing", "Field required", "[trainer.model]", "trainer.novelty"),
        (
            ("orchestrator",),
            "value_error",
            "batch_size is not for trainer.optim.lr",
            "batch_size",
            "orchestrator",
        ),
        ((), "value_error", "seq. and trainer.model.cp do not fit", "cp =", "the config"),
        ((), "value_error", "nothing in particular", "", "the config"),
    ],
)
def test_it_stands_where_it_is_written(
    tmp_path: Path, where: tuple[str | int, ...], kind: str, text: str, at: str, name: str
) -> None:
    (found,) = reported(tmp_path, ValidatorError(where, kind, text))
    assert (found.line, found.message) == (line(GOOD, at), f"prime-rl 123456789 refuses {name}: {text}")


def test_a_key_is_marked_where_it_is_the_key_that_is_refused(tmp_path: Path) -> None:
    (found,) = reported(
        tmp_path,
        ValidatorError(("trainer", "optim", "lr"), "extra_forbidden", "Extra inputs are not permitted"),
    )
    assert (found.column, found.value) == (1, "1e-5")


def test_the_words_are_one_line_without_what_the_library_puts_before_them(tmp_path: Path) -> None:
    (found,) = reported(tmp_path, ValidatorError((), "value_error", "Value error, it is\n  too much."))
    assert found.message.endswith("refuses the config: it is too much")
