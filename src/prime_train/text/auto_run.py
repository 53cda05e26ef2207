"""The gate for names that a machine, a bundle or an archive hands over: files that some program runs or obeys
without being asked to.

Such a file does nothing while it is data. It acts once it lies on a disk where its program looks for it: git
runs what a `.git/config` names, direnv runs `.envrc`, editors run tasks, Python imports `sitecustomize`. So
whatever others hand over is laid down without these files, and who lays it down says which were left out, and
why. The content is not judged, and no other file is touched.

Names are compared as the most lenient disk would: case, characters that are ignored, dots and blanks at the
end, streams of NTFS and its short names make no difference.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

GIT = "git runs commands that such a file names"
VERSIONS = "a version control runs commands and hooks that it names"
HOOKS = "git and its helpers run hooks from it"
SHELL = "shells, and tools that read variables for them, run or obey it"
EDITOR = "editors and assistants run tasks from it"
CI = "a CI service runs it once it is pushed"
PYTHON = "Python runs it at every start"
START = "interpreters run it when they start there"
PACKAGES = "package managers and the desktop obey it"

_NAMES: Mapping[str, str] = {
    **dict.fromkeys((".git", ".gitattributes", ".gitmodules", ".gitconfig"), GIT),
    **dict.fromkeys(
        (".hg", ".hgrc", ".hgsub", ".jj", ".svn", ".sl", ".bzr", ".fslckout", ".fossil-settings"), VERSIONS
    ),
    **dict.fromkeys(
        (".githooks", ".husky", ".lefthook", ".lefthook.yml", "lefthook.yml", ".overcommit.yml"), HOOKS
    ),
    **dict.fromkeys(
        (
            ".lefthook.yaml",
            "lefthook.yaml",
            ".lefthook.toml",
            "lefthook.toml",
            ".lefthook-local.yml",
            "lefthook-local.yml",
        ),
        HOOKS,
    ),
    **dict.fromkeys(
        (".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml", "prek.toml"), HOOKS
    ),
    **dict.fromkeys(
        (".envrc", ".env", ".autoenv", ".autoenv.zsh", ".ssh", ".inputrc", ".direnv", ".devenv"), SHELL
    ),
    **dict.fromkeys((".mise", ".rtx.toml", ".tool-versions"), SHELL),
    **dict.fromkeys(
        (
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".profile",
            ".kshrc",
            ".cshrc",
        ),
        SHELL,
    ),
    **dict.fromkeys(
        (
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".tmux.conf",
            ".screenrc",
            ".gdbinit",
            ".lldbinit",
        ),
        SHELL,
    ),
    **dict.fromkeys(
        (
            ".tcshrc",
            ".login",
            ".logout",
            ".xprofile",
            ".xinitrc",
            ".xsession",
            ".sqliterc",
            ".psqlrc",
            ".wgetrc",
            ".curlrc",
        ),
        SHELL,
    ),
    **dict.fromkeys((".vscode", ".idea", ".vs", ".fleet", ".zed", ".cursor", ".claude", ".mcp.json"), EDITOR),
    **dict.fromkeys(
        (
            ".gemini",
            ".windsurf",
            ".kiro",
            ".codex",
            ".continue",
            ".roo",
            ".cline",
            ".amazonq",
            ".aider.conf.yml",
        ),
        EDITOR,
    ),
    **dict.fromkeys(
        (
            ".junie",
            ".trae",
            ".opencode",
            "opencode.json",
            "opencode.jsonc",
            ".crush.json",
            "crush.json",
            ".goosehints",
        ),
        EDITOR,
    ),
    **dict.fromkeys(
        (".cursorrules", ".windsurfrules", ".clinerules", ".roomodes", ".augment", ".qwen", ".factory"),
        EDITOR,
    ),
    **dict.fromkeys(
        (
            ".devcontainer",
            ".devcontainer.json",
            ".dir-locals.el",
            ".dir-locals-2.el",
            ".gitpod.yml",
            ".theia",
        ),
        EDITOR,
    ),
    **dict.fromkeys(
        (
            ".vimrc",
            "_vimrc",
            ".gvimrc",
            ".exrc",
            "_exrc",
            ".nvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".helix",
            ".kakrc",
            ".projectile",
        ),
        EDITOR,
    ),
    **dict.fromkeys(
        (
            ".vim",
            ".nvim",
            ".vimspector.json",
            ".luarc.json",
            ".luarc.jsonc",
            ".clangd",
            ".ccls",
            ".bsp",
            ".metals",
        ),
        EDITOR,
    ),
    **dict.fromkeys(
        (".pylintrc", "pylintrc", ".ctags", ".ctags.d", "rust-toolchain", "rust-toolchain.toml"), EDITOR
    ),
    **dict.fromkeys(
        (".github", ".gitea", ".forgejo", ".circleci", ".buildkite", ".gitlab-ci.yml", ".travis.yml"), CI
    ),
    **dict.fromkeys(
        (
            ".woodpecker",
            ".woodpecker.yml",
            ".drone.yml",
            ".cirrus.yml",
            ".appveyor.yml",
            "azure-pipelines.yml",
        ),
        CI,
    ),
    **dict.fromkeys(("pyvenv.cfg", ".pdbrc", ".pythonrc", ".pythonrc.py", ".pythonstartup"), PYTHON),
    **dict.fromkeys((".ipython", ".jupyter", "ipython_config.py"), PYTHON),
    **dict.fromkeys((".latexmkrc", "latexmkrc", ".gnuplot", "startup.m", "startup.jl"), START),
    **dict.fromkeys(
        (
            ".rprofile",
            ".renviron",
            ".rdata",
            ".octaverc",
            ".irbrc",
            ".pryrc",
            ".iex.exs",
            ".ghci",
            ".ocamlinit",
        ),
        START,
    ),
    **dict.fromkeys(
        (".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".cargo", ".netrc", ".pypirc"), PACKAGES
    ),
    **dict.fromkeys(
        (
            ".bazelrc",
            "user.bazelrc",
            ".bazeliskrc",
            ".mvn",
            ".buckconfig",
            ".buckconfig.local",
            ".pip",
            ".bunfig.toml",
        ),
        PACKAGES,
    ),
    **dict.fromkeys(
        (".yarn", ".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml", ".condarc", ".mambarc", ".gemrc", ".bundle"),
        PACKAGES,
    ),
    **dict.fromkeys(("autorun.inf", "desktop.ini", ".directory"), PACKAGES),
}
"""Names of files and folders. What is below such a folder is left out with it."""
_ENDINGS: Mapping[str, str] = {
    ".code-workspace": EDITOR,
    ".sublime-project": EDITOR,
    ".egg-link": PYTHON,
    ".lnk": PACKAGES,
    ".desktop": PACKAGES,
}
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\.?mise(\..+)?\.toml"), SHELL),
    (re.compile(r"\.?(eslint|prettier|stylelint|babel)(rc|\.config)\.[cm]?[jt]s"), EDITOR),
    (re.compile(r"jupyter_\w+_config\.(py|json)"), PYTHON),
)
"""Names of which a part is free."""
_IMPORTED = frozenset({"sitecustomize", "usercustomize"})
_SITES = frozenset({"site-packages", "dist-packages"})
"""Folders in which Python runs the lines of a `.pth` file. Elsewhere it is what torch saved, and belongs to
the checkpoint.
"""
_SHORT = re.compile(r"git~\d+|(gitmod|gitatt|gitcon)~\d+|gi[0-9a-f]{4}~\d+")
"""Short names of NTFS that stand for `.git` and its files."""
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\\x00-\\x1f\\x7f-\\x9f]"
)
"""Characters that disks or people do not see: what Unicode calls default ignorable, and control
characters.
"""


def is_git(path: str) -> bool:
    """Return whether a component of the path is `.git` in any disguise."""
    return any(_is_git(_plain(part)) for part in PurePosixPath(path).parts)


def auto_run(path: str) -> str | None:
    """Return why the file must not be laid down where people work, as a sentence without its full stop; None
    if nothing runs it.
    """
    parts = [_plain(part) for part in PurePosixPath(path).parts]
    return next(
        (
            why
            for at, part in enumerate(parts)
            if (why := _why(part, parts[at - 1] if at else "")) is not None
        ),
        None,
    )


def auto_run_files(paths: Iterable[str]) -> dict[str, str]:
    """Return those of the paths, which one party hands over together, that must not be laid down, each with
    the reason.

    Together files can be more than each alone: a folder with `HEAD`, `objects` and `refs` is a git repository
    whatever its name. Its `HEAD` is left out, without which git takes it for none.
    """
    every = list(paths)
    found = {path: why for path in every if (why := auto_run(path)) is not None}
    entries: dict[str, set[str]] = {}
    heads: dict[str, list[str]] = {}
    for path in every:
        parts = PurePosixPath(path).parts
        plain = [_plain(part) for part in parts]
        for depth in range(len(parts)):
            entries.setdefault("/".join(plain[:depth]), set()).add(plain[depth])
        if plain and plain[-1] == "head":
            heads.setdefault("/".join(plain[:-1]), []).append(path)
    bare = (head for folder, named in heads.items() if is_repository(entries[folder]) for head in named)
    return found | {head: GIT for head in bare if head not in found}


def is_repository(names: Iterable[str]) -> bool:
    """Return whether a folder with these entries is a git repository to git, whatever the folder is
    called.
    """
    plain = {_plain(name) for name in names}
    return "head" in plain and ("commondir" in plain or {"objects", "refs"} <= plain)


def summary(left: Mapping[str, str], shown_max: int = 5) -> str:
    """Return what was left out in one line: the number, the first names, the reasons. Names are as they were
    handed over, and have to be neutralized before they are shown.
    """
    names = list(left)
    more = f" and {len(names) - shown_max} more" if len(names) > shown_max else ""
    return f"{', '.join(names[:shown_max])}{more} ({'; '.join(dict.fromkeys(left.values()))})"


def _why(part: str, above: str) -> str | None:
    if _is_git(part):
        return GIT
    if part.partition(".")[0] in _IMPORTED or (above in _SITES and part.endswith(".pth")):
        return PYTHON
    if above == "mise" and part in ("config.toml", "conf.d"):
        return SHELL
    found = _NAMES.get(part) or next((why for ending, why in _ENDINGS.items() if part.endswith(ending)), None)
    return found or next((why for pattern, why in _PATTERNS if pattern.fullmatch(part)), None)


def _is_git(part: str) -> bool:
    return part == ".git" or _SHORT.fullmatch(part) is not None


def _plain(part: str) -> str:
    """Return the name as the most lenient disk compares it."""
    seen = _IGNORED.sub("", unicodedata.normalize("NFKC", part)).casefold()
    return seen.partition(":")[0].strip().rstrip(". ")
