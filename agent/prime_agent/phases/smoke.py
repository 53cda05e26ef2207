"""The short test run that must succeed before training starts."""

from prime_agent.phases.phase import Ended, PhaseError, Shell
from prime_agent.trainer.progress_follower import Follower
from prime_train.core.causes import Cause
from prime_train.core.spec import RunSpec, SmokeSpec
from prime_train.trainers import trainer_for


def smoke(spec: RunSpec, test: SmokeSpec, shell: Shell) -> None:
    """Run the smoke test. Raises PhaseError if it fails, takes too long or does not reach its step, and Called if it is cancelled."""
    reached = _Reached(spec)
    file = spec.trainer.progress.file
    if file is None:
        ended = shell.run(test.command, name="smoke", timeout_s=test.timeout_s, on_lines=reached.read)
    else:
        follower = Follower(shell.cwd / file)
        reached.ignore(follower.skip_present())
        ended = shell.run(test.command, name="smoke", timeout_s=test.timeout_s)
        reached.read([*follower.read_new(), *follower.rest()])
    wrong = _wrong(test, ended, reached.step)
    if wrong is not None:
        raise PhaseError(Cause.SMOKE_FAILED, f"`{test.command}` {wrong}", log_tail=ended.tail)


class _Reached:
    """The highest step so far, parsed like the trainer's progress."""

    def __init__(self, spec: RunSpec) -> None:
        self.step = 0
        self._reader = trainer_for(spec).reader(spec)

    def read(self, lines: list[str]) -> None:
        for line in lines:
            seen = self._reader.read(line)
            self.step = max(self.step, seen.step if seen is not None else 0)

    def ignore(self, lines: list[str]) -> None:
        """Read lines that were written before the test; only a header among them counts."""
        for line in lines:
            self._reader.read(line)


def _wrong(test: SmokeSpec, ended: Ended, step: int) -> str | None:
    if ended.timed_out:
        return f"did not end within {test.timeout_s} s"
    if ended.code != 0:
        return f"ended with code {ended.code}"
    if test.steps is not None and step < test.steps:
        return f"reached step {step} of {test.steps}"
    return None
