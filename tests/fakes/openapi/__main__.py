"""The command that cuts a published description; see the package."""

import argparse
from pathlib import Path

from tests.fakes.openapi.cut import cut, read, write


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fakes.openapi", description="Cut a published description to the calls in use."
    )
    parser.add_argument("source", type=Path, help="the published description, in JSON or YAML")
    parser.add_argument("out", type=Path, help="the file to write, tests/data/NAME/openapi.json")
    parser.add_argument("--from", dest="origin", required=True, metavar="URL", help="where it is published")
    parser.add_argument("--date", required=True, help="the day on which it was read, 2026-11-22")
    parser.add_argument(
        "calls", nargs="+", metavar="CALL", help='method and path of a call to keep, "GET /v2/pods"'
    )
    given = parser.parse_args()
    complete = read(given.source)
    calls = [(method, path) for method, _, path in (call.partition(" ") for call in given.calls)]
    info = {
        name: complete["info"][name] for name in ("title", "version", "license") if name in complete["info"]
    }
    write(given.out, cut(complete, calls, {**info, "x-source": given.origin, "x-read": given.date}))


if __name__ == "__main__":
    main()
