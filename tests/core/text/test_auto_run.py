"""The names that no machine, bundle or archive may lay down where people work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.text.auto_run import auto_run, auto_run_files, is_git, summary

DISGUISES = (
    *(
        ".git",
        ".GIT",
        ".Git",
        ".git ",
        ".git.",
        ".git. .",
        "git~1",
        "GIT~12",
        "gi7eba~1",
        ".g\u200cit",
        "\ufeff.git",
        ".gi\u00adt",
    ),
    *(".git::$INDEX_ALLOCATION", ".git:stream", "\uff0egit", ".g\u034fit", ".git\u00a0", ".git\u0007"),
)


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("path", ["{}/config", "res/{}/hooks/pre-commit", "a/b/c/{}"])
def test_no_disguise_of_a_git_folder_passes(name: str, path: str) -> None:
    assert is_git(path.format(name))
    assert auto_run(path.format(name)) is not None


@pytest.mark.parametrize(
    "path",
    [
        *(
            "res/.envrc",
            ".env",
            ".vscode/tasks.json",
            "a/.idea/workspace.xml",
            ".github/workflows/ci.yml",
            ".pre-commit-config.yaml",
        ),
        *(
            ".gitattributes",
            "x/.gitmodules",
            ".gitconfig",
            "sitecustomize.py",
            "lib/usercustomize/__init__.py",
            "venv/pyvenv.cfg",
        ),
        *(
            "lib/python3.11/site-packages/x.pth",
            ".husky/pre-commit",
            ".bashrc",
            ".ENVRC",
            ".envrc.",
            "run.code-workspace",
        ),
        *(
            "autorun.inf",
            ".npmrc",
            ".ssh/authorized_keys",
            ".gitlab-ci.yml",
            ".devcontainer/devcontainer.json",
            "sitecustomize.pyc",
        ),
        ".claude/settings.json",
        *(
            ".hg/hgrc",
            ".jj/repo/config.toml",
            ".svn/wc.db",
            ".Rprofile",
            ".Renviron",
            ".RData",
            ".pdbrc",
            ".helix/languages.toml",
        ),
        *(
            ".bazelrc",
            "user.bazelrc",
            ".mise/config.toml",
            "mise.toml",
            "mise.local.toml",
            ".config/mise.production.toml",
            "mise/config.toml",
        ),
        *(
            ".gemini/settings.json",
            ".windsurf/rules.md",
            ".kiro/hooks/a.kiro.hook",
            ".codex/config.toml",
            "prettier.config.mjs",
            ".bsp/x.json",
        ),
        *(
            "jupyter_server_config.py",
            ".ipython/profile_default/startup/a.py",
            "rust-toolchain.toml",
            ".latexmkrc",
            ".mvn/jvm.config",
        ),
    ],
)
def test_files_that_run_by_themselves_do_not_pass(path: str) -> None:
    assert auto_run(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        *(
            "step_10/model.pth",
            "weights/last.pth",
            "model.safetensors",
            "git",
            "legit/x",
            "gitlab.txt",
            "my.git/x",
            "repo.git/notes",
        ),
        *(
            "HEAD",
            "head/weights.bin",
            "objects/a",
            ".gitignore",
            ".metadata",
            "out/.complete",
            "-rf",
            "config.json",
            "trainer_state.json",
        ),
        *(
            "compromise.toml",
            "mise/rows.csv",
            "config.toml",
            "profile.json",
            "eslint.txt",
            "jupyter.ipynb",
            "bazel/x",
            "hg/x",
            "startup.log",
        ),
        *(
            "__0_0.distcp",
            ".metadata.json",
            "git~x",
            "digit~1",
            "env/params.json",
            "github/x",
            "tokenizer.model",
            "\u00fcn\u00ef.bin",
        ),
    ],
)
def test_what_trainers_save_passes(path: str) -> None:
    assert auto_run(path) is None
    assert auto_run_files([path]) == {}


def test_a_repository_without_the_name_of_one_loses_its_head() -> None:
    bare = ["res/HEAD", "res/config", "res/objects/x", "res/refs/x", "res/results.json"]
    assert set(auto_run_files(bare)) == {"res/HEAD"}
    assert set(auto_run_files(["HEAD", "config", "Objects/x", "refs/x"])) == {"HEAD"}
    assert set(auto_run_files(["w/HEAD", "w/commondir"])) == {"w/HEAD"}
    assert auto_run_files(["a/HEAD", "b/objects/x", "b/refs/x"]) == {}


@given(st.lists(st.text(max_size=12), max_size=4).map("/".join))
def test_any_name_gets_one_answer(path: str) -> None:
    assert (auto_run(path) is not None) == (path in auto_run_files([path]))


def test_the_summary_counts_and_gives_each_reason_once() -> None:
    text = summary(auto_run_files([f"{at}/.git/config" for at in range(9)]))
    assert (
        text
        == "0/.git/config, 1/.git/config, 2/.git/config, 3/.git/config, 4/.git/config and 4 more (git runs "
        "commands that such a file names)"
    )
