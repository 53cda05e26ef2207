"""Arguments that may tell a script to resume, by its text: those that its names say, then guesses. Each is
tried, so a wrong one costs a start and no more.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from prime_train.rehearsal.options import BY_DASHES
from prime_train.spec.checkpoint_names import has_wildcards
from prime_train.trainers.conventions.own_scripts import resume_candidates

CHECKPOINT = "{checkpoint}"
_OPTION = re.compile(
    r"""["'](?P<option>--[A-Za-z][\w-]{0,60})["'](?P<rest>(?:[^()]|\([^()]{0,200}\)){0,300})"""
)
_SHORT = re.compile(r"""\(\s*["'](?P<option>-[A-Za-z])["']\s*(?P<rest>,(?:[^()]|\([^()]{0,200}\)){0,300})""")
_ALONE = re.compile(
    r"^-{1,2}(?:ckpt|checkpoint|load|snapshot|from|weights|init|restart|continue)$", re.IGNORECASE
)
_SAYS_RESUME = re.compile(
    r"resum|restart|continu|(?:load|start|restore)\w*\s+(?:\w+\s+){0,3}(?:checkpoint|ckpt|snapshot)",
    re.IGNORECASE,
)
_IS_SWITCH = re.compile(r"store_true|store_false|is_flag\s*=\s*True|BooleanOptionalAction")
_POSITIONAL = re.compile(
    r"""sys\.argv\[1|sys\.argv\[-1|argv\[1:|add_argument\(\s*["'](?:ckpt|checkpoint|resume|load|snapshot)""",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"""DEFINE_(?P<type>string|bool|boolean|integer)\(\s*["'](?P<name>\w{1,60})["']""",
)
_PLACES = re.compile(
    r"""^\s*(?P<assigned>[a-z]\w{0,60})\s*(?::(?P<type>[^=\n]{1,40}))?=\s*(?P<value>[^\n]{0,80})|"""
    r"""\[\s*["'](?P<key>[a-z][\w.]{0,60})["']\s*\]|\.get\(\s*["'](?P<asked>[a-z][\w.]{0,60})["']|"""
    r"""(?:cfg|config|conf|settings|opt|args)\.(?P<attribute>[a-z][\w.]{0,60})""",
    re.MULTILINE,
)
_SETTING = re.compile(
    r"resume|restore|(?:^|[_.])(?:load|continue)(?:[_.]|$)|ckpt_path|(?:init|start)_from", re.IGNORECASE
)
_BY_EQUALS = re.compile(r"""hydra|OmegaConf|split\(\s*["']=["']|partition\(\s*["']=["']\s*\)""")
# A number in such a dictionary need not be an option, but a wrong guess of what resumes costs a start alone.
_BY_DASHES = re.compile(
    BY_DASHES
    + r"""|LightningCLI|dict_to_arg\w*|add_argument\(\s*f["']--\{|add_argument\(\s*["']--["']\s*\+"""
)
_VARIABLES = re.compile(
    r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["'](?P<name>\w{0,60}(?:RESUME|RESTORE|CKPT|CHECKPOINT)\w{0,60})["']"""
)
_WORDS = ("resume", "latest", "last", "auto")


def arguments_to_try(texts: Sequence[str], folder: str) -> list[str]:
    """Return what may be added to the command, the likeliest first; nothing added comes before all of it.
    `folder`: that of the checkpoints.
    """
    sure = ["", *(one for text in texts for one in resume_candidates(text))]
    sure += [one for text in texts for one in _words(text)]
    guesses = [one for text in texts for one in _guesses(text)]
    all_of_them = [*sure, *guesses]
    if folder != "." and not has_wildcards(folder):
        # A script may look for the newest in the folder that it is given.
        all_of_them += [one.replace(CHECKPOINT, folder) for one in all_of_them if CHECKPOINT in one]
    return list(dict.fromkeys(all_of_them))


def variables_of(texts: Iterable[str]) -> list[str]:
    """Return the names of environment variables by which a script seems to be told to resume."""
    return list(dict.fromkeys(found["name"] for text in texts for found in _VARIABLES.finditer(text)))


def _guesses(text: str) -> Iterator[str]:
    for option in (*_OPTION.finditer(text), *_SHORT.finditer(text)):
        name, rest = option["option"], option["rest"].partition("add_argument")[0]
        if _ALONE.match(name) or _SAYS_RESUME.search(rest):
            yield name if _IS_SWITCH.search(rest) else f"{name} {CHECKPOINT}"
    for flag in _FLAG.finditer(text):
        if _SETTING.search(flag["name"]):
            yield f"--{flag['name']}" if flag["type"].startswith("bool") else f"--{flag['name']}={CHECKPOINT}"
    if _POSITIONAL.search(text):
        yield CHECKPOINT
    for sign, words in (("", _BY_EQUALS), ("--", _BY_DASHES)):
        if words.search(text):
            yield from (sign + one for one in _settings(text))


def _words(text: str) -> Iterator[str]:
    """Yield options with a word that stands for the newest checkpoint, by what the script compares them to, or
    what it says of them.
    """
    for option in _OPTION.finditer(text):
        name, rest = option["option"], option["rest"].partition("add_argument")[0]
        if _IS_SWITCH.search(rest) or not (_ALONE.match(name) or _SETTING.search(name)):
            continue
        attribute = name.lstrip("-").replace("-", "_")
        compared = re.findall(rf"""\b{attribute}\s*(?:==|in)\s*[("'\[]+(\w+)["']""", text)
        said = re.findall(r"\b(latest|last|auto)\b", rest)
        yield from (f"{name} {word}" for word in dict.fromkeys([*compared, *said]) if word in _WORDS)


def _settings(text: str) -> Iterator[str]:
    """Yield the settings that may say what to resume from, as `name=value`."""
    found: dict[str, str] = {}
    for place in _PLACES.finditer(text):
        name = place["assigned"] or place["key"] or place["asked"] or place["attribute"]
        if _SETTING.search(name) and not name.endswith("="):
            found.setdefault(name, "")
            found[name] += f" {place['type'] or ''} {place['value'] or ''}"
    for name, said in found.items():
        word = next((word for word in _WORDS if re.search(rf"\b{word}\b", said)), None)
        compared = next(
            (word for word in _WORDS if re.search(rf"""{name}\w*\s*==\s*["']{word}["']""", text)), None
        )
        if re.search(r"\bbool\b|\bFalse\b", said):
            yield f"{name}=true"
        elif word or compared:
            yield f"{name}={compared or word}"
        yield f"{name}={CHECKPOINT}"
