"""GitHub's tool `gh`, as far as it sets up a repository: a program of its own, which sends what it is told to
the fake at GH_FAKE_URL.

Seen of gh 2.23.0: a response with --include has its status line without a carriage return and headers with
one; the body follows whatever the status is, and a failure is told on the standard error as `gh: MESSAGE
(HTTP STATUS)` with exit code 1; without a log-in the exit code is 4. The encryption of secrets is left out:
the fake is sent the value itself, as base64.
"""

import argparse
import base64
import http.client
import json
import os
import re
import subprocess
import sys
from email.message import Message
from typing import NoReturn
from urllib.parse import quote

LOG_IN = """\
To get started with GitHub CLI, please run:  gh auth login
Alternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token."""
REMOTE = re.compile(r"github\.com[:/]([^/\s]+/[^/\s]+?)(?:\.git)?$")


def send(
    method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, str, Message, bytes]:
    """Return status, reason, headers and body of the response."""
    known = {"User-Agent": "GitHub CLI 2.23.0", "Authorization": f"token {os.environ['GH_TOKEN']}", **headers}
    connection = http.client.HTTPConnection(os.environ["GH_FAKE_URL"].removeprefix("http://"), timeout=60)
    try:
        connection.request(method, f"/{path}", body, known)
        answer = connection.getresponse()
        return answer.status, answer.reason, answer.headers, answer.read()
    except OSError as error:
        end(
            "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com "
            f"({error})",
            1,
        )


def end(text: str, code: int) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(code)


def repository() -> str:
    """Return the repository of the current folder."""
    if os.environ.get("GH_REPO"):
        return os.environ["GH_REPO"]
    done = subprocess.run(
        ["git", "remote", "get-url", "origin"], capture_output=True, text=True, timeout=60, check=False
    )
    found = REMOTE.search(done.stdout.strip())
    if found is None:
        end(f"unable to expand placeholder in path: failed to run git: {done.stderr.strip()}\n", 1)
    return found[1]


def api(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--include", action="store_true")
    parser.add_argument("--input")
    parser.add_argument("--header", "-H", action="append", default=[])
    said = parser.parse_args(words)
    path = (
        said.path.lstrip("/").replace("{owner}/{repo}", repository())
        if "{owner}" in said.path
        else said.path.lstrip("/")
    )
    headers = {name.strip(): value.strip() for name, _, value in (one.partition(":") for one in said.header)}
    body = sys.stdin.buffer.read() if said.input == "-" else None
    headers["Content-Type"] = "application/json; charset=utf-8"
    status, reason, answered, content = send(said.method, path, body, headers)
    if said.include:
        sys.stdout.write(f"HTTP/2.0 {status} {reason}\n")
        sys.stdout.write("".join(f"{name}: {value}\r\n" for name, value in sorted(answered.items())) + "\r\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
    if status > 299:
        message = json.loads(content).get("message", "") if content.startswith(b"{") else ""
        end(f"gh: {message} (HTTP {status})", 1)


def secret(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["set"])
    parser.add_argument("name")
    parser.add_argument("--env", default="")
    parser.add_argument("--repo", default="")
    said = parser.parse_args(words)
    value = sys.stdin.read().rstrip("\r\n")
    place = f"environments/{quote(said.env)}/secrets" if said.env else "actions/secrets"
    body = {"encrypted_value": base64.b64encode(value.encode()).decode(), "key_id": "1"}
    status, _, _, content = send(
        "PUT", f"repos/{said.repo or repository()}/{place}/{said.name}", json.dumps(body).encode(), {}
    )
    if status > 299:
        end(f"failed to set secret {said.name!r}: HTTP {status}: {json.loads(content).get('message', '')}", 1)


def main() -> None:
    if not os.environ.get("GH_TOKEN"):
        end(LOG_IN, 4)
    {"api": api, "secret": secret}[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
