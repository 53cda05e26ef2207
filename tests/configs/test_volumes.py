"""Volumes in a config: what can be mounted where, who may, and that nothing is saved there."""

import json
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from prime_train.runs.offer import Offer, fits
from prime_train.spec.policy import Caller, InForce, Policy, beyond, in_words
from prime_train.spec.reader import read_config
from prime_train.spec.spec import HardwareSpec, RunSpec
from tests import builders as b
from tests.cli.inside import Inside

SETS = {"name": "sets", "sub_path": "web/fine"}
REMOTE, OWN = Caller(is_remote=True), Caller()


def hardware(provider: str | None = "kubernetes", path: str = "/data", **volume: object) -> dict[str, object]:
    named = {"provider": provider} if provider else {}
    return {**named, "volumes": {path: SETS | volume}}


def spec(provider: str = "kubernetes", path: str = "/data", **volume: object) -> RunSpec:
    return b.spec(hardware=hardware(provider, path, **volume))


def in_force(*volumes: str) -> InForce:
    return InForce(Policy(volumes=volumes or None), "policy.yaml", rents_from=("kubernetes", "runpod"))


# ------------------------------------------------------------------------------------------------------------
# the config


def test_a_volume_is_read_only_unless_the_config_says_otherwise() -> None:
    (volume,) = spec().hardware.volumes.values()
    assert (volume.name, volume.sub_path, volume.read_only) == ("sets", "web/fine", True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            hardware("vast"),
            "provider vast has no volumes that can be mounted; those that have are runpod or kubernetes",
        ),
        (hardware("local"), "provider local has no volumes"),
        (hardware("prime"), "provider prime has no volumes"),
        (hardware(None), "a volume is of one provider; write hardware.provider: runpod or kubernetes"),
        (
            hardware("runpod", read_only=False),
            "RunPod mounts a volume as a whole; delete sub_path, and use /data/web/fine",
        ),
        (hardware("runpod", sub_path=""), "RunPod mounts no volume read-only; write read_only: false"),
        (hardware(path="/"), "String should match pattern"),
        (hardware(path="data"), "String should match pattern"),
        (hardware(path="/data/../etc"), "String should match pattern"),
        (
            hardware(path="/etc/ssl"),
            "/etc/ssl is inside /etc, which belongs to the machine; mount it elsewhere, such as /data",
        ),
        (hardware(path="/workspace"), "belongs to the machine"),
        (hardware(path="/opt/prime-train"), "belongs to the machine"),
        (hardware(sub_path="../other"), "String should match pattern"),
        (hardware(sub_path="/abs"), "String should match pattern"),
        (hardware(name="a b"), "String should match pattern"),
        (
            {"provider": "kubernetes", "volumes": {"/a": SETS, "/a/b": SETS}},
            "/a/b is inside /a; mount them beside each other",
        ),
        (
            {"provider": "runpod", "volumes": {f"/{one}": {"name": "v", "read_only": False} for one in "ab"}},
            "RunPod mounts at most 1 on a machine, not 2; keep that many",
        ),
    ],
)
def test_what_cannot_be_mounted_is_refused_with_what_to_write(given: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match="volumes") as refused:
        HardwareSpec.model_validate(given)
    assert says in str(refused.value)


def test_validate_points_at_the_key_and_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(
        "name: v\ntrainer: {command: python t.py}\nbudget: {usd: 5}\nhardware:\n  provider: vast\n  volumes: "
        "{/data: {name: x}}\n"
    )
    (tmp_path / "w.yaml").write_text(
        "name: w\ntrainer: {command: python t.py}\nbudget: {usd: 5}\nvolumes: {/data: {name: x}}\n"
    )
    done = Inside(tmp_path).run("validate", "v.yaml", "w.yaml")
    assert done.returncode == 1
    assert "v.yaml:6:12: error PT013: hardware: volumes: provider vast has no volumes" in done.stdout
    assert "did you mean hardware.volumes?" in done.stdout


def test_an_offer_of_another_provider_is_left_out() -> None:
    offer = Offer("vast", "1", 1.0, spot=False, disk_gib=1000)
    assert "provider vast has no volumes" in str(fits(offer, spec().hardware))
    assert fits(Offer("kubernetes", "1", 1.0, spot=False, disk_gib=1000), spec().hardware) is None


def test_a_stored_config_from_before_volumes_mounts_none() -> None:
    stored = b.spec().model_dump(mode="json")
    del stored["hardware"]["volumes"]
    assert RunSpec.model_validate_json(json.dumps(stored)).hardware.volumes == {}


# ------------------------------------------------------------------------------------------------------------
# the policy


def test_a_config_from_elsewhere_mounts_nothing_unless_the_operator_names_the_volume() -> None:
    assert beyond(in_force(), spec(), OWN) == ()
    (excess,) = beyond(in_force(), spec(), REMOTE)
    assert excess.key == ("hardware", "volumes", "/data")
    assert (
        "/data mounts kubernetes/sets/web/fine, which is not among the volumes that configs may read"
        in excess.message
    )
    assert excess.fix.endswith('this line in policy.yaml: volumes: ["kubernetes/sets/web/fine"]')


@pytest.mark.parametrize(
    "line",
    [
        "kubernetes/sets",
        "kubernetes/sets/web/*",
        "kubernetes/*",
        "kubernetes/sets/web/fine",
        "kubernetes/sets:rw",
    ],
)
def test_a_line_of_the_policy_that_names_the_volume_or_the_part_of_it_allows_reading(line: str) -> None:
    assert beyond(in_force(line), spec(), REMOTE) == ()


@pytest.mark.parametrize(
    "line", ["kubernetes/set", "kubernetes/sets/other", "runpod/sets", "sets", "kubernetes/sets/web"]
)
def test_another_line_allows_nothing_not_even_at_home(line: str) -> None:
    for caller in (REMOTE, OWN):
        (excess,) = beyond(in_force(line), spec(), caller)
        assert yaml.safe_load(excess.line) == {"volumes": [line, "kubernetes/sets/web/fine"]}


def test_writing_has_to_be_allowed_by_name() -> None:
    writing = spec(read_only=False)
    assert "configs may write to" in in_words(beyond(in_force("kubernetes/*"), writing, REMOTE))
    assert beyond(in_force("kubernetes/sets:rw"), writing, REMOTE) == ()
    assert beyond(in_force("kubernetes/sets/web/*:rw"), writing, REMOTE) == ()


def test_the_line_that_is_suggested_allows_just_what_was_asked() -> None:
    for asked in (spec(), spec(read_only=False), spec(sub_path="")):
        (excess,) = beyond(in_force(), asked, REMOTE)
        names = json.loads(excess.line.removeprefix("volumes: "))
        assert beyond(in_force(*names), asked, REMOTE) == ()
        assert beyond(in_force(*names), spec(name="other"), REMOTE)


def test_a_job_in_ci_finds_it_at_its_place_in_the_config(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(
        "name: v\ntrainer: {command: python t.py}\nbudget: {usd: 5}\nhardware:\n  provider: kubernetes\n  "
        "volumes: {/data: {name: x}}\n"
    )
    done = Inside(tmp_path).run("validate", "v.yaml", CI="1", PRIME_TRAIN_POLICY='{"usd_max": 90}')
    assert "v.yaml:6:20: error PT027: hardware.volumes: /data mounts kubernetes/x" in done.stdout


# ----------------------------------------------------------------------------------------------------------
# what is saved there


def codes(tmp_path: Path, **changes: str) -> list[str]:
    values = {"command": "python t.py --data /data", "volumes": "{/data: {name: x}}", "more": ""} | changes
    (tmp_path / "t.py").write_text("")
    (tmp_path / "v.yaml").write_text(
        f"name: v\ntrainer: {{command: '{values['command']}'}}\nbudget: {{usd: 5}}\nhardware:\n  provider: "
        "kubernetes\n"
        f"  volumes: {values['volumes']}\n{values['more']}"
    )
    assert read_config(tmp_path / "v.yaml").spec is not None
    done = Inside(tmp_path).run("validate", "v.yaml", "--format", "json")
    return [found["code"] for found in json.loads(done.stdout) if found["code"] in ("PT049", "PT050")]


@pytest.mark.parametrize(
    "changes",
    [
        {"command": "python t.py --output-dir /data/out"},
        {"command": "python t.py --output_dir=/data"},
        {"command": "python t.py hydra.run.dir=x trainer.checkpoint_dir=/data/c"},
        {"command": "python t.py --ckpt-path /data/a/b"},
        {"more": "environment: {OUTPUT_DIR: /data/out}\n"},
        {"more": "setup: [ln -s /data/out checkpoints]\n"},
    ],
)
def test_a_trainer_that_saves_on_a_volume_is_found(tmp_path: Path, changes: dict[str, str]) -> None:
    assert codes(tmp_path, **changes) == ["PT049"]
    assert codes(tmp_path, volumes="{/data: {name: x, read_only: false}}", **changes) == ["PT050"]


@pytest.mark.parametrize(
    "command",
    [
        "python t.py --data /data",
        "python t.py --resume_from_checkpoint /data/base",
        "python t.py --load-checkpoint-path /data/base",
        "python t.py --output-dir out --train-file /data/x",
        "python t.py --output-dir /database/out",
        "python t.py --init-ckpt /data/base",
    ],
)
def test_a_trainer_that_only_reads_there_is_not(tmp_path: Path, command: str) -> None:
    assert codes(tmp_path, command=command) == []


def test_what_is_wrong_with_a_path_a_name_or_a_folder_is_said_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(
        "name: v\ntrainer: {command: python t.py}\nbudget: {usd: 5}\nhardware:\n  provider: kubernetes\n  "
        "volumes:\n"
        "    data: {name: x}\n    /data: {name: My_PVC, sub_path: ../up}\n"
    )
    done = Inside(tmp_path).run("validate", "v.yaml")
    assert (
        "v.yaml:7:5: error PT013: hardware.volumes.data: must be the path at which the volume is mounted, "
        "such as /data" in done.stdout
    )
    assert "a volume's name has letters, digits, dots and inner hyphens" in done.stdout
    assert "got '../up'" in done.stdout
