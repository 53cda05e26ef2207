"""One call of the validators, in an isolated process: a config goes in, refusals come out."""

import json
import tempfile
from pathlib import Path

from prime_train.adapters.prime_rl_deep.cache import Kept
from prime_train.adapters.prime_rl_deep.isolation import HOME, walled
from prime_train.adapters.prime_rl_deep.process import run
from prime_train.core.config_tree import Plain
from prime_train.core.prime_rl.upstream import Refusal
from prime_train.core.text.redaction import masked
from prime_train.ports import PermanentError

_INSIDE = Path(__file__).with_name("inside.py")
FILE_BYTES_MAX = 16 * 2**20
"""Size limit in bytes of every file, including the outputs, which are on our disk."""
_START = (
    f"import resource, runpy, site, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_BYTES_MAX}, {FILE_BYTES_MAX})); "
    # code of the packages runs from here on
    "site.addsitedir(sys.argv[3]); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled", "DO_NOT_TRACK": "1"}


def ask(kept: Kept, config: Plain, limit_s: float, *, trusted: bool = False) -> tuple[Refusal, ...]:
    """Return what the validators refuse in `config`. Raises TemporaryError if there was no answer in time, PermanentError if there was none
    at all, or if code cannot be isolated here.

    `trusted`: run without isolation.
    """
    # The underlying interpreter: the environment's own would run files of its packages at start.
    python = kept.python.resolve()
    # Isolated and without site: no variable, folder or package of the user's is read.
    command = [str(python), "-I", "-B", "-S", "-c", _START, str(_INSIDE), str(kept.source), str(kept.packages)]
    if not trusted:
        command = walled(command, (python.parents[1], kept.folder.resolve(), _INSIDE))
    with tempfile.TemporaryDirectory() as home:
        environment, given = _environment(home if trusted else HOME), json.dumps(config)
        done = run(command, environment, limit_s, folder=Path(home), given=given, called="the check")
    try:
        said = json.loads(done.out)
        failure = str(said.get("failure") or "")
        found = tuple(Refusal(tuple(row["where"]), str(row["kind"]), str(row["text"])) for row in said.get("refusals", ()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PermanentError(f"they gave no answer (exit code {done.code}): {done.last_words}") from error
    if failure:
        raise PermanentError(f"they cannot be used: {masked(failure)}")
    return found


def _environment(home: str) -> dict[str, str]:
    plain = {"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "HF_HOME": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    return plain | _OFFLINE
