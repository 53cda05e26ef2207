"""`inference @ inference.json`: a router that answers at once, and an engine 100 ports above that answers
once it has its memory.

A second one on the same GPU, or one that finds a trainer there, ends as vLLM does.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType

from tests.fakes.prime_rl.gpu import held, hold


class _Router(BaseHTTPRequestHandler):
    engine = False

    def do_GET(self) -> None:
        self.send_response(200)
        if self.engine:
            self.send_header("x-engine", "1")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


class _Engine(_Router):
    engine = True


def main() -> int:
    at, file = sys.argv[1:]
    assert at == "@"
    config = json.loads(Path(file).read_text())
    port, share = config["server"]["port"], config["vllm"]["gpu_memory_utilization"]
    if config["weight_broadcast"]["type"] != "filesystem":
        print(
            "torch.distributed.DistBackendError: NCCL error: Duplicate GPU detected : rank 0 and rank 1",
            flush=True,
        )
        return 1
    signal.signal(signal.SIGTERM, _leave)
    _serve(_Router, port)
    if held():
        print(
            "ValueError: Free memory on device cuda:0 on startup is less than desired GPU memory utilization",
            flush=True,
        )
        return 1
    hold(share)
    print(f"the server is process {os.getpid()}", flush=True)
    time.sleep(float(os.environ.get("FAKE_RL_SERVER_S", "0")))
    _serve(_Engine, port + 100)
    threading.Event().wait()
    return 0


def _serve(handler: type[_Router], port: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(0)


sys.exit(main())
