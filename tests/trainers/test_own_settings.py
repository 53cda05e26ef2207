"""A script that is told to resume by a setting is told so in the way in which its command sets others."""

import pytest

from prime_train.trainers.conventions.own_settings import settings_that_resume

GLOBALS = "init_from = 'scratch'\nexec(open('configurator.py').read())\nif init_from == 'resume':\n    load()\n"
FIELDS = "class Args:\n    resume: bool = False\n    resume_from_checkpoint: str | None = None\n    lr: float = 0.1\n"


@pytest.mark.parametrize(
    ("command", "text", "found"),
    [
        ("python train.py --device=cpu", GLOBALS, ("--init_from=resume",)),
        ("python train.py model.lr=1", GLOBALS, ("init_from=resume",)),
        ("python train.py", GLOBALS, ("--init_from resume",)),
        ("python train.py --lr 1", FIELDS, ("--resume", "--resume_from_checkpoint {checkpoint}")),
        ("python train.py --lr=1", FIELDS, ("--resume=True", "--resume_from_checkpoint={checkpoint}")),
        ("python train.py", "lr = None\nif mode == 'resume':\n    pass\n", ()),
        ("python train.py 'unclosed", GLOBALS, ("--init_from resume",)),
    ],
)
def test_a_setting_that_resumes_is_written_as_the_command_writes_its_own(
    command: str, text: str, found: tuple[str, ...]
) -> None:
    assert settings_that_resume(command, text) == found
