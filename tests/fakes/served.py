"""A fake's HTTP server on loopback, from the beginning of a `with` to its end."""

import threading
from http.server import ThreadingHTTPServer
from typing import Self


class Served:
    """Base of a fake, which calls `serve_by` when it is made."""

    def serve_by(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"
