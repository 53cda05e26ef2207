"""`prime-train find` as a user sees it: a provider's machines at 80 columns, as JSON, and with errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prime_train.market.ranking import rank
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec
from tests.cli.documented import check
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.http import ALWAYS
from tests.fakes.prime import UNAVAILABLE, FakePrime, GpuRow, Prices, Spec
from tests.fakes.runpod import FakeRunPod

OFFERED = ("provider", "offer_id", "usd_per_hour", "spot", "gpu", "gpu_count", "disk_gib")
INCLUDED = Spec(minCount=50, defaultCount=100, maxCount=4000, defaultIncludedInPrice=True)


def row(
    gpu: str,
    count: int,
    usd: float,
    *,
    spot: bool = False,
    place: str = "US-KS-2",
    stock: str = "Available",
    **more: Any,
) -> GpuRow:
    plain = GpuRow(
        cloudId=f"{gpu}-{count}-{usd}",
        gpuType=gpu,
        socket="SXM5",
        provider="nebius",
        dataCenter=place,
        gpuCount=count,
        gpuMemory=0,
        disk=INCLUDED,
        stockStatus=stock,
        prices=Prices(onDemand=usd),
        isSpot=spot or None,
    )
    return plain.model_copy(update=more)


ROWS = (
    row("H100_80GB", 8, 9.20, spot=True, place="FIN-01", stock="Low"),
    row("H100_80GB", 8, 19.92, place="eu-iceland1-a", stock="High"),
    row("H100_80GB", 1, 2.49),
    row("B200_180GB", 1, 4.90, stock="Medium"),
    row("B200_180GB", 8, 39.20),
    row("A100_80GB", 1, 0.62, spot=True, place="FIN-01"),
    row("RTX4090_24GB", 8, 3.10, socket="PCIe"),
    row("V100_16GB", 1, 0.20),
    row("CPU_NODE", 0, 0.05),
    row("H100_80GB", 8, 12.0, prepaidTime=24),
    row("H200_141GB", 8, 30.0, stock="Unavailable"),
)


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime", machines=False) as fake:
        fake.rows = ROWS
        yield fake


class Find:
    """The command with a key for the fake provider, on a terminal of 80 columns."""

    def __init__(self, shell: Shell, fake: FakePrime) -> None:
        self._shell, self._fake = shell, fake
        self.code, self.out, self.err = -1, "", ""

    def __call__(self, *args: str, **changes: str) -> str:
        env = {
            "HOME": str(self._shell.here),
            "PRIME_API_KEY": self._fake.api_key,
            "PRIME_API_BASE_URL": self._fake.url,
            "COLUMNS": "80",
        }
        done = self._shell.run("find", *args, **env | changes)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        return self.out

    def json(self, *args: str) -> Any:
        found = json.loads(self(*args, "--json"))
        check("find", found, complete=True)
        return found

    @property
    def words(self) -> str:
        """Return the printed words, however the lines were wrapped."""
        return " ".join(self.out.split())


@pytest.fixture(name="find")
def _find(tmp_path: Path, fake: FakePrime) -> Find:
    return Find(Inside(tmp_path), fake)


# ------------------------------------------------------------------------------------------------------------
# what is shown


def test_machines_of_several_providers_are_one_table_that_says_where_each_is_from(find: Find) -> None:
    with FakeRunPod() as other:
        find("--model", "Qwen/Qwen3-8B", RUNPOD_API_KEY=other.api_key, RUNPOD_API_BASE_URL=other.url)
    assert find.code == 0, find.err
    assert max(map(len, find.out.splitlines())) <= 80
    head, *rows = [
        line.split() for line in find.out.splitlines() if line.startswith(("machine", "1x", "2x", "4x", "8x"))
    ]
    assert head[:2] == ["machine", "from"]
    assert {name for row in rows for name in ("prime", "runpod") if name in row} == {"prime", "runpod"}


def test_the_machines_that_fit_are_shown_with_what_they_would_cost(find: Find) -> None:
    find("--model", "Qwen/Qwen3-8B", "--budget", "20")

    assert find.code == 0, find.err
    assert max(map(len, find.out.splitlines())) <= 80
    assert find.words.startswith(
        "Qwen/Qwen3-8B: 8.2B parameters; full fine-tuning; 100M tokens in sequences of 4,096"
    )
    table = [line.split() for line in find.out.splitlines() if line[:2] in ("1x", "8x")]
    assert [(line[:5], line[-3:]) for line in table] == [
        (["8x", "H100", "640", "(80)", "9.20"], ["yes", "FIN-01", "low"]),
        (["8x", "H100", "640", "(80)", "19.92"], ["yes", "eu-iceland1-a", "high"]),
        (["1x", "B200", "180", "(180)", "4.90"], ["yes", "US-KS-2", "mid"]),
    ]
    assert "take 8x H100 spot in FIN-01 at $9.20/h from prime: 32-92 min and $4.9-14" in find.words
    assert (
        "expected $7.71 to the end: 37 min of training (estimated) at $9.20/h, 0.1 losses expected, 24 min "
        "each" in find.words
    )
    assert (
        "based on losses and start times are assumptions, because no machine of this account was seen yet"
        in find.words
    )
    assert (
        "why the least expected total of 3 that fit even at the upper end of the estimated need" in find.words
    )
    assert "28-41 of the 80 GB of each GPU" in find.words
    assert (
        "next best 8x H100 on-demand in eu-iceland1-a at $19.92/h from prime: 32-80 min and $11-27"
        in find.words
    )
    assert "2.1 times the money, but never preempted" in find.words
    assert "hardware {provider: prime, gpus: [H100_80GB], count: 8, spot: only, disk_gib: 250}" in find.words
    assert "left out 7: 3 with too little GPU memory, 1 " in find.words
    unpaid = "that cannot be rented (it must be paid 24 h in advance)"
    for why in ("above $20.00/h", "with a GPU too old for bf16", "without a GPU", unpaid):
        assert f"1 {why}" in find.words
    assert "assumed Memory: 32-bit weights and AdamW, sharded over the GPUs" in find.words


def test_json_says_the_same_and_more(find: Find) -> None:
    output = find.json("--model", "Qwen3-8B", "--budget", "20", "--tokens", "1.5B")

    assert find.code == 0
    assert output["job"] == {"method": "full", "rl": False, "tokens": 1.5e9, "seq_len": 4096}
    assert (
        output["recommended"]
        == output["machines"][0]["offer_id"]
        == "nebius:H100_80GB:SXM5:8x:FIN-01:secure:spot"
    )
    best = output["machines"][0]
    assert (best["usd_per_hour"], best["gpu_gb"], best["gpu_gb_per_s"], best["fits"]) == (
        9.2,
        80,
        3350,
        "yes",
    )
    assert best["usd"][0] < best["usd_expected"] < best["usd"][1]
    assert best["need_gib"][0] < sum(best["need_gib_parts"]["loss"].values()) < best["need_gib"][1]
    assert len(output["machines"]) + len(output["left_out"]) == len(ROWS) - 1
    assert sum(output["left_out_counts"].values()) == len(output["left_out"])


def test_wishes_narrow_the_choice(find: Find) -> None:
    for options, wanted in (
        (["--spot"], {(8, "H100_80GB"), (1, "A100_80GB")}),
        (["--on-demand", "--gpus", "1"], {(1, "H100_80GB"), (1, "B200_180GB")}),
        (["--kind", "b200"], {(1, "B200_180GB"), (8, "B200_180GB")}),
    ):
        machines = find.json("--params", "0.6B", *options)["machines"]
        assert {(one["gpu_count"], one["gpu"]) for one in machines} == wanted


def test_adapters_and_16_bit_need_less(find: Find) -> None:
    def needed(*options: str) -> float:
        machines = find.json("--model", "Qwen3-8B", "--kind", "B200", "--gpus", "1", *options)["machines"]
        return float(machines[0]["need_gib"][1])

    full, lora, small = needed(), needed("--lora"), needed("--lora", "--bf16")
    assert full > 2 * lora
    assert lora > small


def test_rl_is_reported_with_its_own_shares(find: Find) -> None:
    find("--model", "Qwen3-8B", "--rl", "--gpus", "8")
    assert find.code == 0
    assert "full fine-tuning by RL, with rollouts on half of the GPUs" in find.words
    assert "Time: speeds of these GPUs in published trainings, 6 times that for RL" in find.words


def test_more_rows_than_requested_are_counted(find: Find) -> None:
    find("--params", "0.6B", "--limit", "2")
    assert len([line for line in find.out.splitlines() if line[:2] in ("1x", "8x")]) == 2
    assert "--limit 7 shows all" in find.words


def test_a_size_without_a_known_name_is_reported_to_be_a_guess(find: Find) -> None:
    find("--model", "acme/Foo-3B")
    assert find.code == 0
    assert "The model's architecture is estimated from its size" in find.words


# ------------------------------------------------------------------------------------------------------------
# nothing fits


def test_a_budget_that_is_too_low_tells_which_would_do(find: Find) -> None:
    find("--model", "Qwen3-8B", "--gpus", "8", "--budget", "9")
    assert find.code == 1
    assert "take nothing: no machine for rent meets all requirements" in find.words
    assert "above $9.00/h, try --budget 9.20" in find.words


def test_a_model_that_is_too_large_tells_the_nearest_miss(find: Find) -> None:
    output = find.json("--model", "meta-llama/Llama-3.1-405B", "--spot")
    assert find.code == 1
    assert output["recommended"] is None
    assert output["nearest"]
    find("--model", "Qwen3-14B", "--kind", "H100", "--gpus", "1", "--budget", "3")
    assert find.code == 1
    assert "needs 220-260 of the 80 GB of each GPU, try --gpus 8 or --lora" in find.words
    assert (
        "what would do: with --lora: 1x H100 from prime, $17 to the end: 6.5 h of training (estimated) at "
        "$2.49/h" in find.words
    )


def test_where_nothing_is_for_rent_it_says_so(find: Find, fake: FakePrime) -> None:
    fake.rows = [row("H200_141GB", 8, 30.0, stock="Unavailable")]
    find("--model", "Qwen3-8B")
    assert find.code == 1
    assert "take nothing: no machine with a known GPU is for rent now" in find.words


# ------------------------------------------------------------------------------------------------------------
# what is wrong


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "which model?\n  fix: write --model Qwen/Qwen3-8B, or --params 8B"),
        (
            ["--model", "mystery-model"],
            "mystery-model is unknown, and its name does not contain its size\n  fix: write its size, such as "
            "--params 7B",
        ),
        (["--params", "lots"], "lots is not a model size\n  fix: write its size, such as --params 7B"),
        (["--params", "8B", "--budget=-3"], "--budget -3 is not a price"),
        (["--params", "8B", "--budget", "cheap"], "--budget cheap is not a price"),
        (["--params", "8B", "--tokens", "0"], "--tokens 0 is not a number of tokens"),
        (
            ["--params", "8B", "--gpus", "3"],
            "3 GPUs: a config cannot request that number in one machine\n  fix: write one of 1, 2, 4, 8, 16",
        ),
        (["--params", "8B", "--gpus=-1"], "Invalid value for '--gpus'"),
        (["--params", "8B", "--seq-len", "0"], "Invalid value for '--seq-len'"),
    ],
)
def test_a_wrong_option_is_reported_with_what_to_write(
    find: Find, fake: FakePrime, args: list[str], says: str
) -> None:
    find(*args)
    assert find.code == 2
    assert says in find.err
    assert not fake.requests


def test_without_a_key_of_a_provider_that_is_asked_for_it_says_what_to_do(find: Find) -> None:
    find("--model", "Qwen3-8B", PRIME_API_KEY="", PRIME_TRAIN_PROVIDER="prime")
    assert find.code == 4
    assert find.err.count("\n") == 1
    assert "set PRIME_API_KEY" in find.err


def test_a_key_that_is_refused_is_reported(find: Find) -> None:
    find("--model", "Qwen3-8B", PRIME_API_KEY="pit_of_somebody_else")
    assert find.code == 4
    assert "pit_of_somebody_else" not in find.err


def test_a_provider_that_is_down_is_to_be_tried_again(find: Find, fake: FakePrime) -> None:
    fake.fail(UNAVAILABLE, times=ALWAYS)
    find("--model", "Qwen3-8B")
    assert find.code == 3
    assert find.err.count("\n") == 1
    assert "it may work later" in find.err


# ------------------------------------------------------------------------------------------------------------
# what it is for


def test_a_config_with_the_hardware_it_names_gets_that_machine(find: Find) -> None:
    output = find.json("--model", "Qwen3-8B", "--budget", "20")
    hardware = HardwareSpec.model_validate(yaml.safe_load(output["hardware"]))
    offers = [Offer(*(one[name] for name in OFFERED)) for one in (*output["machines"], *output["left_out"])]

    assert [offer.offer_id for offer in rank(offers, hardware).best] == [output["recommended"]]


def test_a_narrow_terminal_cuts_nothing_that_matters(find: Find) -> None:
    find("--model", "Qwen3-8B", "--budget", "20", COLUMNS="40")
    assert max(map(len, find.out.splitlines())) <= 40
    assert "take 8x H100 spot in FIN-01 at $9.20/h" in find.words


# ------------------------------------------------------------------------------------------------------------
# of a config

SIZES = """\
name: sizes
trainer: {kind: torchrun, command: "train.py {checkpoints}", steps: 100}
checkpoints: {every_steps: 10}
hardware:
  gpus: [H100_80GB, B200_180GB]
  usd_per_hour_max: 20
  disk_gib: 100
  variants:
    - {count: 1, gpu_gb_min: 160}
    - {count: 8, gpu_gb_min: 80}
budget: {usd: 5}
"""


@pytest.fixture
def sizes(find: Find, tmp_path: Path) -> str:
    (tmp_path / "sizes.yaml").write_text(SIZES)
    (tmp_path / "train.py").write_text("")
    return "sizes.yaml"


def test_a_configs_hardware_constrains_the_search_and_each_machine_has_its_variant(
    find: Find, sizes: str
) -> None:
    found = find.json(sizes, "--model", "Qwen/Qwen3-8B")
    assert find.code == 0, find.err
    first, second = "variant 1 (1 GPU of 160 GB or more)", "variant 2 (8 GPUs of 80 GB or more)"
    assert found["variants"] == [first, second]
    assert [(one["gpu_count"], one["gpu"], one["variant"]) for one in found["machines"]] == [
        (8, "H100_80GB", second),
        (8, "H100_80GB", second),
        (1, "B200_180GB", first),
    ]
    (alone,) = [one for one in found["left_out"] if (one["gpu"], one["gpu_count"]) == ("H100_80GB", 1)]
    assert (alone["variant"], "variant" in {one["code"] for one in alone["against"]}) == ("", True)
    assert (found["constraints"]["usd_per_hour_max"], found["constraints"]["disk_gib"]) == (20, 100)


def test_the_table_has_a_column_of_variants_and_the_advice_names_that_of_the_best(
    find: Find, sizes: str
) -> None:
    find(sizes, "--model", "Qwen/Qwen3-8B")
    assert max(map(len, find.out.splitlines())) <= 80
    assert "variant" in next(line for line in find.out.splitlines() if line.startswith("machine")).split()
    assert (
        "take 8x H100 spot in FIN-01 at $9.20/h from prime, with variant 2 (8 GPUs of 80 GB or more):"
        in find.words
    )
    assert "variants variant 1 (1 GPU of 160 GB or more), variant 2 (8 GPUs of 80 GB or more)" in find.words
    assert "hardware {provider" not in find.words


def test_options_replace_what_the_config_says(find: Find, sizes: str) -> None:
    found = find.json(sizes, "--model", "Qwen/Qwen3-8B", "--budget", "10", "--kind", "B200")
    assert [one["gpu"] for one in found["machines"]] == ["B200_180GB"]


def test_a_config_that_does_not_say_what_is_trained_needs_the_model(find: Find, sizes: str) -> None:
    find(sizes)
    assert find.code == 2
    assert "sizes.yaml does not say which model is trained" in find.err
    find("none.yaml")
    assert find.code == 2
    assert "none.yaml" in find.err
