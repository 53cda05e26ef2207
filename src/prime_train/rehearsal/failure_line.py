"""The line of a start that failed which says why."""

from prime_train.rehearsal.recording import Recording
from prime_train.spec.spec import RunSpec
from prime_train.text.safe import neutralized
from prime_train.trainers.of_spec import named, trainer_for

NOTHING = "it printed nothing"


def failure_line(spec: RunSpec, recording: Recording) -> str:
    """Return the line that says why this start failed, as an agent would choose it: of a traceback the
    exception, and not the last line of a long message. `NOTHING` if there is no line.
    """
    lines = [line.text for line in recording.lines if line.stream in ("stdout", "stderr")]
    if not lines:
        return NOTHING
    found = named(lines, trainer_for(spec).known_errors(), code=recording.code or 0)
    return neutralized(found.line)
