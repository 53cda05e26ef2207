"""A small HTTP server that answers by script and remembers what it was asked."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


@dataclass(frozen=True)
class Heard:
    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


@dataclass
class Responder:
    """Each request gets the next of `script` (status, body, headers), and the last one again and again. Status 0: no answer at all.
    `silent`: no answer before the end."""

    script: list[tuple[int, bytes, dict[str, str]]]
    silent: bool = False
    heard: list[Heard] = field(default_factory=list)

    def __post_init__(self) -> None:
        outer = self
        self._ended = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                outer.heard.append(Heard(self.path, {k.lower(): v for k, v in self.headers.items()}, body, self.command))
                status, said, headers = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                self.close_connection = True
                if outer.silent:
                    outer._ended.wait(60)
                if outer.silent or status == 0:
                    return
                self.send_response(status)
                for name, value in ({"content-length": str(len(said)), "connection": "close"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_DELETE = do_POST

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
