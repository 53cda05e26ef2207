"""Serves the logs of containers to the API server, over TLS, as the real kubelet does."""

import http.server
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

FOLLOW_EVERY_S = 0.2
Find = Callable[[str, str, str], Path | None]


def serve_logs(find: Find, chain: Path, key: Path) -> int:
    """Serve logs from a thread; return the port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            at = urlsplit(self.path)
            parts, query = (
                at.path.strip("/").split("/"),
                {name: values[0] for name, values in parse_qs(at.query).items()},
            )
            log = (
                find(parts[1], parts[2], parts[3])
                if len(parts) == 4 and parts[0] == "containerLogs"
                else None
            )
            if log is None or not log.exists():
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self._copy(log, query)

        def _copy(self, log: Path, query: dict[str, str]) -> None:
            with log.open("rb") as file:
                content = file.read()
                if "tailLines" in query:
                    wanted = int(query["tailLines"])
                    content = b"".join(content.splitlines(keepends=True)[-wanted:]) if wanted else b""
                self.wfile.write(content[: int(query["limitBytes"])] if "limitBytes" in query else content)
                # Until the container's disk is gone, which is when its pod is.
                while query.get("follow") == "true" and log.exists():
                    time.sleep(FOLLOW_EVERY_S)
                    self.wfile.write(file.read())
                    self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port
