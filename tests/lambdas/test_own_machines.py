"""The functions on AWS with machines of one's own and with a cluster: what `provider add --to aws` stores
suffices for them.
"""

import getpass
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from prime_train.providers.ssh_client.keys import derived_public_key
from prime_train.runs.run import RunState
from tests.e2e.plane import CONFIG, STEPS
from tests.fakes.kubernetes import TOKEN, FakeKubernetes
from tests.fakes.prime import needs_sshd
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts
from tests.lambdas.deployed import STACK, Deployed, deployed, output, prime_train
from tests.lambdas.test_story import run_of, watched
from tests.waiting import await_true

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux"),
]

TO_AWS = ("--to", "aws", "--stack", STACK)


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> Iterator[Deployed]:
    """Return a deployment of the test's own: functions that have read the secret read it again after minutes
    only.
    """
    with deployed(tmp_path / "aws", policy="{providers: [prime, ssh, kubernetes]}") as it:
        yield it


def launched(own: Deployed, folder: Path, provider: str, *words: str) -> str:
    """Launch a run of an operator who has nothing but an address and a key, and return its id."""
    (folder / "tree").mkdir()
    (folder / "tree" / "data.json").write_text(json.dumps(list(range(100))))
    config = yaml.safe_load(CONFIG.replace("TREE", str(folder / "tree")))
    config["hardware"] |= {"provider": provider}
    config["health"] |= {"first_heartbeat_s": 240, "first_step_s": 240, "silence_s": 120, "stall_s": 240}
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    before = {run.run_id for run in own.store.list_runs()}
    output(own.operator, "run", str(folder / "run.yaml"), *words)
    ((run_id,),) = ([run.run_id for run in own.store.list_runs() if run.run_id not in before],)
    return run_id


@needs_sshd
@pytest.mark.exhaustive
def test_the_functions_train_on_a_machine_of_ones_own(own: Deployed, tmp_path: Path) -> None:
    line = derived_public_key(bytes.fromhex(own.key))
    machine = Machine(tmp_path / "machine", f"own-{own.key[:8]}", line, Cuts())
    try:
        (tmp_path / ".ssh").mkdir()
        (tmp_path / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{machine.port} {machine.host_key()}")
        entry = {"name": "box", "address": f"{getpass.getuser()}@127.0.0.1:{machine.port}", "disk_gib": 10}
        (tmp_path / "machines.yaml").write_text(yaml.safe_dump({"machines": [entry]}))
        env = {**own.env, "HOME": str(tmp_path), "PRIME_TRAIN_SSH_HOSTS": str(tmp_path / "machines.yaml")}
        said = output(env, "provider", "add", "ssh", *TO_AWS)
        assert f"append this line to ~/.ssh/authorized_keys on each machine: {line}\n" in said
        assert "warning: 127.0.0.1 is in a network of its own" in said
        assert (
            "\nwell   provider ssh, by the secret's key\n"
            in prime_train(own.env, "doctor", "--stack", STACK).stdout
        )
        run_id = launched(own, tmp_path, "ssh")
        with watched(own):
            await_true("it is over", lambda: run_of(own, run_id).is_over)
            await_true(
                "the machine is free", lambda: not list(machine.disk.glob(".prime-train/host/*.taken"))
            )
        run = run_of(own, run_id)
        assert (run.state, run.durable_step) == (RunState.SUCCEEDED, STEPS), run.why
        assert [attempt.offer.provider for attempt in run.attempts] == ["ssh"]
    finally:
        machine.destroy()


@pytest.mark.exhaustive
def test_the_functions_make_jobs_in_a_cluster(own: Deployed, tmp_path: Path) -> None:
    with FakeKubernetes(running=True) as fake:
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig(fake.url)))
        (tmp_path / "settings.yaml").write_text(f"kubeconfig: {tmp_path / 'kubeconfig'}\ncpus: 0.5\n")
        env = {**own.env, "PRIME_TRAIN_KUBERNETES": str(tmp_path / "settings.yaml")}
        said = output(env, "provider", "add", "kubernetes", *TO_AWS)
        assert "the secret has new values of PRIME_TRAIN_KUBERNETES" in said
        assert TOKEN not in said
        (tmp_path / "kubeconfig").unlink()
        (tmp_path / "settings.yaml").unlink()
        assert (
            "\nwell   provider kubernetes, by the secret's key\n"
            in prime_train(own.env, "doctor", "--stack", STACK).stdout
        )
        run_id = launched(own, tmp_path, "kubernetes")
        with watched(own):
            await_true(
                "a pod has its agent's ticket",
                lambda: any(one.ticket is not None and one.ticket.run == run_id for one in fake.started),
            )
            output(own.operator, "stop", run_id, "--now")
            await_true("no pod is left", lambda: not fake.pods)
        assert TOKEN not in own.logs()


def _kubeconfig(url: str) -> dict[str, object]:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me", "namespace": "training"}}],
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {"token": TOKEN}}],
    }


def test_what_only_this_machine_has_is_refused_with_the_reason_and_stored_nowhere(
    own: Deployed, tmp_path: Path
) -> None:
    before = own.cloud.client("secretsmanager").get_secret_value(SecretId=own.outputs["Secret"])[
        "SecretString"
    ]
    content = _kubeconfig("http://127.0.0.1:1")
    exec_user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
            "command": "aws",
        }
    }
    content["users"] = [{"name": "me", "user": exec_user}]
    (tmp_path / "kubeconfig").write_text(json.dumps(content))
    (tmp_path / "machines.yaml").write_text("machines: [{name: box, address: 192.0.2.7, disk_gib: 1}]\n")
    for provider, variable, value, reason in (
        (
            "kubernetes",
            "PRIME_TRAIN_KUBERNETES",
            f"{{kubeconfig: {tmp_path / 'kubeconfig'}}}",
            "comes from `exec` of the user",
        ),
        (
            "ssh",
            "PRIME_TRAIN_SSH_HOSTS",
            str(tmp_path / "machines.yaml"),
            "the host key of box is not known here",
        ),
    ):
        env = {**own.env, "HOME": str(tmp_path), variable: value}
        for words in (
            ("provider", "add", provider, "--unchecked", *TO_AWS),
            ("deploy", "--stack", STACK, "--yes", "--code", str(own.code), "--secret", variable),
        ):
            done = prime_train(env, *words)
            assert (done.returncode, reason in done.stderr) == (4, True), done.stderr
    assert (
        own.cloud.client("secretsmanager").get_secret_value(SecretId=own.outputs["Secret"])["SecretString"]
        == before
    )
