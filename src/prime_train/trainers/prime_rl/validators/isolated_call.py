"""Calls prime-rl's validators in an isolated process: a config goes in, their refusals come out."""

import json
import tempfile
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.spec.tree import Plain
from prime_train.spec.upstream import Refusal
from prime_train.text.redaction import redacted
from prime_train.trainers.prime_rl.validators.cache import CachedPackage
from prime_train.trainers.prime_rl.validators.isolation import HOME, walled
from prime_train.trainers.prime_rl.validators.process import run

_SCRIPT = Path(__file__).with_name("validator_script.py")
FILE_BYTES_MAX = 16 * 2**20
"""Size limit in bytes of every file that the process writes, including its outputs, which are on this machine's disk."""
_START = (
    f"import resource, runpy, site, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_BYTES_MAX}, {FILE_BYTES_MAX})); "
    # code of the packages runs from here on
    "site.addsitedir(sys.argv[3]); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled", "DO_NOT_TRACK": "1"}


def ask(package: CachedPackage, config: Plain, limit_s: float, *, trusted: bool = False) -> tuple[Refusal, ...]:
    """Return the validators' refusals of `config`. Raises TemporaryError if they did not answer in `limit_s` seconds, PermanentError if
    they failed without an answer or code cannot be isolated on this machine.

    `trusted`: run without isolation.
    """
    # The underlying interpreter: the environment's own would run files of its packages at start.
    python = package.python.resolve()
    # Isolated and without site: no variable, folder or package of the user's is read.
    command = [str(python), "-I", "-B", "-S", "-c", _START, str(_SCRIPT), str(package.source), str(package.packages)]
    if not trusted:
        command = walled(command, (python.parents[1], package.folder.resolve(), _SCRIPT))
    with tempfile.TemporaryDirectory() as home:
        environment, given = _environment(home if trusted else HOME), json.dumps(config)
        done = run(command, environment, limit_s, folder=Path(home), given=given, called="the check")
    try:
        answer = json.loads(done.out)
        failure = str(answer.get("failure") or "")
        found = tuple(Refusal(tuple(row["where"]), str(row["kind"]), str(row["text"])) for row in answer.get("refusals", ()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PermanentError(f"the validators gave no answer (exit code {done.code}): {done.last_words}") from error
    if failure:
        raise PermanentError(f"the validators cannot be used: {redacted(failure)}")
    return found


def _environment(home: str) -> dict[str, str]:
    plain = {"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "HF_HOME": home, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    return plain | _OFFLINE
