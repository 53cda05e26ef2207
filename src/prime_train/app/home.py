"""The home folder of this machine's control plane, and the parts built from it."""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.api_exchange import Witness
from prime_train.app.credentials import borrowed, has_own
from prime_train.app.machines import Machines
from prime_train.app.master_key import key_in, key_in_file
from prime_train.app.private_home import tighten, warn_of_open_bucket
from prime_train.app.run_access import Observer, RunFiles, StoredRuns
from prime_train.app.serve_lock import Held, Holder, held
from prime_train.app.serving import Announced, Serving
from prime_train.buckets.identity import OtherBucket, mark_of, marked, other_bucket
from prime_train.buckets.keys import RUNS
from prime_train.buckets.open import address, open_bucket
from prime_train.buckets.port import Bucket
from prime_train.clock import wall_s
from prime_train.configs import policy_place
from prime_train.environment import BUCKET, DYNAMO, FILE, HOME, MASTER, PUBLIC_URL, STORE
from prime_train.errors import ExternalError, PermanentError, UsageError
from prime_train.exit_codes import Exit
from prime_train.providers.by_name import PodsByProvider
from prime_train.providers.configured import Providers, default_providers
from prime_train.providers.kinds import LOCAL, allowed_providers
from prime_train.providers.stored_keys import with_stored
from prime_train.runs.launch_key import LAUNCH_KEY, LaunchToken, parse_launch_token
from prime_train.runs.run import Run
from prime_train.runs.store import Store
from prime_train.spec.access_run_secrets import for_runs
from prime_train.spec.policy import Caller, InForce, beyond, in_words
from prime_train.spec.run_secrets import listed
from prime_train.spec.spec import RunSpec
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.text.safe import neutralized
from prime_train.watch.port import Watched

if TYPE_CHECKING:
    from prime_train.providers.local.pods import LocalPods
    from prime_train.stores.remote import RemoteStore
    from prime_train.stores.remote_calls import About
    from prime_train.watch.context import Context
    from prime_train.webhook.state import WebhookContext

FIX_BUCKET = f"mount its disk, or set {BUCKET} to where it is now"
PORT = 7431
REASON_CHARS_MAX = 500


@dataclass(frozen=True)
class Home:
    """The folder with the store, the master key, the bucket (unless it is elsewhere) and the pods. `witness`:
    see `ProviderContext`.
    """

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    witness: Witness | None = field(default=None, repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Home":
        """Return the home that the environment names, or the default one, with the credentials that it keeps.
        Nothing is created.
        """
        root = policy_place.home_folder(environment)
        return cls(root, with_stored(root, environment))

    @property
    def serve_file(self) -> Path:
        return self.root / "serve.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "serve.lock"

    @property
    def elsewhere(self) -> str:
        """Return the address of the remote control plane whose store this home uses; empty if the store is in
        the home or in a DynamoDB table.
        """
        return "" if self.table_url else self.environment.get(STORE, "").rstrip("/")

    @property
    def table_url(self) -> str:
        """Return the URL of the table that is the store; empty if there is none."""
        named = self.environment.get(STORE, "")
        return named if named.startswith(DYNAMO) else ""

    @property
    def bucket_url(self) -> str:
        named = self.environment.get(BUCKET)
        return self._bucket_elsewhere(named) if self.elsewhere else named or (self.root / "bucket").as_uri()

    @property
    def has_runs(self) -> bool:
        """Return whether runs were ever stored here."""
        return bool(self.environment.get(STORE)) or (self.root / "control.sqlite").exists()

    def store(self) -> Store:
        if self.elsewhere:
            return self.remote()
        if self.table_url:
            from prime_train.stores.dynamo.opening import open_dynamo

            return open_dynamo(self.table_url, self.environment)

        self.make()
        return SqliteStore(self.root / "control.sqlite")

    def known_store(self) -> Store | None:
        """Return the store; None if no run was ever stored, because reading must not create a home."""
        return self.store() if self.has_runs else None

    def remote(self) -> "RemoteStore":
        from prime_train.stores.remote import RemoteStore

        return RemoteStore(self.elsewhere, self.launch_key or self.master())

    @property
    def launch_key(self) -> LaunchToken | None:
        """Return the launch key with which the remote control plane is called, or None if that is done with
        the master key. Raises UsageError if it is not valid.
        """
        text = self.environment.get(LAUNCH_KEY, "")
        if not text or not self.elsewhere or self.environment.get(MASTER):
            return None
        token = parse_launch_token(text)
        if token is None:
            raise UsageError(
                f"{LAUNCH_KEY} is not a launch key",
                fix=Advice(Call(Operation.CREATE_LAUNCH_KEY), " makes one"),
            )
        return token

    def bucket(self) -> Bucket:
        """Return the bucket; that of a remote control plane is opened with keys that it issues, unless keys
        are set here.
        """
        if self.launch_key is not None:
            raise PermanentError("a launch key does not open the bucket")
        self.make()
        if self.elsewhere and not has_own(self.environment) and not self.bucket_url.startswith(FILE):
            return borrowed(self.bucket_url, self.environment, self.remote())
        mark = self.bucket_mark
        is_new = not mark and not self.environment.get(BUCKET)  # the home's own folder, still unused
        return open_bucket(self.bucket_url, self.environment, mark=mark, make=is_new)

    @property
    def bucket_mark(self) -> str:
        """Return the identity of the folder that is the bucket, as stored; empty if it was never used from
        here. An S3 bucket always exists under its address, so its identity is compared only right before use.
        """
        if not self.bucket_url.startswith(FILE) or not self.has_runs:
            return ""

        return self.store().watch().buckets.get(address(self.bucket_url), "")

    def make_bucket(self) -> None:
        """Prepare the bucket for use: a new one, such as a folder that is absent or empty, is created and
        marked, and its identity is stored. Raises UsageError if the bucket known by this address is missing
        or another one is there, and ExternalError if it does not answer.
        """
        self.make()
        store, url = self.store(), self.bucket_url
        known = store.watch().buckets.get(address(url), "")
        bucket = open_bucket(url, self.environment, mark=known, make=not known)
        if known:
            try:
                found = mark_of(bucket)
            except OtherBucket as error:
                raise UsageError(str(error), fix=FIX_BUCKET, code=Exit.EXTERNAL_REFUSED) from error
            if found != known:
                raise UsageError(other_bucket(url, found, known), fix=FIX_BUCKET, code=Exit.EXTERNAL_REFUSED)
            return
        # Raise UsageError if a bucket used before marks existed is empty although a run has checkpoints: its
        # disk is probably not mounted.
        going_on = [run.run_id for run in store.list_runs() if not run.is_over and run.durable_step]
        if going_on and not any(True for _ in bucket.list(RUNS)):
            message = f"the bucket {url} is empty, and {going_on[0]} has checkpoints in its bucket"
            raise UsageError(message, fix=FIX_BUCKET, code=Exit.EXTERNAL_REFUSED)
        mark, written = marked(bucket), False
        while not written:
            watch = store.watch()
            after = replace(watch, version=watch.version + 1, buckets=watch.buckets | {address(url): mark})
            written = store.save_watch(after, version=watch.version)

    @cached_property
    def about(self) -> "About":
        """Return the remote control plane's description of itself; requested once."""
        return self.remote().about()

    def _bucket_elsewhere(self, named: str | None) -> str:
        """Return the remote control plane's own bucket, whatever is set here, because two buckets would each
        lack the objects of the other. Raises UsageError if another one is set here, or if it is a folder of
        the remote machine.
        """
        theirs = self.about.bucket_url
        if named and named.rstrip("/") != theirs.rstrip("/"):
            raise UsageError(
                f"{BUCKET} is {named}, but the control plane's bucket is {theirs}",
                fix=f"unset {BUCKET} here, or set it to the control plane's bucket",
            )
        folder = urlsplit(theirs)
        if folder.scheme == "file" and not Path(unquote(folder.path)).is_dir():
            raise UsageError(
                f"the control plane's bucket, {theirs}, is a folder on its own machine",
                fix="serve it with a bucket such as s3://...",
            )
        return theirs

    def providers(self, webhook_url: str = "", *, waits: bool = False) -> Providers:
        """Return the providers; without a `webhook_url`, for reading only."""
        store = self.store if self.environment.get(STORE) else None
        return Providers(
            self.root,
            self.environment,
            self.master(),
            self.bucket_url,
            webhook_url,
            waits,
            store,
            self.witness,
        )

    def pods(self) -> PodsByProvider:
        """Return the pods for reading only: an agent would have no URL to call."""
        return self.providers().pods

    def local_pods(self) -> "LocalPods":
        return self.providers_here().local

    def files(self) -> RunFiles:
        """Return where the files of runs are."""
        return RunFiles(self.bucket, Machines(self.providers_here))

    def observer(self) -> Observer:
        """Return what shows runs beside their records and files."""
        return Observer(partial(self.context, ""), lambda: self.served.is_served, self.environment)

    def stored_runs(self, url: str | None = None) -> StoredRuns:
        """Return the runs in the bucket at `url`, by default in this home's. Raises UsageError if a file://
        folder does not exist, instead of creating an empty bucket.
        """
        there = url or self.bucket_url
        parts = urlsplit(there)
        if parts.scheme == "file" and not Path(unquote(parts.path)).is_dir():
            fix = Advice("give its URL with ", Option(SettingAdvice.BUCKET, "URL"), f", or {BUCKET}")
            raise UsageError(f"there is no bucket at {there}", fix=fix)
        bucket = open_bucket(url, self.environment) if url else self.bucket()
        return StoredRuns(there, bucket, self.store() if self.root.is_dir() or self.is_remote else None)

    def providers_here(self) -> Providers:
        """Return the providers for reading only, in a home that is created if there is none."""
        self.make()
        return self.providers()

    def why_no_walls(self) -> str:
        """Return why nothing hides this machine's files from the commands of runs on it; empty if something
        does, or none can run here.
        """
        return self.local_pods().why_no_walls if not self.environment.get(STORE) else ""

    def public_url(self, url: str) -> str:
        """Return the URL that remote machines call, for a webhook that listens at `url`. If it is not set,
        the last one for this address is used, because rented machines call that one.
        """
        last = self.last_serving()
        kept = last.public_url if last is not None and last.url == url else url
        return (self.environment.get(PUBLIC_URL) or kept).rstrip("/")

    def master(self) -> bytes:
        """Return the master key, from which all agents' keys are derived: the environment's, or the home's
        own, created on first use.
        """
        key = key_in(self.environment)
        if key is not None:
            return key
        self.make()
        return key_in_file(self.root / "master.key")

    @property
    def secrets(self) -> dict[str, str]:
        """Return the variables of this environment that runs may have, by the operator's list. Raises
        UsageError if the list is invalid.
        """
        return for_runs(self.environment, listed(self.environment))

    @property
    def run_secrets(self) -> tuple[str, ...]:
        """Return the names and globs of the variables that the control plane provides to runs; for a remote
        one, its own list.
        """
        return self.about.run_secrets if self.elsewhere else listed(self.environment)

    @property
    def is_remote(self) -> bool:
        """Whether whoever launches from here is not at the home of the control plane: the store is elsewhere,
        and so are its watchers.
        """
        return bool(self.environment.get(STORE))

    def policy(self) -> InForce | None:
        """Return the operator's policy as it is now; of a remote control plane its own, None if its version
        knows none. Raises UsageError if it cannot be used, here or there.
        """
        if self.elsewhere:
            about = self.remote().about()
            if about.policy_unusable:
                what = (
                    f"the control plane at {self.elsewhere} cannot read its policy, so nothing is launched: "
                )
                raise UsageError(
                    what + neutralized(about.policy_unusable[:REASON_CHARS_MAX]), code=Exit.EXTERNAL_REFUSED
                )
            return about.policy
        from prime_train.app.policy import in_force

        last = self.last_serving() if not self.table_url else None
        return in_force(self.root, self.environment, served_from=last.providers if last is not None else ())

    def not_allowed(self, run: Run, *, defaults: Sequence[str] = ()) -> str:
        """Return what the run asks beyond the operator's policy, in words; empty if nothing. `defaults`: the
        providers from which a run is rented here that names none; without them, those of the process that
        serves the home.
        """
        policy = self.policy()
        if policy is None:
            return ""
        judged = replace(policy, defaults=tuple(defaults) or policy.defaults)
        return in_words(
            beyond(judged, run.spec, Caller.of(run.origin, is_remote=self.is_remote or run.from_elsewhere))
        )

    def webhook(self, public_url: str = "", *, watches: bool = False) -> "WebhookContext":
        """Return what the webhook of this home needs."""
        from prime_train.app.contexts import webhook_context

        return webhook_context(self, public_url, watches=watches)

    def catch_up(self) -> None:
        """Make a store that was restored from an older copy adopt what the bucket has recorded since. Call
        this before agents are answered, because an agent whose attempt the store does not have is answered
        `fenced`. If it fails now, the watcher does it before it launches or ends anything.
        """
        from prime_train.watch.attempt_records import catch_up_all

        log = logging.getLogger("prime_train.serve")
        store = self.store()
        try:
            for run_id in catch_up_all(store, self.bucket(), self.master(), store.now_s()):
                log.warning(
                    "%s: the store was restored from an older copy; the run continues from the record in the "
                    "bucket",
                    run_id,
                )
        except ExternalError as error:
            log.warning("it cannot be determined now whether the store is an older copy: %s", error)

    def context(
        self, webhook_url: str, *, watched: Watched | None = None, waits: bool = False, serves: bool = False
    ) -> "Context":
        """Return what a watcher needs; the arguments are those of `watcher_context`."""
        from prime_train.app.contexts import watcher_context

        return watcher_context(self, webhook_url, watched=watched, waits=waits, serves=serves)

    def watching(self, watched: Watched, *, waits: bool = False) -> "Context":
        """Return what a watcher needs beside the process that serves. Raises UsageError if nothing has served
        the home yet.
        """
        return self.context(self.served.webhook_url, watched=watched, waits=waits)

    def calls_providers_of(self, spec: RunSpec) -> bool:
        """Return whether the run's providers can be called from here."""
        return self.launch_key is None and set(allowed_providers(spec.hardware)) <= self.pods().names

    @property
    def served(self) -> Serving:
        """Return who serves this home, which is found out anew."""
        return Serving(self.elsewhere, self.is_remote, self.has_runs, self.last_serving, self._answers)

    def _answers(self, announced: Announced) -> bool:
        from prime_train.watch.canary_http import CanaryHttp

        # The description of one that is called with a launch key has just been read.
        return self.launch_key is not None or CanaryHttp(announced.url, self.master()).is_answering(wall_s())

    def serving(self) -> Announced | None:
        return self.served.now

    @property
    def is_served(self) -> bool:
        return self.served.is_served

    @contextmanager
    def serving_alone(self, *, in_background: bool = False) -> Iterator[None]:
        """Make this process the only one that serves this home during the `with` block. `in_background`:
        whether a command started it in the background. Raises UsageError if another process serves it.
        """
        self.make()
        tighten(self.root)
        bucket = urlsplit(self.bucket_url)
        if bucket.scheme == "file" and not Path(unquote(bucket.path)).is_relative_to(self.root):
            warn_of_open_bucket(Path(unquote(bucket.path)))
        try:
            with held(self.lock_file, in_background=in_background):
                yield
        except Held as error:
            raise self.already_served(error.holder) from None

    def already_served(self, holder: Holder) -> UsageError:
        """Return the error that says who serves this home already."""
        serving = self.last_serving()
        where = f", at {serving.url}" if serving is not None and serving.pid == holder.pid else ""
        how = Advice(Call(Operation.DOWN)) if holder.in_background else Advice("end that process")
        fix = Advice(
            "for an additional watcher: ", Call(Operation.WATCH), "; to serve it anew, first: ", *how.parts
        )
        return UsageError(
            f"{self.root} is already served{where} by {holder.named}", fix=fix, code=Exit.EXTERNAL_REFUSED
        )

    def last_serving(self) -> Announced | None:
        """Return the content of serve.json, whose writer may have ended; of a remote control plane its own
        description; or None.
        """
        if self.elsewhere:
            about = self.about
            return Announced(
                self.elsewhere,
                0,
                about.public_url or self.elsewhere,
                about.providers or (LOCAL,),
                about.bucket_url,
            )
        if self.table_url and self.environment.get(PUBLIC_URL):
            url = self.environment[PUBLIC_URL].rstrip("/")
            return Announced(url, 0, url, default_providers(self.environment), self.bucket_url)
        try:
            content = json.loads(self.serve_file.read_text())
            # An older version that still serves wrote a single one.
            providers = tuple(map(str, content.get("providers") or (content.get("provider") or LOCAL,)))
            public_url, bucket_url = (
                str(content.get("public_url") or content["url"]),
                str(content.get("bucket_url") or self.bucket_url),
            )
            return Announced(str(content["url"]), int(content["pid"]), public_url, providers, bucket_url)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write_serving(self, url: str) -> None:
        """Write serve.json, completely or not at all. It stays after the process ends, so that the next one
        serves on the same port. Raises OSError.
        """
        draft = self.root / f".serve-{os.getpid()}.json"
        settings = {
            "public_url": self.public_url(url),
            "providers": default_providers(self.environment),
            "bucket_url": self.bucket_url,
        }
        try:
            draft.write_text(json.dumps({"url": url, "pid": os.getpid()} | settings) + "\n")
            draft.replace(self.serve_file)
        finally:
            draft.unlink(missing_ok=True)

    def port(self) -> int:
        """Return the port to serve on: the last one, because running pods call that address."""
        return self._last_port() or PORT

    def port_meanwhile(self) -> int:
        """Return the port to serve on temporarily: the last one, or 0 (any) if there is none, so that several
        homes can be served at a time; or the default port if machines reach it by a configured public
        address.
        """
        return self._last_port() or (PORT if self.environment.get(PUBLIC_URL) else 0)

    def _last_port(self) -> int | None:
        serving = self.last_serving()
        return urlsplit(serving.url).port if serving is not None else None

    def make(self) -> None:
        """Create the home's folder, unless there is one. Raises UsageError if that is not possible."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(
                f"{self.root}: {error.strerror}",
                fix=f"set {HOME} to a folder that you own",
                code=Exit.EXTERNAL_REFUSED,
            ) from error
