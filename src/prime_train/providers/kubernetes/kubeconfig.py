"""Where a cluster is and who calls it: from a kubeconfig, or inside the cluster from the pod's service
account.

What `kubectl` accepts and is refused here, with advice: passwords, the removed `auth-provider`, and servers
whose certificate is not checked.
"""

import base64
import binascii
import os
import ssl
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import is_loopback
from prime_train.providers.kubernetes.exec_plugin import ExecPlugin, Login, token_in
from prime_train.providers.kubernetes.settings import FILE_BYTES_MAX, KUBECONFIG, SETTINGS, KubernetesSettings
from prime_train.providers.rental.user_settings import home_folder

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
DEFAULT_NAMESPACE = "default"
Json = dict[str, Any]
_EMBEDDED = "cluster"
"""The name of everything in a kubeconfig with one context."""
_FIXED = (
    "for a control plane elsewhere, give a kubeconfig with the token of a service account of its own "
    "(docs/kubernetes.md)"
)


@dataclass(frozen=True)
class Cluster:
    """The way to a cluster. `authority`: the PEM text of the certificates to trust; empty: the public
    authorities. `login` returns what the caller proves itself with; with True it is asked for anew, because
    the last one was refused.
    """

    url: str
    namespace: str = DEFAULT_NAMESPACE
    authority: str = field(default="", repr=False)
    login: Callable[[bool], Login] = field(default=lambda anew: Login(), repr=False)


def find_cluster(
    settings: KubernetesSettings, environment: Mapping[str, str], *, account: Path = SERVICE_ACCOUNT
) -> Cluster:
    """Return the cluster of the settings. Raises PermanentError that says what is missing or wrong."""
    given = _given(settings, environment, account)
    return _inside(settings, environment, account) if given is None else given.cluster(settings)


def embedded(
    settings: KubernetesSettings, environment: Mapping[str, str], *, account: Path = SERVICE_ACCOUNT
) -> Json:
    """Return a kubeconfig that means the same on every machine: with the one context of the settings, and the
    contents of the files that it names. Raises PermanentError if the caller's credential is only to be had on
    this machine.
    """
    given = _given(settings, environment, account)
    if given is None:
        raise PermanentError(
            f"the service account of a pod is used here, whose token is replaced about every hour; {_FIXED}"
        )
    return given.embedded(settings)


def _given(
    settings: KubernetesSettings, environment: Mapping[str, str], account: Path
) -> "_Kubeconfig | None":
    """Return the kubeconfig; None: the service account of the pod that this process runs in is used
    instead.
    """
    given = settings.kubeconfig or environment.get(KUBECONFIG, "")
    if not given and environment.get(HOST) and (account / "token").exists():
        return None
    if isinstance(given, dict):
        return _Kubeconfig(given, Path(), f"in {SETTINGS}", environment)
    # Of several files in KUBECONFIG, kubectl merges the contents; here the first one that exists has to
    # contain all of it.
    default = home_folder(environment) / ".kube" / "config"
    paths = [Path(each).expanduser() for each in given.split(":") if each] or [default]
    path = next((each for each in paths if each.exists()), paths[0])
    return _Kubeconfig(_read_yaml(path), path.parent, str(path), environment)


def tls_of(authority: str, login: Login) -> ssl.SSLContext | None:
    """Return the TLS context with these authorities and the caller's own certificate; None if neither is
    given.
    """
    if not authority and not login.certificate:
        return None
    try:
        context = ssl.create_default_context(cadata=authority or None)
        if login.certificate:
            _load_own(context, f"{login.certificate}\n{login.key}\n".encode())
    except (ssl.SSLError, ValueError):
        raise PermanentError(
            "the cluster's certificate authority or the client's certificate and key are not valid PEM texts"
        ) from None
    except OSError as error:
        raise TemporaryError(
            f"the client's certificate could not be loaded: {error.strerror or error}"
        ) from None
    return context


def _load_own(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a certificate with its key, which the standard library reads from a file only: on Linux one in
    memory, so that the key is on no disk.
    """
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.NamedTemporaryFile("wb", suffix=".pem") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)


def _inside(settings: KubernetesSettings, environment: Mapping[str, str], account: Path) -> Cluster:
    host, port = environment[HOST], environment.get(PORT, "443")
    address = f"[{host}]" if ":" in host else host
    namespace = settings.namespace or _text(account / "namespace").strip() or DEFAULT_NAMESPACE

    def login(anew: bool) -> Login:
        # Read each time, because the kubelet replaces the token about every hour.
        return Login(_text(account / "token").strip())

    return Cluster(f"https://{address}:{port}", namespace, _text(account / "ca.crt"), login)


class _Kubeconfig:
    """A kubeconfig. `folder`: where relative paths in it begin; `where`: its name in messages."""

    def __init__(self, content: Json, folder: Path, where: str, environment: Mapping[str, str]) -> None:
        self._content, self._folder, self._where, self._environment = content, folder, where, environment

    def cluster(self, settings: KubernetesSettings) -> Cluster:
        name, context, cluster, user = self._parts(settings)
        url = cluster.get("server")
        if (
            not isinstance(url, str)
            or not urlsplit(url).hostname
            or urlsplit(url).scheme not in ("http", "https")
        ):
            raise self._wrong(f"the cluster of context {name!r} has no server such as https://host:6443")
        if urlsplit(url).scheme == "http" and not is_loopback(url):
            raise self._wrong(
                f"the server {urlsplit(url).hostname} would be called without encryption; write https"
            )
        for key, advice in _REFUSED_OF_CLUSTERS.items():
            if cluster.get(key):
                raise self._wrong(f"{key} of the cluster is not supported; {advice}")
        namespace = settings.namespace or context.get("namespace") or DEFAULT_NAMESPACE
        authority = self._data(cluster, "certificate-authority")
        return Cluster(url.rstrip("/"), str(namespace), authority, self._login(user, url, authority))

    def embedded(self, settings: KubernetesSettings) -> Json:
        found, (_, _, _, user) = self.cluster(settings), self._parts(settings)
        for key in ("exec", "tokenFile"):
            if user.get(key):
                raise self._wrong(
                    f"the credential comes from `{key}` of the user, which is only on this machine; {_FIXED}"
                )
        login = found.login(False)
        cluster = _inline({"certificate-authority": found.authority})
        own = _inline({"client-certificate": login.certificate, "client-key": login.key}) | (
            {"token": login.token} if login.token else {}
        )
        return {
            "current-context": _EMBEDDED,
            "contexts": [
                {
                    "name": _EMBEDDED,
                    "context": {"cluster": _EMBEDDED, "user": _EMBEDDED, "namespace": found.namespace},
                }
            ],
            "clusters": [{"name": _EMBEDDED, "cluster": {"server": found.url, **cluster}}],
            "users": [{"name": _EMBEDDED, "user": own}],
        }

    def _parts(self, settings: KubernetesSettings) -> tuple[str, Json, Json, Json]:
        """Return the name of the context, the context, its cluster and its user."""
        name = settings.context or self._content.get("current-context") or ""
        if not isinstance(name, str) or not name:
            raise self._wrong("it has no current-context; name one as `context` in the settings")
        context = self._entry("contexts", "context", name)
        cluster = self._entry("clusters", "cluster", context.get("cluster"))
        return (
            name,
            context,
            cluster,
            self._entry("users", "user", context["user"]) if context.get("user") else {},
        )

    def _login(self, user: Json, url: str, authority: str) -> Callable[[bool], Login]:
        for key, advice in _REFUSED_OF_USERS.items():
            if user.get(key):
                raise self._wrong(f"{key} of the user is not supported; {advice}")
        if user.get("exec") is not None:
            return ExecPlugin.of(user["exec"], self._folder, self._where, self._environment, url, authority)
        file = user.get("tokenFile")
        if isinstance(file, str) and file:
            path = self._folder / Path(file).expanduser()
            return lambda anew: Login(self._token(_text(path), "tokenFile"))
        token = str(user.get("token") or "")
        fixed = Login(
            self._token(token, "token") if token else "",
            self._data(user, "client-certificate"),
            self._data(user, "client-key"),
        )
        if bool(fixed.certificate) != bool(fixed.key):
            raise self._wrong("the user needs both client-certificate and client-key")
        return lambda anew: fixed

    def _token(self, text: str, key: str) -> str:
        """Return the token. Raises PermanentError for a text that can be none, such as another file than that
        of a token.
        """
        token = token_in(text.strip())
        if not token:
            raise self._wrong(f"the {key} of the user is no token, which is one line without blanks")
        return token

    def _entry(self, plural: str, kind: str, name: object) -> Json:
        rows = self._content.get(plural)
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and row.get("name") == name and isinstance(row.get(kind), dict):
                return dict(row[kind])
        raise self._wrong(f"it has no {kind} {str(name)[:100]!r}")

    def _data(self, part: Json, key: str) -> str:
        """Return a text that stands in the kubeconfig in base64, or in a file that it names; empty if there
        is neither.
        """
        inline, file = part.get(f"{key}-data"), part.get(key)
        if isinstance(inline, str) and inline:
            try:
                return base64.b64decode("".join(inline.split()), validate=True).decode()
            except (binascii.Error, ValueError):
                raise self._wrong(f"{key}-data is not base64") from None
        return _text(self._folder / Path(file).expanduser()) if isinstance(file, str) and file else ""

    def _wrong(self, reason: str) -> PermanentError:
        return PermanentError(f"kubeconfig {self._where}: {reason}")


_REFUSED_OF_CLUSTERS = {
    "insecure-skip-tls-verify": "anyone could read the key; set certificate-authority",
    "tls-server-name": "use an address that the server's certificate names",
    "proxy-url": "set HTTPS_PROXY",
}
_REFUSED_OF_USERS = {
    "auth-provider": "Kubernetes has removed it; use an exec plugin such as gke-gcloud-auth-plugin or "
    "kubelogin",
    "username": "Kubernetes has removed passwords; use a token or a client certificate",
    "as": "give the user itself the rights",
}


def _inline(texts: Mapping[str, str]) -> dict[str, str]:
    return {f"{key}-data": base64.b64encode(text.encode()).decode() for key, text in texts.items() if text}


def _read_yaml(path: Path) -> Json:
    try:
        content = yaml.safe_load(_text(path))
    except yaml.YAMLError:
        raise PermanentError(f"kubeconfig {path} is not YAML") from None
    if not isinstance(content, dict):
        raise PermanentError(f"kubeconfig {path} is empty, or is no kubeconfig")
    return content


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise PermanentError(f"{path} cannot be read: {reason}") from None
