"""Cuts Kubernetes' own description of its API to the calls of the fake, and to what is exported for it.

    python -m tests.fakes.kubernetes FOLDER --date 2026-11-24

FOLDER: `api/openapi-spec/v3` of the Go module k8s.io/kubernetes@v1.37.2.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from tests.fakes.kubernetes.server import DATA, FakeKubernetes
from tests.fakes.openapi.cut import cut, write

FILES = (
    "api__v1_openapi.json",
    "apis__batch__v1_openapi.json",
    "apis__authorization.k8s.io__v1_openapi.json",
)
SOURCE = "k8s.io/kubernetes@v1.37.2/api/openapi-spec/v3 (Go module)"
LICENSE = {"name": "Apache 2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
EXPORTED = ("io.k8s.api.core.v1.ConfigMap",)
"""Schemas of what `prime-train export` writes and the fake has no call for."""
LEFT_OUT = (
    "default",  # an empty object, also of what has required members
    "application/cbor",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "application/cbor-seq",
)


def merged(folder: Path) -> dict[str, Any]:
    """Return the descriptions of several groups as one. Bodies are JSON, and forms other than JSON are left
    out.
    """
    complete: dict[str, Any] = {"openapi": "3.0.0", "info": {}, "paths": {}, "components": {"schemas": {}}}
    for name in FILES:
        text = (folder / name).read_text(encoding="utf-8").replace('"*/*"', '"application/json"')
        part = json.loads(text)
        complete["paths"] |= part["paths"]
        complete["components"]["schemas"] |= part["components"]["schemas"]
    return dict(_in_json(complete))


def _in_json(found: Any) -> Any:
    if isinstance(found, list):
        return [_in_json(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        key: _in_json(value)
        for key, value in found.items()
        if key not in LEFT_OUT and "stream=watch" not in key
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.kubernetes", description=__doc__)
    parser.add_argument("folder", type=Path, help="api/openapi-spec/v3 of the Go module")
    parser.add_argument("--date", required=True, help="the day on which it was read, 2026-11-24")
    given = parser.parse_args()
    calls = [(route.method, route.template) for route in FakeKubernetes.routes]
    info = {
        "title": "Kubernetes",
        "version": "v1.37.2",
        "license": LICENSE,
        "x-source": SOURCE,
        "x-read": given.date,
    }
    write(DATA, cut(merged(given.folder), calls, info, EXPORTED))


if __name__ == "__main__":
    main()
