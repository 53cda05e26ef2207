"""Runs the command in forks of one process that has imported it, for half a second of CPU is spent on imports
each time it starts.

`python fork_server.py FD` takes requests from the socket FD, each of them with three descriptors for the
standard streams and a socket of its own. That socket brings the arguments, the environment and the working
directory, and is told the process id and in the end the exit code. It is a program and no module of the
tests, so that the command finds in it what it finds when it is started: nothing of pytest, and no threads.
"""

import ast
import atexit
import gc
import json
import os
import signal
import socket
import sys
import threading
from importlib import import_module
from pathlib import Path

from prime_train.cli.lazy import Verb
from prime_train.cli.main import main
from prime_train.cli.verbs import VERBS

PROGRAM = str(Path(sys.executable).parent / "prime-train")
STREAMS = 3
ALSO = ("prime_train.providers.local.pods", "prime_train.webhook.server.serve")
"""What some commands import while they run."""


def preload(verb: Verb) -> None:
    """Import the command for its help."""
    for name in filter(None, (verb.target, verb.parsed_by)):
        import_module(name.split(":", maxsplit=1)[0])
    for one in verb.verbs:
        preload(one)


def preload_run() -> None:
    """Import what the functions of commands import when they are called."""
    for name, module in list(sys.modules.items()):
        if "commands" in name.split(".") and name.startswith("prime_train."):
            for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    import_module(node.module)


def serve(control: socket.socket) -> None:
    """Fork for each request. Return in the process that is to run the command; leave when the tests have
    left.
    """
    while True:
        message, fds, _, _ = socket.recv_fds(control, 1, STREAMS + 1)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            return begin(fds[:STREAMS], socket.socket(fileno=fds[STREAMS]))
        for fd in fds:
            os.close(fd)


def begin(streams: list[int], caller: socket.socket) -> None:
    """Fork once more: one process stays as the parent that tells the exit code, and the other one goes on as
    the command.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with caller.makefile() as lines:
        request = json.loads(lines.readline())
    pid = os.fork()
    if pid != 0:
        try:
            for fd in (*range(STREAMS), *streams):
                os.close(fd)
            caller.sendall(b"%d\n" % pid)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            caller.sendall(b"%d\n" % code)
        finally:
            os._exit(0)
    caller.close()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [PROGRAM, *request["args"]]


def run() -> None:
    """Run the command, and do what Python does at its end, but for taking all modules apart: that takes
    longer than most commands.
    """
    try:
        main()
    except SystemExit as leaving:
        if not isinstance(leaving.code, int | None):
            raise
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(leaving.code or 0)


if __name__ == "__main__":
    sys.path[0] = str(Path(PROGRAM).parent)
    # Ctrl-C is for the tests, and this process leaves when they do; the processes between it and the commands
    # are waited for by nobody.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.disable()
    for verbs in VERBS.values():
        for each in verbs:
            preload(each)
    preload_run()
    for module in ALSO:
        import_module(module)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a process with threads cannot be forked safely"
    gc.freeze()
    gc.enable()
    serve(socket.socket(fileno=int(sys.argv[1])))
    run()
