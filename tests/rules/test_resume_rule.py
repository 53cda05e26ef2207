"""What `validate` says of a script that saves and is not told how to resume."""

from pathlib import Path

import pytest

from prime_train.checks.validate import validate
from prime_train.spec.finding import Finding

FLAG = 'p.add_argument("--resume", default="")'
WORD = 'p.add_argument("--init_from", default="scratch", choices=["scratch", "resume"])'
SWITCH = "p.add_argument('--resume', action='store_true')"
EPOCH = '@click.option("--resume-epoch", type=int)'
PRETRAINED = 'p.add_argument("--load_pretrained")\np.add_argument("--data")'
MAKES_DATA = 'if os.path.exists("meta.pkl"):\n    meta = pickle.load(open("meta.pkl", "rb"))'


def found(folder: Path, script: str, command: str = "python train.py") -> list[Finding]:
    """Return what is said of a script's resume."""
    (folder / "train.py").write_text(script)
    (folder / "run.yaml").write_text(
        f"name: x\ntrainer:\n  command: '{command}'\n  code: {{folder: {folder}}}\n"
        "checkpoints: {folder: out, pattern: 'ckpt-{step}.pt', every_steps: 100}\nbudget: {usd: 10}\n"
    )
    return [finding for finding in validate([folder / "run.yaml"], {}).findings if finding.code == "RE511"]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("", "--resume {checkpoint}"),
        (FLAG, "--resume {checkpoint}"),
        (WORD, "--init_from resume"),
        (SWITCH, "--resume"),
        (EPOCH, "--resume-epoch {epoch}"),
        (PRETRAINED, "--resume {checkpoint}"),
        (MAKES_DATA, "--resume {checkpoint}"),
    ],
)
def test_a_script_that_is_not_told_to_resume_is_warned_of_with_the_line_to_write(
    tmp_path: Path, script: str, line: str
) -> None:
    (finding,) = found(tmp_path, script)
    assert (finding.severity, finding.line) == ("warning", 3)
    assert f"trainer: {{resume: '{line}'}}" in finding.fix
    assert "trainer: {resume: ''}" in finding.fix


@pytest.mark.parametrize(
    "script",
    [
        "p.add_argument('--resume-step', type=int)",
        "last = get_last_checkpoint(args.output_dir)\ntrainer.train(resume_from_checkpoint=last)",
        "paths = sorted(glob('out/ckpt-*.pt'))\nif paths:\n    state = torch.load(paths[-1])\n    "
        "print('resuming')",
    ],
)
def test_a_script_that_finds_its_checkpoint_is_left_alone(tmp_path: Path, script: str) -> None:
    assert found(tmp_path, script) == []


def test_a_script_that_is_told_to_resume_at_each_start_is_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path, FLAG, "python train.py --resume latest") == []
    assert len(found(tmp_path, FLAG, "python train.py --resume none")) == 1
