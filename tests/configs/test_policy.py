"""What a config may choose by the operator's policy, and the line that would allow it."""

import re
from pathlib import Path

import pytest

from prime_train.configs.policy import parsed, read_policy
from prime_train.configs.policy_place import has_policy
from prime_train.errors import UsageError
from prime_train.runs.run import Origin
from prime_train.spec.policy import Caller, InForce, Policy, beyond
from tests import builders as b

HOME, REMOTE = Caller(), Caller(is_remote=True)
IMAGE = f"ghcr.io/our-team/trainer@sha256:{'ab' * 32}"
ORIGIN = Origin("our-team/models", "c0ffee", "configs/a.yaml", "key", actor="ann")


def in_force(policy: str = "", **set_up: tuple[str, ...]) -> InForce:
    """Return the policy with this text, or the default one, at a control plane where this is set up."""
    read, found = parsed(policy, "policy.yaml") if policy else (Policy(), [])
    assert read is not None, found
    return InForce(read, "policy.yaml", **set_up)


@pytest.mark.parametrize("provider", ["local", "ssh"])
def test_the_operators_own_machines_are_for_a_person_at_a_home_that_rents_nothing(provider: str) -> None:
    spec = b.spec(hardware={"provider": provider})
    rents = in_force(rents_from=("prime",))

    assert beyond(in_force(), spec, HOME) == ()
    for policy, caller in ((in_force(), REMOTE), (rents, HOME), (rents, REMOTE)):
        (excess,) = beyond(policy, spec, caller)
        assert excess.key == ("hardware", "provider")
    assert beyond(in_force(named=(provider,)), spec, REMOTE) == ()
    assert beyond(in_force(rents_from=("prime",), named=(provider,)), spec, REMOTE) == ()


def test_a_config_that_names_no_provider_is_judged_by_the_default_ones() -> None:
    assert beyond(in_force(defaults=("local",)), b.spec(), HOME) == ()
    assert [one.key for one in beyond(in_force(defaults=("local",)), b.spec(), REMOTE)] == [
        ("hardware", "provider")
    ]
    assert beyond(in_force(defaults=("prime",)), b.spec(), REMOTE) == ()


BEYOND: dict[str, tuple[str, dict[str, object]]] = {
    "provider": ("providers: [prime]", {"hardware": {"provider": "runpod"}}),
    "one of several providers": ("providers: [prime]", {"hardware": {"providers": ["prime", "vast"]}}),
    "local where machines are rented": ("usd_max: 100", {"hardware": {"provider": "local"}}),
    "image": ('images: ["ghcr.io/others/*"]', {"hardware": {"provider": "runpod", "image": IMAGE}}),
    "base of the image": ('images: ["ghcr.io/others/*"]', {"image": {"base": IMAGE}}),
    "folder": ('folders: ["."]', {"trainer": {"code": {"folder": "/etc"}}}),
    "folder above": ('folders: ["tasks/*"]', {"trainer": {"code": {"folder": "tasks/../../other"}}}),
    "folder with signs of a pattern": ('folders: ["."]', {"trainer": {"code": {"folder": 'a[b]*"c'}}}),
    "dollars": ("usd_max: 10", {"budget": {"usd": 1234567.5}}),
    "dollars an hour": ("usd_per_hour_max: 4", {"hardware": {"usd_per_hour_max": 4.01}}),
    "any dollars an hour": ("usd_per_hour_max: 4", {}),
    "caller": ('callers: ["others/*"]', {}),
}


@pytest.mark.parametrize("what", BEYOND)
def test_the_line_that_is_named_allows_what_is_refused(what: str) -> None:
    text, changes = BEYOND[what]
    spec, caller = b.spec(**changes), Caller.of(ORIGIN, is_remote=True)
    (excess,) = beyond(in_force(text, rents_from=("prime",)), spec, caller)
    assert excess.line in excess.text

    key = excess.line.partition(":")[0]
    lines = [line for line in text.splitlines() if not line.startswith(f"{key}:")]
    assert beyond(in_force("\n".join([*lines, excess.line]), rents_from=("prime",)), spec, caller) == ()


def test_what_the_policy_allows_is_not_refused() -> None:
    text = """\
providers: [prime, runpod]
images: ["ghcr.io/our-team/*"]
folders: [".", "tasks/*"]
usd_max: 100
usd_per_hour_max: 4
callers: ["our-team/*"]
"""
    hardware = {"provider": "runpod", "image": IMAGE, "usd_per_hour_max": 4}
    spec = b.spec(hardware=hardware, budget={"usd": 100}, trainer={"code": {"folder": "./tasks/a"}})
    assert beyond(in_force(text), spec, Caller.of(ORIGIN, is_remote=True)) == ()
    # Before the folder was changed, the repository is what is packed.
    assert (
        beyond(
            in_force(text),
            spec.model_copy(update={"trainer": b.spec().trainer}),
            Caller.of(ORIGIN, is_remote=True),
        )
        == ()
    )


@pytest.mark.parametrize(
    ("callers", "allowed"),
    [
        ("our-team/models", True),
        ("our-team/*", True),
        ("@ann", True),
        ("@bob", False),
        ("operator", False),
        ("*", True),
    ],
)
def test_a_remote_caller_is_known_by_repository_and_person(callers: str, allowed: bool) -> None:
    policy = in_force(f'callers: ["{callers}"]')
    assert (
        beyond(policy, b.spec(hardware={"provider": "prime"}), Caller.of(ORIGIN, is_remote=True)) == ()
    ) is allowed
    assert beyond(policy, b.spec(hardware={"provider": "prime"}), Caller.of(ORIGIN, is_remote=False)) == ()
    whoever_has_the_key = beyond(policy, b.spec(hardware={"provider": "prime"}), REMOTE)
    assert (whoever_has_the_key == ()) is (callers in ("operator", "*"))


def test_every_mistake_in_a_policy_is_named_with_its_line() -> None:
    policy, found = parsed(
        "provider: [prime]\nproviders: [foo]\nusd_max: -1\nimages: [a, 3]\nfolders: x\n", "policy.yaml"
    )
    assert policy is None
    assert [(one.line, one.code, one.message, one.fix) for one in found] == [
        (1, "PT010", "unknown key 'provider'", "did you mean providers?"),
        (
            2,
            "PT013",
            "providers[0]: expected one of local, prime, runpod, lambda, kubernetes, ssh, vast; got 'foo'",
            "",
        ),
        (4, "PT014", "images[1]: expected text, got 3", 'quote it: "3"'),
        (5, "PT012", "folders: expected a list, got 'x'", "make it a list: [x]"),
        (3, "PT013", "usd_max: must be greater than 0.0, got -1", ""),
    ]


def test_an_empty_policy_is_a_mistake_and_not_a_policy_that_allows_everything() -> None:
    policy, found = parsed("# providers: [prime]\n", "policy.yaml")
    assert (policy, [one.code for one in found]) == (None, ["PT005"])
    assert "delete the file" in found[0].fix


def test_every_line_of_the_documented_policy_works() -> None:
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    policy = in_force(example)
    hardware = {"provider": "runpod", "image": IMAGE, "usd_per_hour_max": 40}
    sets = {"/data": {"name": "datasets"}, "/scratch": {"name": "scratch", "read_only": False}}
    ann = Caller.of(ORIGIN, is_remote=True)
    fits = b.spec(hardware=hardware, budget={"usd": 300}, trainer={"code": {"folder": "tasks/a"}})
    assert beyond(policy, fits, ann) == ()
    mounting = b.spec(hardware=hardware | {"provider": "kubernetes", "volumes": sets}, budget={"usd": 300})
    assert [one.key for one in beyond(policy, mounting, ann)] == [("hardware", "provider")]

    other = b.spec(
        hardware={
            "provider": "kubernetes",
            "image": IMAGE.replace("our-team", "others"),
            "usd_per_hour_max": 41,
            "volumes": {"/data": {"name": "others"}},
        },
        budget={"usd": 301},
        trainer={"code": {"folder": "/home/you"}},
    )
    lines = [one.line.partition(":")[0] for one in beyond(policy, other, REMOTE)]
    assert sorted(lines) == sorted(Policy.model_fields)
    assert [line.partition(":")[0] for line in example.splitlines()] == list(Policy.model_fields)


def test_no_line_is_suggested_that_opens_this_machine_to_a_config_that_did_not_name_it() -> None:
    (excess,) = beyond(in_force("usd_max: 300", defaults=("local",)), b.spec(), REMOTE)
    assert (excess.line, "local]" in excess.text) == ("", False)
    assert "write hardware.provider, one of prime, runpod" in excess.text


@pytest.mark.parametrize("target", ["not-mounted/policy.yaml", "policy.yaml"], ids=["nowhere", "itself"])
def test_a_policy_that_is_a_dangling_link_allows_nothing(tmp_path: Path, target: str) -> None:
    (tmp_path / "policy.yaml").symlink_to(tmp_path / target)
    assert has_policy(tmp_path, {})
    with pytest.raises(UsageError, match="cannot be used, so nothing is launched"):
        read_policy(tmp_path, {})
    assert not has_policy(tmp_path / "empty", {})
    assert read_policy(tmp_path / "empty", {}).policy == Policy()
