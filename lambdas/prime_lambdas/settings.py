"""Settings of both Lambdas, parsed once from the environment."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from prime_train.errors import PermanentError
from prime_train.spec import access_run_secrets as run_secrets

STORE, BUCKET, SECRET = "PRIME_TRAIN_STORE", "PRIME_TRAIN_BUCKET", "PRIME_TRAIN_SECRET"
WATCHER, PUBLIC_URL, PROVIDER = "PRIME_TRAIN_WATCHER", "PRIME_TRAIN_URL", "PRIME_TRAIN_PROVIDER"
POD_ROLE = "PRIME_TRAIN_POD_ROLE"


class Settings(NamedTuple):
    """The locations of the stack's parts, and what pods and runs may receive.

    `endpoint` is a server that replaces Amazon's for all services. `watcher` is the name of the function to
    invoke on news; empty for none. `pod_role` is the ARN of the role whose keys pods get for an hour; empty
    for none. `run_secrets` lists the names in the secret that runs may have.
    """

    table: str
    bucket_url: str
    secret: str
    region: str
    watcher: str = ""
    public_url: str = ""
    providers: tuple[str, ...] = ()
    pod_role: str = ""
    run_secrets: tuple[str, ...] = run_secrets.DEFAULT
    endpoint: str | None = None
    environment: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        """Leave out the environment, because it holds keys."""
        return f"Settings of {self.table} in {self.region}"

    @property
    def place(self) -> dict[str, str]:
        """Return the bucket's region and endpoint as environment variables that AWS tools read."""
        return {"AWS_REGION": self.region} | ({"AWS_ENDPOINT_URL": self.endpoint} if self.endpoint else {})

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Settings":
        """Parse the environment. Raises PermanentError naming the variables that are missing or invalid."""
        missing = [name for name in (STORE, BUCKET, SECRET, "AWS_REGION") if not environment.get(name)]
        if missing:
            raise PermanentError(f"the function's environment lacks {', '.join(missing)}; deploy again")
        store = urlsplit(environment[STORE])
        options = dict(parse_qsl(store.query))
        if store.scheme != "dynamodb" or not store.netloc:
            raise PermanentError(f"{STORE} is not a table such as dynamodb://prime-train; deploy again")
        return cls(
            table=store.netloc,
            bucket_url=environment[BUCKET],
            secret=environment[SECRET],
            region=options.get("region") or environment["AWS_REGION"],
            watcher=environment.get(WATCHER, ""),
            public_url=environment.get(PUBLIC_URL, "").rstrip("/"),
            providers=tuple(
                name.strip() for name in environment.get(PROVIDER, "").split(",") if name.strip()
            ),
            pod_role=environment.get(POD_ROLE, ""),
            run_secrets=_listed(environment),
            endpoint=options.get("endpoint") or environment.get("AWS_ENDPOINT_URL"),
            environment=environment,
        )


def _listed(environment: Mapping[str, str]) -> tuple[str, ...]:
    try:
        return run_secrets.patterns(environment.get(run_secrets.VARIABLE, ""))
    except ValueError as error:
        raise PermanentError(f"{error}; deploy again with another RunSecrets") from None
