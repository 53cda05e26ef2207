"""What a trainer and its tracker are told of the run from which theirs was started."""

from prime_agent.trainer.environment import lineage_variables
from prime_train.runs.wire import Bootstrap
from prime_train.trainers.of_spec import trainer_for
from tests.builders import RUN_ID, spec

PLACES = "first-1@20, older-1@10"


def variables(started_from: str, **changes: object) -> dict[str, str]:
    job = Bootstrap(
        run=RUN_ID, attempt=1, spec=spec(**changes), bucket_url="file:///b", started_from=started_from
    )
    return lineage_variables(job, trainer_for(job.spec).environment(job.spec, attempt=1, run_id=RUN_ID))


def test_a_run_that_starts_from_step_0_has_no_variables() -> None:
    assert variables("", wandb={"project": "p"}) == {}


def test_the_trainer_gets_the_lineage_and_the_notes_of_its_run_end_with_it() -> None:
    assert variables(PLACES) == {"PRIME_TRAIN_STARTED_FROM": PLACES}
    found = variables(PLACES, wandb={"project": "p"})
    assert found["WANDB_NOTES"].startswith(f"{RUN_ID}, a run of prime-train")
    assert found["WANDB_NOTES"].endswith(f"; started from {PLACES}")


def test_notes_of_the_config_are_left_alone() -> None:
    assert "WANDB_NOTES" not in variables(PLACES, wandb={"project": "p"}, environment={"WANDB_NOTES": "mine"})
