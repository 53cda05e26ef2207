"""The server, and what it answers."""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.fakes.hub.repos import QWEN3_8B, Repo

TOKEN = "hf_" + "t" * 34

_INFO = re.compile(r"/api/models/(?P<id>[^/]+(?:/[^/]+)?)(?:/revision/(?P<revision>[^/]+))?")
_FILE = re.compile(r"/(?P<id>[^/]+/[^/]+)/(?:raw|resolve)/(?P<revision>[^/]+)/(?P<file>.+)")

Reply = tuple[int, bytes, dict[str, str]]


class FakeHub:
    """`TOKEN` opens gated models if `let_in`. `failing`: a status with which everything is answered instead; 0: not at all."""

    def __init__(self, *repos: Repo, let_in: bool = False) -> None:
        self.repos = {repo.id.lower(): repo for repo in repos or (QWEN3_8B,)}
        self.let_in = let_in
        self.failing: int | None = None
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, path: str, token: str) -> Reply:
        if self.failing is not None:
            return self.failing, b"<html>unwell</html>", {}
        found = _INFO.fullmatch(path) or _FILE.fullmatch(path)
        repo = self.repos.get(found["id"].lower()) if found else None
        if found is None or repo is None:
            return _absent(token)
        if path.startswith("/api/"):
            return 200, json.dumps(repo.info()).encode(), {"content-type": "application/json", "x-repo-commit": repo.commit}
        return self._file(repo, found["file"], token)

    def _file(self, repo: Repo, name: str, token: str) -> Reply:
        if repo.gated and not (self.let_in and token == TOKEN):
            said = f"Access to model {repo.id} is restricted and you are not in the authorized list."
            return 403 if token else 401, said.encode(), {"x-error-code": "GatedRepo", "x-error-message": said}
        content = repo.files.get(name)
        if content is None:
            return 404, b"Entry not found", {"x-error-code": "EntryNotFound", "x-repo-commit": repo.commit}
        return 200, content, {"etag": f'"{hashlib.sha1(content).hexdigest()}"', "x-repo-commit": repo.commit}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                outer.asked.append(path)
                token = self.headers.get("authorization", "").removeprefix("Bearer ")
                status, body, headers = outer.reply(path, token)
                self.close_connection = True
                if status == 0:
                    return
                self.send_response(status)
                for name, value in ({"content-length": str(len(body)), "connection": "close"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


def _absent(token: str) -> Reply:
    """Whoever shows no token is not told whether there is such a model."""
    if not token:
        return (
            401,
            b'{"error":"Invalid username or password."}',
            {"x-error-code": "RepoNotFound", "x-error-message": "Repository not found"},
        )
    return 404, b'{"error":"Repository not found"}', {"x-error-code": "RepoNotFound", "x-error-message": "Repository not found"}
