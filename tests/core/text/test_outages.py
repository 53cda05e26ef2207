"""Whether a command failed because of a network, by the end of its output."""

import pytest

from prime_train.text.outages import ended_by_outage

RETRY = (
    "WARNING: Retrying (Retry(total={}, connect=None, read=None, redirect=None, status=None)) after "
    "connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at "
    "0x7f1>: Failed to establish a new connection: "
    "[Errno -2] Name or service not known')': /simple/flash-atn/\n"
)
TYPO = (
    "ERROR: Could not find a version that satisfies the requirement flash-atn==9.9 (from versions: {})\n"
    "ERROR: No matching distribution found for flash-atn==9.9\n"
)
ASKED_IN_VAIN = "".join(RETRY.format(left) for left in (4, 3, 2, 1, 0))
NO_HOST = "Could not resolve 'archive.ubuntu.com'"
APT = (
    "W: Failed to fetch http://archive.ubuntu.com/ubuntu/dists/noble/InRelease  "
    f"{NO_HOST}\nReading "
    "package lists...\n"
)


@pytest.mark.parametrize(
    "tail",
    [
        RETRY.format(4) + TYPO.format("none"),
        RETRY.format(4)
        + TYPO.format("none")
        + "\n[notice] A new release of pip is available: 24.0 -> 25.3\n",
        ASKED_IN_VAIN + TYPO.format("1.0, 2.8"),
        "curl: (6) Could not resolve host: mirror\nusing the other mirror\n  Downloading torch\nerror: "
        "a\nerror: b\nerror: no compiler",
        'Connection reset by peer, trying again\nTraceback (most recent call last):\n  File "x.py", line '
        "1\nAssertionError: 3 shards",
        "Reading package lists...\nE: Unable to locate package libfoo-dev\n",
        "",
    ],
)
def test_a_lost_connection_that_was_made_again_does_not_explain_the_failure(tail: str) -> None:
    assert not ended_by_outage(tail)


@pytest.mark.parametrize(
    "tail",
    [
        ASKED_IN_VAIN + TYPO.format("none"),
        "fatal: unable to access 'https://example.org/a.git/': Could not resolve host: example.org",
        "error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly\nfatal: early EOF\nfatal: "
        "fetch-pack: invalid index-pack output",
        "error: Failed to fetch: `https://example.org/simple/torch/`\n  Caused by: Request failed after 3 "
        "retries\n"
        "  Caused by: dns error: failed to lookup address information: Name or service not known",
        "urllib3.exceptions.NewConnectionError: <x>: Failed to establish a new connection\n"
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443)\nmake: *** "
        "[Makefile:3: data] Error 1",
        APT + "E: Unable to locate package libfoo-dev\n",
        "downloading\nConnection timed out\n",
    ],
)
def test_a_network_that_does_not_answer_is_known_by_the_last_errors(tail: str) -> None:
    assert ended_by_outage(tail)
