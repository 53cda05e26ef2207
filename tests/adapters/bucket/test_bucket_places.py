"""From URLs and variables to places: what is accepted, what is refused, and that no key is ever repeated."""

from collections.abc import Mapping

import pytest

from prime_train.buckets.location import PLACES, BucketLocation, place_of
from prime_train.buckets.open import open_bucket
from prime_train.errors import PermanentError
from tests.buckets import BUCKET, keys_for
from tests.fakes.s3_servers import S3Server

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCY"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}
R2 = "https://abc.r2.cloudflarestorage.com"


def seen(place: BucketLocation) -> tuple[str, str, str | None, str | None]:
    return place.bucket, place.prefix, place.endpoint, place.region


@pytest.mark.parametrize(
    ("url", "environment", "wanted"),
    [
        ("s3://b", {}, ("b", "", None, None)),
        ("S3://b", {}, ("b", "", None, None)),
        ("s3://b/", {}, ("b", "", None, None)),
        ("s3://b/runs/team", {}, ("b", "runs/team", None, None)),
        ("s3://b/runs/team/", {}, ("b", "runs/team", None, None)),
        ("s3://b/a%20b/%C3%BC", {}, ("b", "a b/ü", None, None)),
        ("s3://b.with-dots_1", {}, ("b.with-dots_1", "", None, None)),
        ("s3://b?region=eu-west-3", {}, ("b", "", None, "eu-west-3")),
        (
            "s3://b",
            {"AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "eu-west-1"},
            ("b", "", None, "eu-west-3"),
        ),
        ("s3://b", {"AWS_DEFAULT_REGION": "eu-west-1"}, ("b", "", None, "eu-west-1")),
        ("s3://b?region=us-west-2", {"AWS_REGION": "eu-west-3"}, ("b", "", None, "us-west-2")),
        (
            "s3://b?endpoint=http://h:9000",
            {"AWS_ENDPOINT_URL": "https://other"},
            ("b", "", "http://h:9000", None),
        ),
        ("s3://b?endpoint=http%3A%2F%2Fh%3A9000", {}, ("b", "", "http://h:9000", None)),
        ("s3://b?endpoint=", {"AWS_ENDPOINT_URL": "https://h"}, ("b", "", "https://h", None)),
        ("s3://b", {"AWS_ENDPOINT_URL": "https://h"}, ("b", "", "https://h", None)),
        (
            "s3://b",
            {"AWS_ENDPOINT_URL": "https://h", "AWS_ENDPOINT_URL_S3": "https://s"},
            ("b", "", "https://s", None),
        ),
        ("s3://b?endpoint=https://[::1]:9000", {}, ("b", "", "https://[::1]:9000", None)),
        ("r2://b?account=abc", {}, ("b", "", R2, "auto")),
        ("r2://b", {"R2_ACCOUNT_ID": "abc"}, ("b", "", R2, "auto")),
        ("r2://b?account=abc", {"R2_ACCOUNT_ID": "other"}, ("b", "", R2, "auto")),
        (
            "r2://b/p?account=abc",
            {"AWS_ENDPOINT_URL": "https://h", "AWS_REGION": "x"},
            ("b", "p", R2, "auto"),
        ),
        ("b2://b?region=us-west-004", {}, ("b", "", "https://s3.us-west-004.backblazeb2.com", "us-west-004")),
        (
            "b2://b",
            {"B2_REGION": "eu-central-003"},
            ("b", "", "https://s3.eu-central-003.backblazeb2.com", "eu-central-003"),
        ),
        (
            "gs://b",
            {"AWS_ENDPOINT_URL_S3": "https://h", "AWS_REGION": "x"},
            ("b", "", "https://storage.googleapis.com", "auto"),
        ),
    ],
)
def test_a_url_and_the_variables_say_where(
    url: str, environment: Mapping[str, str], wanted: tuple[str, str, str | None, str | None]
) -> None:
    assert seen(place_of(url, environment)) == wanted


@pytest.mark.parametrize(
    ("url", "checksum", "conditional", "bulk_delete"),
    [
        ("s3://b", "crc64nvme", True, True),
        ("r2://b?account=abc", "crc64nvme", True, True),
        ("b2://b?region=x", "signed", False, True),
        ("gs://b", "signed", False, False),
        ("s3://b?checksum=sha256", "sha256", True, True),
        ("s3://b?checksum=signed&conditional=off", "signed", False, True),
        ("gs://b?conditional=on", "signed", True, False),
    ],
)
def test_what_a_server_can_do_is_known_and_can_be_reported(
    url: str, checksum: str, conditional: bool, bulk_delete: bool
) -> None:
    place = place_of(url, {})
    assert (place.checksum, place.conditional, place.bulk_delete) == (checksum, conditional, bulk_delete)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("r2://b?account=abc", ("R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY")),
        ("b2://b?region=x", ("B2_APPLICATION_KEY_ID", "B2_APPLICATION_KEY")),
        ("gs://b", ("GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY")),
    ],
)
def test_a_places_own_keys_come_before_those_of_aws(url: str, own: tuple[str, str]) -> None:
    assert place_of(url, KEYS | {own[0]: "own", own[1]: SECRET}).keys == ("own", SECRET)
    assert place_of(url, KEYS | {own[0]: "half"}).keys is None
    assert place_of(url, KEYS).keys is None


def test_every_scheme_can_be_opened_with_keys_of_its_own() -> None:
    options = {"r2": "?account=abc", "b2": "?region=us-west-004"}
    for scheme, kind in PLACES.items():
        open_bucket(f"{scheme}://b{options.get(scheme, '')}", {kind.keys[0]: "key", kind.keys[1]: SECRET})


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://", "needs a plain name"),
        ("s3:b", "needs a plain name"),
        ("s3:///b", "needs a plain name"),
        ("s3://[b", "not a URL"),
        ("s3://bücket", "needs a plain name"),
        ("s3://b:9000", "needs a plain name"),
        ("s3://b#part", "what follows # is not understood"),
        ("s3://b?acount=x", "the option acount is not understood; known: endpoint, region"),
        ("s3://b?region=a&region=b", "given twice"),
        ("s3://b/../other", "is not a valid key"),
        ("s3://b/%2e%2e/other", "is not a valid key"),
        ("s3://b/a//b", "is not a valid key"),
        ("s3://b/a%0Ab", "is not a valid key"),
        ("s3://b/.tmp/x", "is not a valid key"),
        ("s3://b?endpoint=h:9000", "http://host:9000"),
        ("s3://b?endpoint=ftp://h", "http://host:9000"),
        ("s3://b?endpoint=https://", "http://host:9000"),
        ("s3://b?endpoint=http://[::1", "not a URL"),
        ("s3://b?endpoint=https://h?x=1", "http://host:9000"),
        ("s3://b?region=us%20west", "region_name 'us west'"),
        ("s3://b?checksum=md5", "checksum=md5 is not one of crc64nvme, sha256, signed"),
        ("s3://b?checksum=", "checksum= is not one of"),
        ("s3://b?conditional=maybe", "conditional=maybe is not one of on, off"),
        ("r2://b", r"needs account: write \?account=... or set R2_ACCOUNT_ID"),
        ("r2://b?account=", "needs account"),
        ("r2://b?account=evil.example/x", "is not a plain name"),
        ("b2://b", r"needs region: write \?region=... or set B2_REGION"),
        ("b2://b?region=x.evil.example/", "is not a plain name"),
    ],
)
def test_what_is_missing_or_unusual_is_refused_with_what_to_do(url: str, says: str) -> None:
    with pytest.raises(PermanentError, match=says):
        open_bucket(url, KEYS)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKID:{}@b",
        "s3://AKID:{}@b/prefix?region=x",
        "s3://AKID:{}",
        "s3://AKID:x/{}@b",
        "s3://AKID:x/y+z/{}@b?unknown=1",
        "s3://b?secret={}",
        "s3://b?AWS_SECRET_ACCESS_KEY={}&region=x",
        "s3://b?endpoint=https://AKID:{}@h",
        "s3://b#{}",
        "s3://[{}@b",
        "r2://AKID:{}@b",
        "r2://AKID:{}@b?account=abc&x=1",
        "b2://AKID:{}@b",
        "gs://AKID:{}@b",
        "file://AKID:{}@host/folder",
        "azure://AKID:{}@b",
    ],
)
def test_keys_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(PermanentError) as refusal:
        open_bucket(url.format(SECRET), KEYS)
    assert SECRET not in f"{refusal.value!r}{refusal.value.__cause__!r}"


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"AWS_PROFILE": "nobody"}, r"profile \(nobody\)"),
        (KEYS | {"AWS_CA_BUNDLE": "/nowhere/ca.pem"}, "AWS_CA_BUNDLE is /nowhere/ca.pem: No such file"),
        (KEYS | {"AWS_CA_BUNDLE": __file__}, "No certificates found"),
        (KEYS | {"AWS_ENDPOINT_URL": "h:9000"}, "http://host:9000"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_once(environment: Mapping[str, str], says: str) -> None:
    with pytest.raises(PermanentError, match=says):
        open_bucket("s3://b", environment)


def test_a_place_does_not_show_its_keys() -> None:
    place = place_of("gs://b", KEYS | {"GS_ACCESS_KEY_ID": "key", "GS_SECRET_ACCESS_KEY": SECRET})
    assert place.keys == ("key", SECRET)
    assert SECRET not in repr(place)


def test_a_prefix_with_spaces_and_letters_of_all_kinds_is_a_bucket_of_its_own(ministack: S3Server) -> None:
    url = f"s3://{BUCKET}/{{}}?endpoint={ministack.url}&region={ministack.region}"
    unusual, other = (
        open_bucket(url.format(prefix), keys_for(ministack)) for prefix in ("a%20b/%C3%BC%25", "a")
    )
    unusual.put("k", b"1")
    assert [stat.key for stat in unusual.list("")] == ["k"]
    assert [stat.key for stat in other.list("")] == []
    assert {
        entry["Key"] for entry in ministack.client().list_objects_v2(Bucket=BUCKET, Prefix="a b/")["Contents"]
    } == {"a b/ü%/k"}
