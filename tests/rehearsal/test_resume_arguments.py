"""What is tried to make a script resume, by its text."""

import pytest

from prime_train.rehearsal.resume_arguments import arguments_to_try, variables_of

CHECKPOINT = "{checkpoint}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('p.add_argument("--resume", default=None)', f"--resume {CHECKPOINT}"),
        ('p.add_argument("--resume", action="store_true")', "--resume"),
        ('p.add_argument("--resume_from_step", type=int, default=-1)', "--resume_from_step {step}"),
        ('p.add_argument("--init_from", choices=["scratch", "resume"])', "--init_from resume"),
        ('p.add_argument("--load", default=None)', "--load out/ck"),
        ('p.add_argument("--ckpt", default=None)', f"--ckpt {CHECKPOINT}"),
        ('p.add_argument("-c", help="checkpoint to resume from", type=str)', f"-c {CHECKPOINT}"),
        ('p.add_argument("--model_file", help="continue training from this")', f"--model_file {CHECKPOINT}"),
        ('p.add_argument("checkpoint", nargs="?")', CHECKPOINT),
        ("if len(sys.argv) > 1: load(sys.argv[1])", CHECKPOINT),
        ('flags.DEFINE_string("restore_path", None, "where from")', f"--restore_path={CHECKPOINT}"),
        ('flags.DEFINE_bool("resume", False, "go on")', "--resume"),
        ("exec(open('configurator.py').read())\ninit_from = 'scratch' # or 'resume'", "--init_from=resume"),
        (
            "@hydra.main()\ndef main(cfg):\n    load(cfg.trainer.resume_from)",
            f"trainer.resume_from={CHECKPOINT}",
        ),
        ("OmegaConf.from_cli()\nresume = cfg.resume", f"resume={CHECKPOINT}"),
        ("class A:\n    resume: bool = False\ndraccus.wrap()", "--resume=true"),
        (
            'defaults = dict(\n    resume_from="",\n)\nadd_dict_to_argparser(parser, defaults)',
            f"--resume_from={CHECKPOINT}",
        ),
        (
            'parser.add_argument(f"--{key}", default=value)\nsettings = dict(\n    resume_file="",\n)',
            f"--resume_file={CHECKPOINT}",
        ),
        ("tyro.cli(A)\nclass A:\n    resume_from: str | None = None", f"--resume_from={CHECKPOINT}"),
    ],
)
def test_what_a_script_may_be_told_is_tried(text: str, wanted: str) -> None:
    tried = arguments_to_try([text], "out/ck")

    assert tried[0] == ""
    assert wanted in tried[:6]


@pytest.mark.parametrize(
    "text",
    [
        'p.add_argument("--pretrained", default=None, help="weights of a teacher")',
        'p.add_argument("--data", help="folder of the data")',
        'p.add_argument("--batch-size", type=int)',
        "print('resume')",
    ],
)
def test_what_has_nothing_to_do_with_it_is_not_tried(text: str) -> None:
    assert arguments_to_try([text], "out/ck") == [""]


def test_a_folder_whose_name_changes_is_no_argument() -> None:
    tried = arguments_to_try(['p.add_argument("--load", default=None)'], "runs/*/ck")

    assert tried == ["", f"--load {CHECKPOINT}"]


def test_variables_that_say_what_to_resume_from_are_named() -> None:
    text = 'os.environ.get("RESUME_FROM"); os.environ["HOME"]; os.getenv("CKPT_PATH", "")'

    assert variables_of([text]) == ["RESUME_FROM", "CKPT_PATH"]
