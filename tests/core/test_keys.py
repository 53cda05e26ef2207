"""Every name derived from a run can be parsed, and no other name is taken for one of them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prime_train.buckets import keys
from tests.core.given import PROPERTY

RUN_IDS = st.from_regex(keys.RUN_ID_PATTERN, fullmatch=True)
ATTEMPTS = st.integers(min_value=1, max_value=10**9 - 1)
STEPS = st.integers(min_value=0, max_value=10**12 - 1)
IDENTITY = "0123456789abcdef"
DIGEST = "blake3-" + "0a" * 32


@PROPERTY
@given(run_id=RUN_IDS, attempt=ATTEMPTS)
def test_a_pod_name_is_read_back_as_its_run_and_attempt(run_id: str, attempt: int) -> None:
    assert keys.parse_pod_name(keys.pod_name(run_id, attempt)) == (run_id, attempt)


@PROPERTY
@given(run_id=RUN_IDS, step=STEPS, attempt=ATTEMPTS)
def test_a_manifest_key_is_read_back_as_its_step_and_attempt(run_id: str, step: int, attempt: int) -> None:
    assert keys.parse_manifest_key(run_id, keys.manifest_key(run_id, step, attempt)) == (step, attempt)


@PROPERTY
@given(a=RUN_IDS, b=RUN_IDS, step=STEPS, attempt=ATTEMPTS)
def test_a_manifest_of_another_run_is_never_read_as_ours(a: str, b: str, step: int, attempt: int) -> None:
    assume(a != b)
    assert keys.parse_manifest_key(a, keys.manifest_key(b, step, attempt)) is None


@PROPERTY
@given(first=STEPS, second=STEPS)
def test_manifest_keys_sort_by_step(first: int, second: int) -> None:
    one, other = keys.manifest_key("r", first, 1), keys.manifest_key("r", second, 1)
    assert (one < other) == (first < second)


@PROPERTY
@given(a=RUN_IDS, b=RUN_IDS)
def test_nothing_of_one_run_lies_under_another_runs_prefix(a: str, b: str) -> None:
    assume(a != b)
    named = [
        keys.spec_key(b),
        keys.code_key(b),
        keys.blob_key(b, DIGEST),
        keys.manifest_key(b, 1, 1),
        keys.latest_key(b),
        keys.evidence_key(b, 1, "log"),
        keys.output_manifest_key(b, 1, IDENTITY),
        keys.piece_key(b, 1, IDENTITY, "trainer.log", 1),
    ]
    assert not [key for key in named if key.startswith(keys.run_prefixes(a))]
    assert all(key.startswith(keys.run_prefixes(b)) for key in named)


@PROPERTY
@given(run_id=RUN_IDS, attempt=ATTEMPTS)
def test_what_may_be_forgotten_is_reported_by_the_first_part_of_its_key(run_id: str, attempt: int) -> None:
    needed = [
        keys.spec_key(run_id),
        keys.blob_key(run_id, DIGEST),
        keys.manifest_key(run_id, 1, attempt),
        keys.pin_key(run_id, 1, attempt),
    ]
    needed += [
        keys.output_manifest_key(run_id, attempt, IDENTITY),
        keys.piece_key(run_id, attempt, IDENTITY, "metrics.csv", 1),
    ]
    assert all(key.startswith(keys.RUNS) for key in needed)
    assert keys.evidence_key(run_id, attempt, "log").startswith(keys.EVIDENCE)
    assert keys.evidence_key(run_id, attempt, "log").startswith(keys.evidence_prefix(run_id, attempt))


@pytest.mark.parametrize("text", ["a", "0", "a-b", "tiny-1-e2", "a" * 48])
def test_lower_case_letters_digits_and_inner_hyphens_name_a_run(text: str) -> None:
    assert keys.is_run_id(text)


@pytest.mark.parametrize(
    "text", ["", "-a", "a-", "A", "a_b", "a" * 49, "a b", "a\n", "\na", "../a", "a/b", "ä", "a\0", "\u0661"]
)
def test_anything_else_does_not_name_a_run(text: str) -> None:
    assert not keys.is_run_id(text)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "pt-",
        "pt-e1",
        "pt-a",
        "pt-a-e",
        "pt-a-e-1",
        "pt-a-e1 ",
        "xpt-a-e1",
        "pt-A-e1",
        "pt-a-e1\n",
        "postgres",
    ],
)
def test_a_machine_named_otherwise_is_not_ours(name: str) -> None:
    assert keys.parse_pod_name(name) is None


def test_a_run_whose_id_ends_like_an_attempt_keeps_its_name() -> None:
    assert keys.parse_pod_name(keys.pod_name("sweep-e3", 4)) == ("sweep-e3", 4)


@pytest.mark.parametrize("name", ["pt-a-e0", "pt-a-e01", "pt-a-e\u0661"])
def test_a_machine_is_ours_only_under_the_very_name_we_would_give_it(name: str) -> None:
    assert keys.parse_pod_name(name) is None


@pytest.mark.parametrize(
    "key",
    [
        "runs/a/manifests/1-e1.json",
        "runs/a/manifests/000000000001-e1.json.part",
        "runs/a/manifests/x/000000000001-e1.json",
        "runs/a/manifests/000000000001.json",
        "runs/a/latest.json",
        "000000000001-e1.json",
    ],
)
def test_an_object_that_is_no_manifest_is_not_read_as_one(key: str) -> None:
    assert keys.parse_manifest_key("a", key) is None


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "blake3-",
        "blake3-" + "0" * 63,
        "0" * 64,
        "blake3-" + "G" * 64,
        "../../x",
        DIGEST + "\n",
        DIGEST + "/..",
    ],
)
def test_a_blob_is_only_named_by_a_digest(digest: str) -> None:
    with pytest.raises(ValueError, match="digest"):
        keys.blob_key("a", digest)


def test_keys_of_the_bucket_are_those_of_the_design() -> None:
    assert keys.manifest_key("tiny-1", 120, 3) == "runs/tiny-1/manifests/000000000120-e3.json"
    assert keys.blob_key("tiny-1", DIGEST) == f"runs/tiny-1/blobs/{DIGEST}"
    assert keys.spec_key("tiny-1") == "runs/tiny-1/spec.json"
    assert keys.latest_key("tiny-1") == "runs/tiny-1/latest.json"
    assert keys.evidence_key("tiny-1", 3, "log.txt") == "evidence/tiny-1/e3/log.txt"
    assert keys.pod_name("tiny-1", 3) == "pt-tiny-1-e3"
    assert (
        keys.output_manifest_key("tiny-1", 3, IDENTITY) == f"runs/tiny-1/outputs/e3-{IDENTITY}/manifest.json"
    )
    assert (
        keys.piece_key("tiny-1", 3, IDENTITY, "trainer.log", 12)
        == f"runs/tiny-1/outputs/e3-{IDENTITY}/trainer.log/000000012"
    )


@PROPERTY
@given(
    run_id=RUN_IDS, attempt=ATTEMPTS, number=st.integers(0, 10**9 - 1), stream=st.sampled_from(keys.STREAMS)
)
def test_a_key_of_outputs_tells_the_attempt_and_its_identity(
    run_id: str, attempt: int, number: int, stream: str
) -> None:
    assert keys.parse_output_key(run_id, keys.piece_key(run_id, attempt, IDENTITY, stream, number)) == (
        attempt,
        IDENTITY,
        stream,
    )
    manifest = keys.output_manifest_key(run_id, attempt, IDENTITY)
    assert keys.parse_output_key(run_id, manifest) == (attempt, IDENTITY, keys.OUTPUT_MANIFEST)
    assert keys.parse_output_key(f"{run_id[:40]}-x", manifest) is None


@pytest.mark.parametrize(
    "key",
    [
        "runs/a/outputs/e1/manifest.json",
        f"runs/a/outputs/e0-{'0' * 16}/manifest.json",
        f"runs/a/outputs/e1-{'0' * 16}/manifest.json.part",
        f"runs/a/outputs/e1-{'0' * 16}/../manifest.json",
        f"runs/a/outputs/e1-{'0' * 16}/secrets.log/000000001",
        f"runs/a/outputs/e1-{'0' * 16}/trainer.log/1",
    ],
)
def test_an_object_beside_the_outputs_is_not_read_as_one(key: str) -> None:
    assert keys.parse_output_key("a", key) is None
