"""What kind of line in the output of a trainer that failed: an exception, what a launcher prints around it,
or noise.

Launchers put a label before each line of their workers, such as `(WorkerDict pid=42) ` or `[1,0]<stderr>:`. A
table of rules that knows only what the worker itself prints would be blind behind them, so they are taken off
first.
"""

import re
import signal

from prime_train.trainers.patterns import compiled, found_in

_EXCEPTION_NAME = (
    r"(?:(?:[A-Za-z_]\w*\.)*[A-Za-z_]?\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Timeout|"
    r"OutOfResources)"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w+)"
)
_LABELS = re.compile(
    r"(?:"
    # Ray, vLLM, SkyPilot
    r"\s*\([A-Za-z_][^()]{0,80}?(?:\([^()]{0,60}\))?[^()]{0,40}\bpid=\d+[^()]{0,60}\)(?: \[repeated "
    r"[^\]]{0,60}\])?\s?"
    r"|\s*\((?:raylet|autoscaler|gcs_server)[^()]{0,60}\)\s?"
    r"|\s*\[\d+,(?:mpirank:)?\d+(?:,[\w.-]{1,60})?\]<std(?:err|out)>:\s?"  # mpirun, SageMaker
    r"|\s*\[(?:default|rank|trainer|worker)_?\d+\]:?\s?"
    # launchers that relay two streams
    r"|\s*(?:\[(?:err|out|stderr|stdout)\b[^\]]{0,60}\]|(?:stderr|stdout):)\s?"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)? (?:std(?:err|out) [FP] )?"  # Kubernetes
    r"|\s*[│┃|]\s?"  # boxes of rich
    r")+"
)
_LOGGED = re.compile(
    rf"(?:E\d{{4}} |[^\n]{{0,60}}?\b(?:ERROR|CRITICAL|FATAL)\b)[^\n]{{0,120}}?(?:[\]|>:)-]\s+|"
    rf"\s)(?={_EXCEPTION_NAME}(?:: |$))"
)
"""What a logger puts before an exception: the time, the level and the place. Taken off only before what is an
error for certain.
"""

_STAMPED = re.compile(
    r"(?:\W?\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?:(?!\b(?:INFO|DEBUG|TRACE|WARN|WARNING)\b)[^\n]){0,160}?[\]|>:)-]|"
    r"\W?\d\d:\d\d:\d\d\S{0,8})\s+"
    rf"(?={_EXCEPTION_NAME}(?:: |$))"
)
"""What a launcher puts before an exception if it names no level: the time and the task. Taken off only before
what is an error for certain.
"""

_RELAYED = re.compile(r"[^\n]{1,200}?[\s:\]](?=\[rank\d{1,5}\]:)")
"""What a launcher, or a progress bar without a line break, puts before a line that torch has labelled with
its rank.
"""

_LOGGED_CHARS_MAX = 400

_INDENTED = re.compile(r"\s+(?=(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception): )")
"""What torchrun's summary prints before the exceptions of a traceback that a worker has recorded."""

_HOST_LABEL = re.compile(rf"\s*([\w.-]{{1,64}}):\s+(?=Traceback \(most|{_EXCEPTION_NAME}(?:: |$))")
"""A label of srun or pdsh, which is taken off only before what is an error for certain."""

_RAISED = re.compile(rf"({_EXCEPTION_NAME})(?: \(see above for traceback\))?(?:: |:$|$)")
_WORDED = r"^(?i:(?:\S+: )?(?:fatal )?error: )|^(?:FATAL\b|ERROR:? |wandb: ERROR|E\d{4} |\[?ERROR\]?)"
_WRAPPER = re.compile(
    r"torch\.distributed\.elastic\S*|ray\.exceptions\.(?:RayTaskError|RayActorError|ActorDiedError|"
    r"WorkerCrashedError)"
    r"|subprocess\.CalledProcessError|multiprocessing\.\S*(?:RemoteTraceback|ProcessError)|"
    r"torch\.multiprocessing\.spawn\.\w+"
    r"|[\w.]+: Caught \w+ in (?:DataLoader worker process|pin memory thread|replica)\b"
    r"|Exception:\s*$|concurrent\.futures\.process\._RemoteTraceback|BrokenProcessPool|"
    r"(?:\w+\.)*RemoteTraceback"
)
_OPEN_ENDED = re.compile(
    r"[^\n]{0,300}(?:\braised|\bError in call to target [^\n]{1,120}|(?:Error|Exception))\s*:\s*$"
)
"""An exception whose message goes on in the next line: that of what it wraps."""
_REPR = re.compile(r"\s*([A-Za-z_][\w.]*(?:Error|Exception|Timeout\w*))\((.*)\)$")
"""An exception as `repr` prints it, as Hydra does with the one that it wraps."""
_FRAME = re.compile(r'\s*File "[^"]+", line \d+')
_CODE = re.compile(r"\s+(?:raise|return) ")
_IGNORED = re.compile(r"\s*Exception ignored in\b")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\)")
_NOISE = (
    r"^(?:\W*$"
    r"|\s*(?:(?:time|host|rank|exitcode|traceback)\s+|error_file\s*): |.*ChildFailedError|(?:Root Cause|"
    r"Failures:)|\s*<NO_OTHER|.* "
    r"FAILED$|\[\d+\]:$"
    r"|\s*File \"|\s*(?:Current t|T)hread 0x|Extension modules: |\s*<no Python frame>|\s*\.\.\.|\s+[~^]+\s*$"
    r"|.*\d+%\|.*(?:it/s|s/it|\?it/s|B/s)|.*\d+(?:\.\d+)?(?:it/s|s/it)\]|\S* ?\d{1,3}%\|"
    r"|.*(?:leaked (?:semaphore|shared_memory)|resource_tracker)|\s*warnings\.warn\(|.*Warning: |"
    r"\s*(?:Segmentation fault"
    r"|Aborted|Killed|Bus error)"
    r"|wandb: |Set the environment variable HYDRA_FULL_ERROR|\s*(?:During handling of the above|The above "
    r"exception was)"
    r"|.*torch/distributed/elastic/|.*(?:Sending process"
    r"|Killing subprocess)"
    r"|srun: |slurmstepd: |mpirun |-{5,}|={5,}|\s*(?:sys\.exit|raise |return |main\(|exec\()|To enable "
    r"traceback see|Fatal Python error: "
    r"|.*exits with return code|.*NVIDIA_VISIBLE"
    r")"
)
_SIGNAL_WORDS = (
    ("Killed", 9),
    ("Segmentation fault", 11),
    ("Aborted", 6),
    ("Bus error", 7),
    ("Illegal instruction", 4),
    ("Terminated", 15),
)
_LAUNCHER_CODE = (
    r"(?:exitcode\s*: |exits with return code = |failed \(exitcode: |returned non-zero exit status |died "
    r"with <Signals\.SIG\w+: "
    r"|[Ee]xited with exit code "
    r"|exited on signal |Exit Code: |return code list: \[)(-?\d{1,3})\b"
    r"|\b[Ee]xit code:? (-?1[2-5]\d|-\d{1,2})\b"
    r"|^(?:srun: error: \S+: tasks? [\d,-]+: |\S+: line \d+: +\d+ )?("
    + "|".join(word for word, _ in _SIGNAL_WORDS)
    + r")\b"
)
"""What deepspeed, torchrun's agent, accelerate, Slurm, mpirun, Kubernetes, SkyPilot and shells print of a
worker's end.
"""

_BY_SIGNAL = r"^(?:died with <Signals|exited on signal )"
"""Of these, the words after which the number is that of a signal."""

_OF_A_SERVER = r"\bInference failed with exit code "
"""What prime-rl's launcher prints of the inference server's end. That is no worker of the trainer: its rules
say what follows.
"""

_SUMMARY_ROW = re.compile(r"\s*(?:(?:time|host|rank|exitcode|traceback)\s+|error_file\s*): ")
_TORCHRUN_CODE = re.compile(r"\s*exitcode\s*: (-?\d+)\b")
_TORCHRUN_RANK = re.compile(r"\s*rank\s*: (\d+)\b")
_TORCHRUN_ROOT = re.compile(r"\s*Root Cause \(first observed failure\)")

_TOLD = (
    r"NCCL INFO|[\[|( -](?:INFO|DEBUG|TRACE)[\]|): -]|^(?:INFO|DEBUG)[: ]|^I\d{4} |: I "
    r"(?:tensorflow|"
    r"external)|\blevel=(?:info|debug)\b"
)
_WARNED = (
    r"[\[|( -]WARN(?:ING)?[\]|): -]|^WARN(?:ING)?[: ]|^W\d{4} |^\[W|: W (?:tensorflow|"
    r"external)|"
    r"\blevel=warn|\w+Warning: "
)
_LEVEL_CHARS_MAX = 160

PASSING = frozenset(
    {
        "BlockingIOError",
        "BrokenPipeError",
        "EOFError",
        "IOError",
        "InternalError",
        "OSError",
        "SystemError",
        "SystemExit",
        "TimeoutError",
        "XlaRuntimeError",
        "error",
    }
)
"""Kinds of exceptions that may be passing; code raises the others again for the same input."""


def unwrapped(text: str) -> str:
    """Return a cleaned line without the labels that launchers put before it."""
    found = _LABELS.match(text)
    bare = text[found.end() :] if found else text
    if bare is not text and bare.endswith(("│", "┃")):
        bare = bare.rstrip("│┃ ")
    indented = _INDENTED.match(bare)
    if indented:
        return bare[indented.end() :]
    if not _RAISED.match(bare):
        logged = _LOGGED.match(bare[:_LOGGED_CHARS_MAX]) or _STAMPED.match(bare[:_LOGGED_CHARS_MAX])
        if logged:
            return bare[logged.end() :]
    host = _HOST_LABEL.match(bare)
    return bare[host.end() :] if host and not _RAISED.match(f"{host[1]}: ") else bare


def own_words(cleaned: str) -> str:
    """Return a cleaned line without what a launcher, a logger or a progress bar put before the label that
    torch gave it.
    """
    found = _RELAYED.match(cleaned) if "[rank" in cleaned else None
    return cleaned[found.end() :] if found else cleaned


def is_frame(text: str) -> bool:
    """Return whether the line names a file and a line of a traceback."""
    return _FRAME.match(text) is not None


def is_code(text: str, before: str) -> bool:
    """Return whether the line is code that a traceback shows. `before`: the line before it."""
    return _CODE.match(text) is not None or (is_frame(before) and text[:1].isspace() and not is_frame(text))


def continued(text: str, after: str) -> str:
    """Return an exception together with the line `after` it, if its message goes on there; else the exception
    alone.
    """
    if not _OPEN_ENDED.match(text) or is_frame(after) or begins_traceback(after):
        return text
    wrapped = _REPR.match(after)
    message = f"{wrapped[1]}: {_bare(wrapped[2])}" if wrapped else after.strip()
    return f"{text.rstrip()} {message}".rstrip()


def _bare(quoted: str) -> str:
    """Return the text of a literal without its quotes."""
    return quoted[1:-1] if len(quoted) > 1 and quoted[0] == quoted[-1] and quoted[0] in "\"'" else quoted


def exception_in(text: str) -> str:
    """Return the name of the exception whose last line of a traceback this is, without its module; "" if it
    is none, or if a launcher wraps the exception of its worker in it.
    """
    found = _RAISED.match(text)
    return found[1].rpartition(".")[2] if found and not _WRAPPER.match(text) else ""


def is_error(text: str) -> bool:
    """Return whether the line is spoken as an error: an exception, or a line that calls itself an error."""
    return _RAISED.match(text) is not None or found_in(_WORDED, text)


def is_told(text: str) -> bool:
    """Return whether a logger printed the line as mere information."""
    return found_in(_TOLD, text[:_LEVEL_CHARS_MAX])


def is_warned(text: str) -> bool:
    """Return whether a logger printed the line as a warning. NCCL prints its errors as warnings, so its own
    do not count.
    """
    return found_in(_WARNED, text[:_LEVEL_CHARS_MAX]) and "NCCL WARN" not in text


def begins_traceback(text: str) -> bool:
    return _TRACEBACK.match(text) is not None


def is_part_of_traceback(text: str) -> bool:
    """Return whether the line begins or ends a traceback, or may be inside one."""
    return begins_traceback(text) or text[:1].isspace() or bool(exception_in(text))


def begins_ignored(text: str) -> bool:
    """Return whether the line announces an exception that Python goes on after, such as one of a `__del__` at
    the process's end.
    """
    return _IGNORED.match(text) is not None


def is_noise(text: str) -> bool:
    """Return whether the line says nothing about why the trainer ended, such as a progress bar or a frame of
    a stack.
    """
    return found_in(_NOISE, text)


def is_summary(text: str) -> bool:
    """Return whether the line is a row of the table that torchrun prints of its workers' ends."""
    return _SUMMARY_ROW.match(text) is not None


def first_failure(texts: list[str]) -> tuple[int, int | None] | None:
    """Return the exit code of the worker that a launcher saw fail first, and its rank, None if unknown; None
    if no launcher says so, or if what failed first is a server beside the workers.
    """
    for at, text in enumerate(texts):
        if _TORCHRUN_ROOT.match(text):
            ranks = [int(found[1]) for line in texts[at : at + 8] if (found := _TORCHRUN_RANK.match(line))]
            codes = [int(found[1]) for line in texts[at : at + 8] if (found := _TORCHRUN_CODE.match(line))]
            if codes and abs(codes[0]) < 256:
                return codes[0], ranks[0] if ranks else None
    for text in texts:
        if found := compiled(_LAUNCHER_CODE).search(text):
            if found_in(_OF_A_SERVER, text):
                return None
            code = (
                next(int(group) for group in found.groups()[:2] if group)
                if found[1] or found[2]
                else -_number_of(found[3])
            )
            code = -abs(code) if found_in(_BY_SIGNAL, found[0]) else code
            if abs(code) < 256:
                return code, None
    return None


def _number_of(name: str) -> int:
    return next(number for word, number in _SIGNAL_WORDS if name.startswith(word))


def signal_of(code: int) -> int | None:
    """Return the signal that an exit code stands for, given as its negative or as 128 plus its number; None
    if it is none.
    """
    number = -code if code < 0 else code - 128
    return number if 1 <= number <= 64 else None


def ended_by(code: int) -> str:
    """Return in words how a process with this exit code ended: killed by SIGSEGV"""
    number = signal_of(code)
    if number is None:
        return f"ended by exit code {code}"
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"
