"""A client of the fake for tests: sends requests as a client of Prime would."""

from collections.abc import Mapping
from typing import Any

import requests

from tests.fakes.prime import ON_DEMAND, FakePrime, GpuRow

ANSWER_S_MAX = 60.0


def ask(
    fake: FakePrime,
    method: str,
    path: str,
    *,
    key: str | None = None,
    body: object = None,
    follow: bool = False,
) -> requests.Response:
    """Send a request. `path` follows /api/v1, with its query."""
    headers = {"Authorization": f"Bearer {fake.api_key if key is None else key}"}
    url = f"{fake.url}/api/v1{path}"
    return requests.request(
        method, url, headers=headers, json=body, timeout=ANSWER_S_MAX, allow_redirects=follow
    )


def call(fake: FakePrime, method: str, path: str, *, body: object = None) -> Any:
    """Return the content of the response, which must be a success."""
    answer = ask(fake, method, path, body=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pod_body(
    row: GpuRow = ON_DEMAND, *, disks: object = None, team: object = None, **pod: object
) -> dict[str, object]:
    """Return the body that creates a pod of that row; `disks` are ids, `team` is one; `pod` changes fields of
    it.
    """
    named: Mapping[str, object] = {
        "name": "pt-run-e1",
        "cloudId": row.cloudId,
        "gpuType": row.gpuType,
        "socket": row.socket,
        "gpuCount": row.gpuCount,
        "dataCenterId": row.dataCenter,
        "country": row.country,
        "security": row.security,
        "image": "ubuntu_22_cuda_12",
        "diskSize": row.disk.defaultCount,
    }
    of_team = {"teamId": team} if team is not None else None
    return {"pod": {**named, **pod}, "provider": {"type": row.provider}, "disks": disks, "team": of_team}


def create(fake: FakePrime, row: GpuRow = ON_DEMAND, **pod: object) -> str:
    """Create a pod and return its id."""
    return str(call(fake, "POST", "/pods/", body=pod_body(row, **pod))["id"])
