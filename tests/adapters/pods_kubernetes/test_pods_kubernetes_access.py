"""How a cluster is found and logged in to: settings, kubeconfigs, exec plugins, the service account inside a
cluster, and TLS.
"""

import base64
import http.server
import json
import os
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.configured import reading_context
from prime_train.providers.kubernetes.client import KubernetesClient
from prime_train.providers.kubernetes.exec_plugin import ExecPlugin, Login
from prime_train.providers.kubernetes.kubeconfig import Cluster, embedded, find_cluster, tls_of
from prime_train.providers.kubernetes.provider import KubernetesProvider
from prime_train.providers.kubernetes.settings import KubernetesSettings, read_settings
from tests.adapters.rental_apis.shared import raised
from tests.fakes.certificates import Certificate, make_certificate

SERVER = "https://10.0.0.1:6443"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "IfAvailable"}


def kubeconfig(user: dict[str, Any], cluster: dict[str, Any] | None = None, **context: str) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "it", "user": "me", **context}},
            {"name": "bare", "context": {"cluster": "it"}},
        ],
        "clusters": [{"name": "it", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "me", "user": user}],
    }


def found(user: dict[str, Any], cluster: dict[str, Any] | None = None, **context: str) -> Cluster:
    return find_cluster(KubernetesSettings(kubeconfig=kubeconfig(user, cluster, **context)), {})


# ------------------------------------------------------------------------------------------------------------
# settings


def test_settings_are_a_file_or_a_text_and_have_defaults(tmp_path: Path) -> None:
    file = tmp_path / "kubernetes.yaml"
    file.write_text("namespace: a\n")
    assert read_settings({"PRIME_TRAIN_KUBERNETES": str(file)}).namespace == "a"
    assert read_settings({"PRIME_TRAIN_KUBERNETES": "namespace: b\nqueue: c\n"}).namespace == "b"
    assert read_settings({"PRIME_TRAIN_KUBERNETES": "{}"}) == read_settings({}) == KubernetesSettings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/nowhere/at/all.yaml", "cannot be read: No such file"),
        ("namespace: a\nqeue: b", "qeue: Extra inputs"),
        ("namespace: A_b\ngrace_s: 1", "namespace"),
        ("{namespace: [", "is not YAML"),
        ("- a\n- b", "must contain settings"),
        ("{pools: [{name: a, node_selector: {}}]}", "pools.0.node_selector"),
        (
            "{pools: [{name: a, node_selector: {x: y}}, {name: a, node_selector: {x: z}}]}",
            "two pools have the same name",
        ),
        ("{usd_per_hour: -1}", "usd_per_hour"),
        ("{kubeconfig: {users: secret-word}, cpus: x}", "cpus"),
    ],
)
def test_wrong_settings_are_named_without_their_values(text: str, words: str) -> None:
    error = raised(lambda: read_settings({"PRIME_TRAIN_KUBERNETES": text}))
    assert isinstance(error, PermanentError)
    assert words in str(error)
    assert "secret-word" not in str(error)


# ------------------------------------------------------------------------------------------------------------
# kubeconfigs


def test_a_kubeconfig_is_found_where_kubectl_finds_it(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    for name, namespace in ((".kube/config", "at-home"), ("own", "own"), ("named", "named")):
        (tmp_path / name).write_text(yaml.safe_dump(kubeconfig({"token": "t"}, namespace=namespace)))
    home = {"HOME": str(tmp_path)}
    assert find_cluster(KubernetesSettings(), home).namespace == "at-home"
    assert (
        find_cluster(
            KubernetesSettings(), {**home, "KUBECONFIG": f"{tmp_path}/missing:{tmp_path}/own"}
        ).namespace
        == "own"
    )
    given = KubernetesSettings(kubeconfig=str(tmp_path / "named"))
    assert find_cluster(given, {**home, "KUBECONFIG": str(tmp_path / "own")}).namespace == "named"
    assert find_cluster(given.model_copy(update={"namespace": "mine"}), home).namespace == "mine"
    assert find_cluster(given.model_copy(update={"context": "bare"}), home).namespace == "default"


def test_texts_and_files_of_a_kubeconfig_are_read(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    (tmp_path / "token").write_text("from-file\n")
    content = kubeconfig({"tokenFile": "token"}, {"certificate-authority": "ca.pem"})
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    cluster = find_cluster(KubernetesSettings(kubeconfig=str(tmp_path / "config")), {})
    assert (cluster.authority, cluster.login(False)) == ("CA", Login("from-file"))
    (tmp_path / "token").write_text("renewed")
    assert cluster.login(False) == Login("renewed")
    inline = {
        "client-certificate-data": base64.b64encode(b"C").decode(),
        "client-key-data": base64.b64encode(b"K").decode(),
    }
    assert found(inline, {"certificate-authority-data": "Q0E="}).authority == "CA"
    assert found(inline).login(False) == Login("", "C", "K")


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"username": "a", "password": "secret-word"}, {}, "removed passwords"),
        ({"auth-provider": {"name": "gcp"}}, {}, "gke-gcloud-auth-plugin"),
        ({"as": "root", "token": "secret-word"}, {}, "the rights"),
        ({"token": "secret-word"}, {"insecure-skip-tls-verify": True}, "certificate-authority"),
        ({"token": "secret-word"}, {"server": "http://cluster.example.org"}, "without encryption"),
        ({"token": "secret-word"}, {"server": "cluster"}, "no server"),
        ({"token": "secret-word"}, {"certificate-authority-data": "%%%"}, "base64"),
        ({"token": "secret-word"}, {"certificate-authority": "/nowhere"}, "cannot be read"),
        ({"client-certificate-data": "Qw=="}, {}, "both"),
        ({"exec": {"command": "x"}}, {}, "apiVersion"),
        ({"exec": {**EXEC, "command": ""}}, {}, "no command"),
        ({"exec": {**EXEC, "command": "x", "interactiveMode": "Always"}}, {}, "nobody to ask"),
    ],
)
def test_what_a_kubeconfig_may_not_have_is_refused_with_advice(
    user: dict[str, Any], cluster: dict[str, Any], words: str
) -> None:
    error = raised(lambda: found(user, cluster))
    assert isinstance(error, PermanentError)
    assert words in str(error)
    assert "secret-word" not in str(error)


@pytest.mark.parametrize(
    "text", ["", "- a", "{", "current-context: x", "current-context: x\ncontexts: 3", "contexts: []"]
)
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    error = raised(lambda: find_cluster(KubernetesSettings(kubeconfig=str(tmp_path / "config")), {}))
    assert isinstance(error, PermanentError)
    assert str(tmp_path) in str(error)


def test_inside_a_cluster_the_service_account_is_used_and_its_token_read_each_time(tmp_path: Path) -> None:
    for name, text in (("token", "one"), ("ca.crt", "CA"), ("namespace", "mine")):
        (tmp_path / name).write_text(text)
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/nowhere"}
    cluster = find_cluster(KubernetesSettings(), inside, account=tmp_path)
    assert (cluster.url, cluster.namespace, cluster.authority) == ("https://[fd00::1]:443", "mine", "CA")
    assert cluster.login(False) == Login("one")
    (tmp_path / "token").write_text("two")
    assert cluster.login(False) == Login("two")


# ------------------------------------------------------------------------------------------------------------
# exec plugins


def plugin(tmp_path: Path, program: str, **options: Any) -> ExecPlugin:
    """Return a plugin that runs this Python program, with a count of its runs in the file `runs`."""
    text = f"import json, os, sys\nopen({str(tmp_path / 'runs')!r}, 'a').write('x')\n{program}"
    given = {
        **EXEC,
        "command": sys.executable,
        "args": ["-c", text],
        "env": [{"name": "OWN", "value": "v"}],
        "provideClusterInfo": True,
    }
    made = ExecPlugin.of(given, tmp_path, "the file", {"PATH": "/usr/bin"}, SERVER, "CA")
    for name, value in options.items():
        setattr(made, name, value)
    return made


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


def test_a_plugin_is_run_when_its_credential_ends_or_was_refused(tmp_path: Path) -> None:
    now = [1_790_000_000.0]
    status = "{'token': os.environ['OWN'], 'expirationTimestamp': '2026-09-21T14:40:00Z'}"
    program = f"print(json.dumps({{'kind': 'ExecCredential', 'status': {status}}}))"
    login = plugin(tmp_path, program, wall=lambda: now[0])
    assert [login(False), login(False)] == [Login("v"), Login("v")]
    assert runs(tmp_path) == 1
    login(True)
    assert runs(tmp_path) == 2
    now[0] += 86_400
    login(False)
    assert runs(tmp_path) == 3


def test_a_plugin_is_told_the_cluster(tmp_path: Path) -> None:
    program = (
        "spec = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']\n"
        "print(json.dumps({'kind': 'ExecCredential', 'status': {'token': spec['cluster']['server'] + "
        "str(spec['interactive'])}}))"
    )
    assert plugin(tmp_path, program)(False).token == f"{SERVER}False"


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("print('log in again', file=sys.stderr); sys.exit(3)", {}, "exit code 3: log in again"),
        ("print('secret-word')", {}, "no ExecCredential"),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'status': {'clientCertificateData': "
            "'secret-word'}}))",
            {},
            "no ExecCredential",
        ),
        ("sys.stdin.read(); import time; time.sleep(600)", {"limit_s": 0.5}, "did not end within"),
        ("while True: print('secret-word' * 1000)", {}, "failed with exit code -9"),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'status': {'token': 'secret-word of two "
            "lines\\n'}}))",
            {},
            "no ExecCredential",
        ),
    ],
)
def test_a_plugin_that_fails_is_a_temporary_failure(
    tmp_path: Path, program: str, options: dict[str, Any], words: str
) -> None:
    error = raised(lambda: plugin(tmp_path, program, **options)(False))
    assert isinstance(error, TemporaryError)
    assert words in str(error)
    assert "secret-word" not in str(error)


def test_a_plugin_does_not_see_the_master_key_and_what_it_leaves_behind_holds_nobody(tmp_path: Path) -> None:
    text = (
        "import json, os, subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'left')!r}, 'w').write(str(left.pid))\n"
        "seen = [name for name in os.environ if name.startswith('PRIME_TRAIN')]\n"
        "print(json.dumps({'kind': 'ExecCredential', 'status': {'token': 'saw' + ','.join(seen)}}))"
    )
    environment = {"PATH": "/usr/bin", "PRIME_TRAIN_MASTER_KEY": "m", "PRIME_TRAIN_HOME": "/h"}
    made = ExecPlugin.of(
        {**EXEC, "command": sys.executable, "args": ["-c", text]},
        tmp_path,
        "the file",
        environment,
        SERVER,
        "CA",
    )
    try:
        assert made(False) == Login("saw")
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    "secret",
    ["-----BEGIN KEY-----\nabc\n-----END KEY-----\n", "A=b\0PRIME_TRAIN_MASTER_KEY=c\0", "", "two words"],
)
def test_a_file_that_holds_no_token_is_sent_to_no_server(tmp_path: Path, secret: str) -> None:
    """A kubeconfig of a stranger may name any file of the operator as its token."""
    (tmp_path / "id_rsa").write_text(secret)
    content = kubeconfig({"tokenFile": str(tmp_path / "id_rsa")})
    cluster = find_cluster(KubernetesSettings(kubeconfig=content), {"HOME": "/nowhere"})
    error = raised(lambda: cluster.login(False))
    assert isinstance(error, PermanentError)
    assert "is no token" in str(error)


def test_a_plugin_that_is_not_installed_is_named() -> None:
    cluster = found({"exec": {**EXEC, "command": "gke-gcloud-auth-plugin-that-is-not-there"}})
    error = raised(lambda: cluster.login(False))
    assert isinstance(error, PermanentError)
    assert (
        "gke-gcloud-auth-plugin-that-is-not-there, which logs in to the cluster, is not installed here"
        in str(error)
    )


# ------------------------------------------------------------------------------------------------------------
# TLS


@pytest.fixture(name="served", scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Certificate]]:
    """Yield the address of a server that demands a client certificate of its own authority, and that
    certificate.
    """
    certificate = make_certificate(tmp_path_factory.mktemp("tls"))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"kind": "JobList", "metadata": {}, "items": []}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = certificate.server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate.authority)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}", certificate
    server.shutdown()
    thread.join()
    server.server_close()


def client(url: str, authority: str, login: Login) -> KubernetesClient:
    return KubernetesClient(Cluster(url, "training", authority, lambda anew: login), pause_s=0.0)


def test_a_cluster_is_called_with_its_own_authority_and_the_clients_certificate(
    served: tuple[str, Certificate],
) -> None:
    url, certificate = served
    login = Login("", certificate.chain.read_text(), certificate.key.read_text())
    authority = certificate.authority.read_text()
    assert client(url, authority, login).jobs("a=b") == []
    assert isinstance(raised(lambda: client(url, authority, Login("token")).jobs("a=b")), TemporaryError)


def test_no_other_authority_is_trusted_whatever_the_environment_says(
    served: tuple[str, Certificate], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = served
    other = make_certificate(tmp_path).authority.read_text()
    login = Login("", certificate.chain.read_text(), certificate.key.read_text())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.authority))
    error = raised(lambda: client(url, other, login).jobs("a=b"))
    assert isinstance(error, PermanentError)
    assert "certificate" in str(error)


def test_certificates_that_are_none_are_refused() -> None:
    for authority, login in (("no PEM", Login()), ("", Login("", "no PEM", "no PEM"))):
        with pytest.raises(PermanentError, match="not valid PEM"):
            tls_of(authority, login)
    assert tls_of("", Login("t")) is None


# ------------------------------------------------------------------------------------------------------- for
# another machine


def test_settings_for_another_machine_are_one_line_with_everything_that_is_in_files_here(
    tmp_path: Path,
) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text(name)
    user = {"client-certificate": "cert.pem", "client-key": "key.pem"}
    content = kubeconfig(user, {"certificate-authority": "ca.pem"}, namespace="training")
    content["users"].append({"name": "other", "user": {"token": "of-another-context"}})
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    (tmp_path / "settings.yaml").write_text(
        f"kubeconfig: {tmp_path / 'config'}\ncpus: 0.5\npools: [{{name: a, node_selector: {{x: y}}}}]\n"
    )
    here = {"PRIME_TRAIN_KUBERNETES": str(tmp_path / "settings.yaml")}
    made = KubernetesProvider(reading_context(here)).portable()
    (text,) = made.values.values()
    assert "\n" not in text
    assert "of-another-context" not in text
    before, after = read_settings(here), read_settings({"PRIME_TRAIN_KUBERNETES": text})
    assert after == before.model_copy(update={"kubeconfig": after.kubeconfig})
    there = find_cluster(after, {})
    assert (there.url, there.namespace, there.authority, there.login(False)) == (
        SERVER,
        "training",
        "ca.pem",
        Login("", "cert.pem", "key.pem"),
    )
    assert (made.hosts, made.logs_in) == (("10.0.0.1",), False)


@pytest.mark.parametrize(
    "user", [{"exec": {**EXEC, "command": "gke-gcloud-auth-plugin"}}, {"tokenFile": "token"}]
)
def test_a_credential_that_only_this_machine_has_is_for_no_other_one(user: dict[str, Any]) -> None:
    text = json.dumps({"kubeconfig": kubeconfig(user)})
    error = raised(KubernetesProvider(reading_context({"PRIME_TRAIN_KUBERNETES": text})).portable)
    assert isinstance(error, PermanentError)
    assert (
        "which is only on this machine; for a control plane elsewhere, give a kubeconfig with the token"
        in str(error)
    )


def test_the_token_of_a_pods_service_account_is_for_no_other_machine(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    error = raised(
        lambda: embedded(KubernetesSettings(), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, account=tmp_path)
    )
    assert isinstance(error, PermanentError)
    assert "is replaced about every hour" in str(error)
