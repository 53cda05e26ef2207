"""The provider as a control plane uses it: by its row of the registry, with its own SSH key, mark and
account.
"""

from pathlib import Path

import pytest

from prime_train.market.ranking import rank
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.lambda_cloud import provider
from prime_train.providers.lambda_cloud.provider import LambdaProvider
from prime_train.providers.port import ProviderContext, SshAddress
from tests.adapters.pods_lambda.lambda_pods import HARDWARE, LAUNCH, client_of
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, TICKET, Pushed
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud


def plane(fake: FakeLambdaCloud, root: Path, master: bytes, pushed: Pushed) -> LambdaProvider:
    return LambdaProvider(
        ProviderContext(
            root,
            {"LAMBDA_API_KEY": API_KEY, "LAMBDA_API_BASE_URL": fake.url},
            master,
            install=pushed,
            public_key=lambda: f"{PUBLIC_KEY[:-8]}{master.hex()} me@here",
            unreachable_reason=lambda: "this machine cannot be reached",
        )
    )


def test_two_control_planes_share_an_account_and_see_only_their_own_machines(
    fake: FakeLambdaCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # without its pace
    monkeypatch.setattr(provider, "LambdaClient", lambda settings, **_: client_of(fake, settings.key))
    assert PROVIDERS["lambda"].implementation == f"{LambdaProvider.__module__}:{LambdaProvider.__name__}"
    pushed = Pushed()
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = (plane(fake, tmp_path / name, name.encode(), pushed) for name in ("ours", "theirs"))
    offer = rank(ours.offers(HARDWARE), HARDWARE).best[0]
    assert not fake.ssh_keys
    pod = ours.pods().create(NAME, offer, HARDWARE)
    ours.pods().put_agent(pod, TICKET)
    other = theirs.pods().create(NAME, offer, HARDWARE)
    assert pushed == [(SshAddress(pod.pod_id, "ubuntu", "192.0.2.10", 22), TICKET)]
    assert ours.connection(pod.pod_id) == pushed[0][0]
    assert [each.pod_id for each in ours.pods().list()] == [pod.pod_id]
    assert [each.pod_id for each in ours.all_pods()] == [pod.pod_id, other.pod_id]
    assert len({tuple(request.json["ssh_key_names"]) for request in fake.requests_to("POST", LAUNCH)}) == 2
    assert (tmp_path / "ours" / "lambda-account").read_text() != (
        tmp_path / "theirs" / "lambda-account"
    ).read_text()
    assert (ours.account(), ours.unreachable_reason()) == (None, "")


def test_a_control_plane_that_cannot_be_reached_from_elsewhere_says_so(tmp_path: Path) -> None:
    context = ProviderContext(
        tmp_path,
        {"LAMBDA_API_KEY": "k"},
        b"m",
        install=Pushed(),
        public_key=lambda: PUBLIC_KEY,
        unreachable_reason=lambda: "no way in",
    )
    assert LambdaProvider(context).unreachable_reason() == "no way in"
