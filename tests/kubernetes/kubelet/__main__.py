"""The kubelet's process: `python -m tests.kubernetes.kubelet SETTINGS`, with the path of a JSON file.

SIGTERM switches the machine off, with a notice for its pods; SIGKILL ends the kubelet alone.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

from tests.kubernetes.api import Api
from tests.kubernetes.kubelet.logs import serve_logs
from tests.kubernetes.kubelet.node import Node, NodeSettings

_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    settings = json.loads(Path(argv[1]).read_text())
    threading.excepthook = _end
    switched_off = threading.Event()
    # Not `sigwait`, for which SIGTERM would have to be blocked, and so it would be in the containers.
    signal.signal(signal.SIGTERM, lambda *_: switched_off.set())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != settings["parent"]:
        return 1
    folder = Path(settings["folder"])
    api = Api(settings["server"], settings["token"], Path(settings["authority"]))
    node = Node(api, NodeSettings(**settings["node"]), folder)
    node.register(serve_logs(node.log, Path(settings["chain"]), Path(settings["key"])))
    for work in (node.keep_alive, node.run_pods):
        threading.Thread(target=work, name=work.__name__, daemon=True).start()
    (folder / "ready").touch()
    switched_off.wait()
    node.shut_down()
    return 0


def _end(args: threading.ExceptHookArgs) -> None:
    """End the kubelet for a bug of its own, so that a test does not wait for it."""
    traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
