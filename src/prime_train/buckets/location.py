"""Location and credentials of a bucket, from its URL and the settings that other S3 tools read.

    s3://bucket/prefix                   Amazon S3, or any server that AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL
    names s3://bucket?endpoint=https://host    MinIO and others r2://bucket?account=ID
    Cloudflare R2; the account may be set in R2_ACCOUNT_ID b2://bucket?region=us-west-004       Backblaze B2;
    the region may be set in B2_REGION gs://bucket                          Google Cloud Storage, with an HMAC
    key

Keys for R2, B2 and GCS are read from their own variables first, then from AWS's. What a server does not
support is part of its entry in `PLACES`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from prime_train.buckets.object_keys import check_key
from prime_train.errors import PermanentError

CHECKSUMS = ("crc64nvme", "sha256", "signed")
"""Ways in which a server can verify the content it receives. `signed`: by the SHA-256 that is part of the
request's signature.
"""

POD_PREFIX = "PRIME_TRAIN_POD_"
"""Prefix of variables with keys for pods alone, such as PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID, with fewer rights
than the control plane's own.
"""

_AWS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
)
_OPTIONS = ("endpoint", "region", "account", "checksum", "conditional")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class BucketLocation:
    """The location of a bucket. If `endpoint`, `region` or `keys` is None, AWS's own settings apply."""

    url: str
    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    keys: tuple[str, str] | None = field(default=None, repr=False)
    checksum: str = "crc64nvme"
    conditional: bool = True
    """Whether the server honours If-Match and If-None-Match of a PUT."""
    bulk_delete: bool = True
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class SchemeDefaults:
    """Defaults of a URL scheme. `endpoint` is filled in from the options and variables named in `needs`."""

    endpoint: str | None = None
    region: str | None = None
    needs: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, str] = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    checksum: str = "crc64nvme"
    conditional: bool = True
    bulk_delete: bool = True


PLACES: Mapping[str, SchemeDefaults] = {
    "s3": SchemeDefaults(),
    "r2": SchemeDefaults(
        "https://{account}.r2.cloudflarestorage.com",
        "auto",
        (("account", "R2_ACCOUNT_ID"),),
        ("R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"),
    ),
    # Neither B2 nor GCS documents the checksum headers or conditional writes for their S3 interface; both
    # check signed content.
    "b2": SchemeDefaults(
        "https://s3.{region}.backblazeb2.com",
        None,
        (("region", "B2_REGION"),),
        ("B2_APPLICATION_KEY_ID", "B2_APPLICATION_KEY"),
        checksum="signed",
        conditional=False,
    ),
    "gs": SchemeDefaults(
        "https://storage.googleapis.com",
        "auto",
        (),
        ("GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY"),
        checksum="signed",
        conditional=False,
        bulk_delete=False,
    ),
}


def place_of(url: str, environment: Mapping[str, str]) -> BucketLocation:
    """Parse the URL. Raises PermanentError that names what is missing or invalid, without repeating anything
    that may be a key.
    """
    parts = split(url)
    kind = PLACES[parts.scheme]
    bucket, options = _bucket(parts), _options(parts)
    filled = {
        name: _plain(url, name, options.get(name) or environment.get(variable), variable)
        for name, variable in kind.needs
    }
    aws = partial(_first, environment, kind)
    endpoint = kind.endpoint.format(**filled) if kind.endpoint else None
    return BucketLocation(
        url=url,
        bucket=bucket,
        prefix=_prefix(parts),
        endpoint=_endpoint(
            options.get("endpoint") or endpoint or aws("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        ),
        region=options.get("region")
        or filled.get("region")
        or kind.region
        or aws("AWS_REGION", "AWS_DEFAULT_REGION"),
        keys=_keys(kind, environment),
        checksum=_one_of(url, "checksum", options.get("checksum", kind.checksum), CHECKSUMS),
        conditional=_one_of(
            url, "conditional", options.get("conditional", "on" if kind.conditional else "off"), ("on", "off")
        )
        == "on",
        bulk_delete=kind.bulk_delete,
        environment=environment,
    )


def pod_keys(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a pod needs to open the bucket at `url`: those that are set here,
    each replaced by PRIME_TRAIN_POD_<name> if that is set. Raises PermanentError if there are no keys.
    """
    if urlsplit(url).scheme not in PLACES:
        return {}
    kind = PLACES[urlsplit(url).scheme]
    names = (*kind.keys, *(variable for _, variable in kind.needs), *_AWS)
    found = {name: environment.get(POD_PREFIX + name) or environment.get(name, "") for name in names}
    given = {name: value for name, value in found.items() if value}
    if not (set(kind.keys) <= given.keys() or set(_AWS[:2]) <= given.keys()):
        raise PermanentError(
            f"{url}: pods need their own keys for this bucket; set {POD_PREFIX}{kind.keys[0]} and "
            f"{POD_PREFIX}{kind.keys[1]}"
        )
    return given


def split(url: str) -> SplitResult:
    """Split the URL as `urlsplit` does. Raises PermanentError if it is invalid, without repeating it, because
    it may hold a secret.
    """
    try:
        return urlsplit(url)
    except ValueError as error:
        raise PermanentError(f"the bucket's address is not a URL: {error}") from None


def _bucket(parts: SplitResult) -> str:
    # A secret key may hold a slash, so user info before an @ may reach into the path.
    if not _PLAIN.fullmatch(parts.netloc) or "@" in parts.path:
        raise PermanentError(
            f"a bucket of scheme {parts.scheme} needs a plain name, such as {parts.scheme}://name; put keys "
            "into the environment"
        )
    return parts.netloc


def _prefix(parts: SplitResult) -> str:
    prefix = unquote(parts.path).strip("/")
    if prefix:
        check_key(prefix)
    return prefix


def _options(parts: SplitResult) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown or parts.fragment:
        what = f"the option {unknown[0]}" if unknown else "what follows #"
        raise PermanentError(
            f"the bucket {parts.netloc}: {what} is not understood; known: {', '.join(_OPTIONS)}"
        )
    if len(options) != len(pairs):
        raise PermanentError(f"the bucket {parts.netloc}: an option is given twice")
    return options


def _endpoint(endpoint: str | None) -> str | None:
    if endpoint is None:
        return None
    parts = split(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise PermanentError(
            "the bucket's endpoint must look like https://host or http://host:9000; put keys into the "
            "environment"
        )
    return endpoint


def _one_of(url: str, name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise PermanentError(f"the bucket {url!r}: {name}={value} is not one of {', '.join(known)}")
    return value


def _first(environment: Mapping[str, str], kind: SchemeDefaults, *names: str) -> str | None:
    """Return the value of the first of AWS's variables `names` that is set; None for other kinds of buckets,
    to which AWS's variables do not apply.
    """
    return (
        next((environment[name] for name in names if environment.get(name)), None)
        if kind is PLACES["s3"]
        else None
    )


def _keys(kind: SchemeDefaults, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the kind's own keys if they are set, else None. AWS's keys are left to AWS's library, which also
    looks for them in other places.
    """
    key, secret = (environment.get(name) for name in kind.keys)
    return (key, secret) if key and secret and kind.keys[0] != "AWS_ACCESS_KEY_ID" else None


def _plain(url: str, name: str, value: str | None, variable: str) -> str:
    """Return a part of the endpoint's host name. Raises PermanentError if it is missing or not a plain
    name.
    """
    if not value:
        raise PermanentError(f"the bucket {url!r} needs {name}: write ?{name}=... or set {variable}")
    if not _PLAIN.fullmatch(value):
        raise PermanentError(
            f"the bucket {url!r}: the {name} {value!r} is not a plain name; correct ?{name}=... or {variable}"
        )
    return value
