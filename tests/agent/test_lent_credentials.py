"""An attempt whose keys to the bucket expire: the real agent renews them, serves them to its children, and
reveals them in no output.
"""

import sys
from pathlib import Path

from prime_train.runs.wire import PodKeys
from prime_train.spec.causes import Cause
from tests.agent.attempts import attempt, demo_spec
from tests.fakes.control_plane import FakeControlPlane

ASKING = """\
import json, os, time, urllib.error, urllib.request
def asked():
    with open(os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]) as file:
        token = file.read()
    address = os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    return json.load(urllib.request.urlopen(urllib.request.Request(address, headers={"Authorization": token}), timeout=600)), token
keys, end = ({"Token": ""}, ""), time.monotonic() + 600
while keys[0]["Token"] != "token-of-the-second" and time.monotonic() < end:
    time.sleep(0.1)
    try:
        keys = asked()
    except urllib.error.HTTPError as error:
        assert error.code == 503  # the first have ended, and the second are not there yet
print(os.environ["AWS_DEFAULT_REGION"], *keys[0].values(), keys[1])
raise SystemExit(3)
"""
PRINTING = [f"{sys.executable} ask.py"]


def keys(which: str, valid_s: int) -> PodKeys:
    return PodKeys(
        access_key_id=f"id-of-the-{which}",
        secret_access_key=f"secret-of-the-{which}",
        session_token=f"token-of-the-{which}",
        valid_s=valid_s,
    )


def lending(plane: FakeControlPlane) -> None:
    plane.lent = [keys("second", 3600)]


def test_renewed_keys_reach_what_the_agent_starts_and_nobody_else(tmp_path: Path) -> None:
    place = {"AWS_REGION": "eu-south-2"}
    asking = {"ask.py": ASKING.encode()}
    job = demo_spec("--steps 5", setup=PRINTING)
    with attempt(
        tmp_path, job, files=asking, prepare=lending, keys=keys("first", 2), bucket_keys=place
    ) as here:
        assert here.wait() == 0
        (last,) = here.plane.exits
        assert last.exit is not None
        assert last.exit.cause is Cause.SETUP_FAILED
        answer = here.evidence("setup.log")
        assert "<AWS_SESSION_TOKEN>" in answer
        assert "<AWS_CONTAINER_AUTHORIZATION_TOKEN>" in answer
        sent = (
            "".join(heartbeat.model_dump_json() for heartbeat in here.plane.heartbeats)
            + answer
            + here.log("agent.log")
        )
        for secret in ("of-the-first", "of-the-second", (here.disk / "keys-token").read_text()):
            assert secret not in sent


def test_a_control_plane_that_has_no_keys_left_is_reported_and_training_goes_on(tmp_path: Path) -> None:
    with attempt(
        tmp_path, demo_spec("--steps 4 --step-seconds 0.4 --save-every 4"), keys=keys("first", 1)
    ) as here:
        assert here.wait() == 0
        assert here.plane.exits[0].exit is not None
        assert here.plane.exits[0].exit.cause is Cause.FINISHED
        assert "new keys to the bucket could not be fetched, the old ones" in here.log("agent.log")
