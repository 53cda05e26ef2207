"""`prime-train validate --deep`: refusals of prime-rl's own validators are reported like all other findings,
and so are reasons why they cannot run.
"""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.inside import Inside
from tests.fakes.prime_rl_configs import UPSTREAM, Repository, has_walls
from tests.rules.prime_rl_given import GOOD, SPEC, changed, line

DECAY = ("lr = 1e-5", "lr = 1e-5\nweight_decay = 0.9")
"""A setting that the table accepts, and that the version in the repository refuses."""
SECRET = "hf_" + "x" * 30


@dataclass(frozen=True)
class Deep:
    """Calls of `validate --deep` that find prime-rl's repository in a folder, and its newest commit in the
    cache.
    """

    shell: Inside
    repository: Repository
    env: dict[str, str]

    def run(self, *args: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return self.shell.run(
            "validate", "--deep" if has_walls() else "--deep=trust", *args, **{**self.env, **env}
        )

    def bare(self, *changes: tuple[str, str]) -> "subprocess.CompletedProcess[str]":
        self.shell.write("rl.toml", changed(GOOD, *changes))
        return self.run("rl.toml", "--prime-rl-ref", self.repository.commit)

    def of_run(self, *changes: tuple[str, str], ref: str = "") -> "subprocess.CompletedProcess[str]":
        spec = SPEC.format(ref=ref or self.repository.commit, folder=".").replace(
            "  code:", "    # more\n  code:"
        )
        self.shell.write("run.yaml", changed(spec, *changes))
        return self.run("run.yaml", "--json")


@pytest.fixture
def deep(prime_rl_repository: Repository, prime_rl_cache: Path, tmp_path: Path) -> Deep:
    caches = prime_rl_cache.parents[1]
    return Deep(Inside(tmp_path), prime_rl_repository, prime_rl_repository.env(tmp_path / "own", caches))


def rows(done: "subprocess.CompletedProcess[str]", code: str) -> list[tuple[str, int, str]]:
    assert done.stdout, done.stderr
    return [
        (row["file"], row["line"], row["message"]) for row in json.loads(done.stdout) if row["code"] == code
    ]


def test_what_they_take_is_called_ok_and_git_is_not_called_for_what_is_kept(deep: Deep) -> None:
    deep.shell.write("bin/none", "")
    if has_walls():
        (deep.shell.here / "bin" / "bwrap").symlink_to(str(shutil.which("bwrap")))
    deep.shell.write("rl.toml", GOOD)
    done = deep.run(
        "rl.toml", "--prime-rl-ref", deep.repository.commit[:10], PATH=str(deep.shell.here / "bin")
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "rl.toml: ok\n", "")


def test_without_walls_it_is_refused_and_with_trust_it_is_not(deep: Deep) -> None:
    deep.shell.write("bin/none", "")
    deep.shell.write("rl.toml", GOOD)
    given = ("rl.toml", "--prime-rl-ref", deep.repository.commit)
    env = {**deep.env, "PATH": str(deep.shell.here / "bin")}
    refused = deep.shell.run("validate", "--deep", *given, **env)
    assert (refused.returncode, "--deep=trust" in refused.stdout) == (4, True), refused.stdout
    trusted = deep.shell.run("validate", "--deep=trust", *given, **env)
    assert (trusted.returncode, trusted.stdout) == (0, "rl.toml: ok\n"), trusted.stderr
    unusual = deep.shell.run("validate", "--deep=trusted", "rl.toml")
    assert (unusual.returncode, "write --deep, or --deep=trust" in unusual.stderr) == (2, True), (
        unusual.stderr
    )


def test_a_commit_of_a_fork_is_an_error_of_the_spec(deep: Deep) -> None:
    deep.shell.write("rl.toml", GOOD)
    done = deep.of_run(ref=deep.repository.fork)
    assert done.returncode == 1
    assert rows(done, "PR392")


def test_what_they_refuse_is_an_error_at_its_line_in_their_words(deep: Deep) -> None:
    done = deep.bare(DECAY)
    at = line(changed(GOOD, DECAY), "weight_decay")
    assert done.returncode == 1
    assert (
        f"rl.toml:{at}:16: error PR390: prime-rl {deep.repository.commit[:9]} refuses "
        "trainer.optim.weight_decay: " in done.stdout
    )
    assert "less than or equal to 0.5" in done.stdout
    assert "weight_decay = 0.9\n" in done.stdout
    assert "1 finding in 1 file" in done.stderr


@pytest.mark.parametrize(
    ("change", "at"),
    [
        (("lr = 1e-5", "lr = 1e-2"), "max_steps"),
        (("num_infer_gpus = 6", "num_infer_gpus = 6\ntype = 'both'"), "[deployment]"),
        (('name = "arithmetic"\n\n[model]', 'name = "prints"\n\n[model]'), "[run]"),
    ],
    ids=["of-a-whole", "of-alternatives", "of-a-section"],
)
def test_what_is_reported_of_a_section_stands_at_the_first_setting_it_names_or_at_its_name(
    deep: Deep, change: tuple[str, str], at: str
) -> None:
    assert f"rl.toml:{line(GOOD, at)}:" in deep.bare(change).stdout.partition(": error PR390: ")[0]


def test_what_is_reported_at_a_line_already_is_not_reported_twice(deep: Deep) -> None:
    done = deep.bare(("batch_size = 256", "batch_size = 100"))
    assert done.returncode == 1
    assert "PR390" not in done.stdout
    assert done.stdout.count("error PR") == 1
    kept = deep.bare(("batch_size = 256", "batch_size = 100  # prime-train: ignore[PR351] meant"))
    assert "error PR390" in kept.stdout


def test_it_is_found_where_it_is_written_in_an_include_or_in_the_run_itself(deep: Deep) -> None:
    deep.shell.write("rl.toml", GOOD)
    deep.shell.write("over.toml", "# laid over it\n[trainer.optim]\nweight_decay = 0.9\n")
    over = "    overrides:\n      - '@'\n      - over.toml\n"
    ((file, at, _),) = rows(deep.of_run(("    # more\n", over)), "PR390")
    assert (file, at) == ("over.toml", 3)
    given = "    overrides:\n      - --trainer.optim.weight-decay\n      - '0.9'\n"
    ((file, at, _),) = rows(deep.of_run(("    # more\n", given)), "PR390")
    text = deep.shell.here.joinpath("run.yaml").read_text()
    assert (file, at) == ("run.yaml", line(text, "- '0.9'"))


def test_of_another_version_its_own_validators_have_the_last_word(deep: Deep) -> None:
    deep.shell.write("rl.toml", changed(GOOD, ("[trainer.optim]", "[trainer.optim]\nnovelty = 1")))
    assert json.loads(deep.of_run().stdout) == []
    plainly = deep.shell.run("validate", "run.yaml")
    assert "PR307" in plainly.stdout
    assert "PR308" in plainly.stdout


def test_a_commit_that_prime_rl_does_not_have_is_an_error_of_the_spec(deep: Deep) -> None:
    deep.shell.write("rl.toml", GOOD)
    done = deep.of_run(ref="a1" * 20)
    ((file, at, message),) = rows(done, "PR392")
    assert (done.returncode, file, message) == (
        1,
        "run.yaml",
        f"no branch or tag of prime-rl contains the commit {'a1' * 20}",
    )
    assert at == line(deep.shell.here.joinpath("run.yaml").read_text(), "ref:")


@pytest.mark.parametrize(("broken", "code"), [(False, 3), (True, 1)], ids=["good", "faulty"])
def test_where_it_cannot_be_reached_the_rest_is_reported_and_the_exit_code_says_so(
    deep: Deep, broken: bool, code: int
) -> None:
    (Path(deep.env["HOME"]) / ".gitconfig").write_text(f'[url "file:///nowhere"]\n\tinsteadOf = {UPSTREAM}\n')
    deep.shell.write("rl.toml", changed(GOOD, ("lr = 1e-5", "lrr = 1e-5")) if broken else GOOD)
    deep.shell.write("other.toml", GOOD)
    done = deep.run("rl.toml", "other.toml", XDG_CACHE_HOME=str(deep.shell.here / "empty"))
    assert done.returncode == code
    assert done.stdout.count("warning PR391: prime-rl's own validators did not run: ") == 2
    assert ("error PR301" in done.stdout) == broken
    assert done.stderr.count("fetching") == 1


def test_without_git_it_says_what_is_missing(deep: Deep) -> None:
    deep.shell.write("rl.toml", GOOD)
    deep.shell.write("bin/none", "")
    done = deep.run(
        "rl.toml", PATH=str(deep.shell.here / "bin"), XDG_CACHE_HOME=str(deep.shell.here / "empty")
    )
    assert done.returncode == 4
    assert "git cannot be started" in done.stdout


def test_a_secret_is_not_handed_to_them_and_so_not_repeated(deep: Deep) -> None:
    done = deep.bare(('name = "arithmetic"\n\n[model]', f'name = "{SECRET}"\ndir = 5\n\n[model]'), DECAY)
    assert "PR390" in done.stdout
    assert "PT020" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_a_part_of_a_config_is_not_queried(deep: Deep) -> None:
    deep.shell.write("part.toml", "[trainer.optim]\nlr = 1e-5\n")
    done = deep.run("part.toml", "--prime-rl-ref", deep.repository.commit)
    assert (done.returncode, done.stdout) == (0, "part.toml: ok\n")
    assert "not a complete prime-rl config" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [(("--prime-rl-ref", "main", "--deep"), "is not a commit"), (("--prime-rl-ref", "1" * 40), "add --deep")],
    ids=["branch", "alone"],
)
def test_a_wish_that_makes_no_sense_is_refused(deep: Deep, args: tuple[str, ...], words: str) -> None:
    deep.shell.write("rl.toml", GOOD)
    done = deep.shell.run("validate", "rl.toml", *args)
    assert done.returncode == 2
    assert words in done.stderr


def test_without_it_nothing_is_fetched_or_looked_up(deep: Deep) -> None:
    deep.shell.write("rl.toml", GOOD)
    caches = deep.shell.here / "empty"
    assert (
        deep.shell.run("validate", "rl.toml", **{**deep.env, "XDG_CACHE_HOME": str(caches)}).returncode == 0
    )
    assert not caches.exists()
