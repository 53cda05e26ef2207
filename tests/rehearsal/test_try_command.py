"""`prime-train try`, as a user calls it: a script that nobody wrote for it is proven, and its config runs."""

import json
import stat
from pathlib import Path

import pytest

from prime_train.spec.reader import read_config
from prime_train.spec.rehearsed import rehearsal_digest
from tests.cli.inside import Inside
from tests.cli.shell import Shell

SCRIPT = """\
import os, pickle, random, sys, time
os.makedirs("out", exist_ok=True)
state = {"step": 0, "x": 1.0, "rng": random.Random(7)}
if "--resume" in sys.argv:
    with open(sys.argv[sys.argv.index("--resume") + 1], "rb") as f:
        state = pickle.load(f)
    print("resumed from step", state["step"], flush=True)
while state["step"] < 5000:
    state["step"] += 1
    state["x"] *= 0.99 + 0.01 * state["rng"].random()
    time.sleep(0.03)
    print(f"step {state['step']}: loss {state['x']:.5f}", flush=True)
    if state["step"] % 20 == 0:
        with open(f"out/ck_{state['step']:05d}.pkl", "wb") as f:
            pickle.dump(state, f)
# parser.add_argument("--resume", default=None)
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write("mine.py", SCRIPT)
    return shell


def test_a_script_is_proven_and_its_config_may_be_launched(shell: Shell, tmp_path: Path) -> None:
    """The whole of it, with the dress rehearsal."""
    done = shell.run("try", "--save", "configs/my_first.yaml", "--json", "--", "python", "mine.py")
    said = json.loads(done.stdout)
    assert (done.returncode, said["proven"]) == (0, True), done.stderr
    read = read_config(tmp_path / "configs" / "my_first.yaml")
    assert read.spec is not None
    spec = read.spec
    assert spec.name == "my-first"  # by the file: the run is asked for by that name
    assert (spec.checkpoints.folder, spec.checkpoints.pattern) == ("out", "ck_{step}.pkl")
    assert spec.checkpoints.every_steps == 20
    assert spec.trainer.resume == "--resume {checkpoint}"
    assert spec.rehearsed == rehearsal_digest(spec)
    by_topic = {one["topic"]: one for one in said["conclusions"]}
    assert "the same as without the interruption" in by_topic["exact"]["text"]
    assert "lost the machine" in by_topic["with config"]["text"]
    page = Path(said["page"]).read_text(encoding="utf-8")
    assert "<svg" in page
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("home", "bucket")) == [
        "configs",
        "mine.py",
    ]


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    shell = Inside(tmp_path)
    shell.write("mine.py", SCRIPT)
    return shell


def test_a_config_that_says_it_right_is_noted_as_rehearsed_and_else_left_alone(
    inside: Inside, tmp_path: Path
) -> None:
    text = (
        "# my own words\n"
        "name: mine\n"
        "trainer:\n"
        "  command: python mine.py\n"
        "  resume: --resume {checkpoint}\n"
        "  progress: {kind: regex, pattern: 'step (?P<step>\\d+): loss (?P<loss>[\\d.]+)'}\n"
        'checkpoints: {folder: out, pattern: "ck_{step}.pkl"}\n'
        "budget: {usd: 5}\n"
    )
    inside.write("mine.yaml", text)
    assert "wrote mine.yaml" in inside.ok("try", "mine.yaml", "--no-dress")
    after = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert after.startswith(text)
    spec = read_config(tmp_path / "mine.yaml").spec
    assert spec is not None
    assert spec.rehearsed == rehearsal_digest(spec)


def test_a_config_that_says_otherwise_is_told_what_was_seen_and_not_changed(
    inside: Inside, tmp_path: Path
) -> None:
    text = "name: mine\ntrainer: {command: python mine.py}\nbudget: {usd: 5}\n"
    inside.write("mine.yaml", text)
    said = inside.ok("try", "mine.yaml", "--no-dress")
    assert "checkpoints.pattern is not in the config; found: 'ck_{step}.pkl'" in said
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == text


def test_a_script_that_cannot_be_started_is_told_so(inside: Inside) -> None:
    inside.write("broken.py", "import no_such_module_at_all\n")
    done = inside.run("try", "--", "python", "broken.py")
    assert done.returncode == 1
    assert "No module named" in done.stdout
    assert "activate the environment" in done.stdout


def test_the_home_that_it_makes_is_private(inside: Inside, tmp_path: Path) -> None:
    inside.write("broken.py", "import no_such_module_at_all\n")
    home = tmp_path / "new home"
    inside.run("try", "--", "python", "broken.py", PRIME_TRAIN_HOME=str(home))
    assert (home / "rehearsals" / "broken.html").is_file()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("try",), "give either a config or a command"),
        (("try", "missing.yaml"), "missing.yaml"),
        (("try", "--save", "mine.py", "--", "python", "mine.py"), "mine.py exists already"),
        (("try", "--save", "mine.py/new.yaml", "--", "python", "mine.py"), "mine.py is no folder"),
        (("try", "--out", "mine.py/page.html", "--", "python", "mine.py"), "mine.py is no folder"),
        (("try", "--seconds", "1", "--", "python", "mine.py"), "--seconds"),
        (("try", "--", " "), "no command was given"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    inside: Inside, arguments: tuple[str, ...], said: str
) -> None:
    done = inside.run(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stdout + done.stderr


def test_what_was_found_is_told_though_neither_page_nor_config_can_be_written(
    inside: Inside, tmp_path: Path
) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "new.yaml").symlink_to("no-such-folder/new.yaml")
    done = inside.run("try", "--no-dress", "--save", "new.yaml", "--out", "page", "--", "python", "mine.py")
    assert "proven" in done.stdout
    assert "pattern: ck_{step}.pkl" in done.stdout
    assert "page:" not in done.stdout
    assert "no page was written" in done.stderr
    assert "the config was not written" in done.stderr
    assert done.returncode == 2
