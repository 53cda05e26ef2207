"""No two faces disagree: for drawn configs, markets and histories, `find`, a dry run, `cost` and a pull
request name the same machine with the same hours and dollars, and `memory`, `verify-model`, `validate`,
`init` and `find` the same need of memory with the same verdict.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from prime_train.app.home import Home
from prime_train.checks.validate import validate
from prime_train.clock import wall_s
from prime_train.configs.loader import load_configs
from prime_train.github.commands.config_section import block
from prime_train.launch.review import offers_for, review
from prime_train.market.left_of_run import market_of
from prime_train.market.ranking import rank
from prime_train.planning.cost_forecast import forecast_of
from prime_train.planning.market_for_run import seen_here
from prime_train.planning.new_configs.new_config import Answers, prime_rl_files, prime_rl_settings, save_files
from prime_train.planning.offered import offered
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Run, RunState
from prime_train.spec.causes import Cause
from prime_train.spec.reader import read_config
from prime_train.stores.sqlite.store import SqliteStore
from prime_train.text.formatting import usd
from tests import builders as b
from tests.cli.estimates.test_find import row
from tests.cli.inside import Inside
from tests.cli.shell import Shell
from tests.fakes.prime import FakePrime, GpuRow

ROOT = Path(__file__).parents[3]
KINDS = ("H100_80GB", "A100_80GB", "H200_141GB", "L40S_48GB", "RTX4090_24GB", "A100_40GB")
SEEDS = range(12)
MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-4B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-8B")
INITS = (
    ("Qwen/Qwen3-4B", "h100-80gb", 2),
    ("Qwen/Qwen3-8B", "h100-80gb", 4),
    ("Qwen/Qwen3-8B", "a100-40gb", 2),
    ("Qwen/Qwen3-30B-A3B", "h200-141gb", 8),
    ("Qwen/Qwen3-0.6B", "rtx4090", 2),
)
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
MEMORY_CODES = {"ME201": {"no"}, "ME203": {"no"}, "ME204": {"no"}, "ME202": {"unlikely", "no"}}
"""The verdicts that a finding about memory may go with: the server may be worse than the trainer that the
finding is about.
"""


@pytest.fixture(name="fake", scope="module")
def _fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakePrime]:
    with FakePrime(tmp_path_factory.mktemp("prime"), machines=False) as fake:
        yield fake


@dataclass(frozen=True)
class Drawn:
    """A folder with a drawn config, before a drawn market, with a drawn history in its home."""

    shell: Shell
    env: Mapping[str, str]

    def json(self, *args: str) -> Any:
        done = self.shell.run(*args, "--json", **self.env)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout) if done.stdout.startswith("{") else None


@pytest.fixture(name="drawn", params=SEEDS)
def _drawn(request: pytest.FixtureRequest, tmp_path: Path, fake: FakePrime) -> Drawn:
    random = Random(request.param)
    shell = Inside(tmp_path)
    shutil.copytree(ROOT / "configs/qwen3-4b-lora", tmp_path / "configs/qwen3-4b-lora")
    toml = tmp_path / "configs/qwen3-4b-lora/rl.toml"
    toml.write_text(toml.read_text().replace("8192", str(random.choice((4096, 8192, 8192, 65_536, 131_072)))))
    (tmp_path / "configs/run.yaml").write_text(_config(random))
    fake.rows = tuple(_row(random, number) for number in range(12))
    env = {
        "PRIME_API_KEY": fake.api_key,
        "PRIME_API_BASE_URL": fake.url,
        "COLUMNS": "400",
        "HOME": str(tmp_path),
    }
    drawn = Drawn(shell, env)
    if random.random() < 0.7:
        _history(random, drawn)
    return drawn


def _config(random: Random) -> str:
    text = (ROOT / "configs/qwen3-4b-lora.yaml").read_text()
    kinds = random.sample(KINDS, random.randint(1, len(KINDS)))
    text = text.replace("[L40S_48GB]", f"[{', '.join(kinds)}]").replace(
        "steps: 100", f"steps: {random.choice((20, 100, 2000))}"
    )
    text = text.replace("spot: prefer", f"spot: {random.choice(('prefer', 'prefer', 'only', 'never'))}")
    if random.random() < 0.3:
        text = text.replace(
            "  disk_gib: 60", f"  disk_gib: 60\n  usd_per_hour_max: {random.choice((2, 5, 9))}"
        )
    if random.random() < 0.5:
        soon = datetime.fromtimestamp(datetime.now(UTC).timestamp() + random.choice((2, 6, 24)) * 3600, UTC)
        text += f'  deadline: "{soon:%Y-%m-%dT%H:%M:00Z}"\n'
    if random.random() < 0.3:
        text += f"  hours: {random.choice((1, 8, 40))}\n"
    return text.replace("every_steps: 10", f"every_steps: {random.choice((5, 10, 15))}")


def _row(random: Random, number: int) -> GpuRow:
    kind, spot = random.choice(KINDS), random.random() < 0.5
    price = round(random.uniform(0.4, 9.0), 2) + number / 1000
    more: dict[str, Any] = {"socket": "PCIe"} if random.random() < 0.3 else {}
    more |= {"prepaidTime": 24} if random.random() < 0.1 else {}
    return row(kind, random.choice((2, 2, 2, 2, 1, 8)), price, spot=spot, place=f"P-{number}", **more)


def _history(random: Random, drawn: Drawn) -> None:
    """Store runs of the config and of others: losses of machines, measured steps, times of starts."""
    drawn.shell.home.mkdir(parents=True)
    store = SqliteStore(drawn.shell.home / "control.sqlite")
    spec = read_config(drawn.shell.here / "configs/run.yaml").spec
    assert spec is not None
    now_s = store.now_s()
    for number in range(random.randint(1, 4)):
        run = b.run(RunState.STOPPED)
        attempts = tuple(_attempt(random, at, now_s) for at in range(1, random.randint(2, 8)))
        run = replace(run, run_id=f"{run.run_id}{number}", attempts=attempts, attempt=len(attempts))
        assert store.create(replace(run, spec=spec) if random.random() < 0.6 else run)


def _attempt(random: Random, number: int, now_s: int) -> Attempt:
    ordered_s, steps = now_s - number * 90_000, random.choice((0, 3, 40))
    offer = Offer(
        "prime",
        "s",
        2.0,
        random.random() < 0.7,
        random.choice(KINDS),
        2,
        socket=random.choice(("SXM5", "PCIe")),
    )
    cause = random.choice((Cause.PREEMPTED, Cause.PREEMPTED, Cause.MACHINE_LOST, Cause.GPU_HARDWARE))
    attempt = b.new_attempt(number, RunState.QUEUED, offer=offer, launched_s=ordered_s, cause=cause)
    first_s, end_s = ordered_s + random.randint(300, 2000), ordered_s + random.randint(8_000, 80_000)
    attempt = replace(
        attempt, first_heartbeat_s=ordered_s + 200, first_step_s=first_s if steps else None, last_step=steps
    )
    return replace(attempt, last_sign_s=end_s, fenced_s=end_s + 60, ended_s=end_s + 60)


def test_every_face_names_the_same_machine_with_the_same_hours_and_dollars(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry, found = drawn.json("run", "configs/run.yaml", "--dry-run"), drawn.json("find", "configs/run.yaml")
    cost, comment = drawn.json("cost", "configs/run.yaml"), _comment(drawn, monkeypatch)
    machines = {one["offer_id"]: one for one in found["machines"]}
    if cost is None:
        assert not machines
        assert dry is None or not dry["offers"]
        assert "No suitable machine is for rent now" in comment
        return
    best = cost["machines"][0]
    first = found["machines"][0]
    assert first["offer_id"] == best["offer_id"]
    assert found["recommended"] == (first["offer_id"] if first["fits"] in ("yes", "tight") else None)
    for one in cost["machines"]:
        listed, quote = machines[one["offer_id"]], one["to_the_end"]
        assert _same(one["full"]["usd_expected"], listed["usd_expected"], quote["usd"])
        assert _same(one["full"]["hours_expected"], listed["to_the_end"]["hours"], quote["hours"])
        assert (one["full"]["usd"], one["fits"]) == (pytest.approx(listed["usd"], rel=1e-4), listed["fits"])
        assert _says_the_same(quote["why"], listed["to_the_end"]["why"])
    if dry is not None:
        assert [one["offer_id"] for one in dry["offers"]] == list(machines)
        for one in dry["offers"]:
            assert _same(one["to_the_end"]["usd"], machines[one["offer_id"]]["usd_expected"])
            assert _same(one["to_the_end"]["hours"], machines[one["offer_id"]]["to_the_end"]["hours"])
    types, offers = (
        _table(comment, head)
        for head in ("| machine | an hour | time |", "| machine | an hour | to the end |")
    )
    assert [line[0] for line in types] == [one["machine"] for one in cost["machines"]]
    assert types[0][1] == offers[0][1] == usd(best["usd_per_hour"])
    assert offers[0][0].split()[1] == best["offer_id"]
    assert types[0][3] == offers[0][2] == best["to_the_end"]["why"].split(" to the end")[0]


def test_what_a_person_reads_names_the_machine_and_the_figures_of_the_json(drawn: Drawn) -> None:
    cost = drawn.json("cost", "configs/run.yaml")
    if cost is None:
        return
    why = cost["machines"][0]["to_the_end"]["why"]
    faces = [("cost", "configs/run.yaml"), ("run", "configs/run.yaml", "--dry-run")]
    faces += [("find", "configs/run.yaml")] if cost["machines"][0]["fits"] in ("yes", "tight") else []
    for args in faces:
        done = drawn.shell.run(*args, **drawn.env)
        if args[0] != "run" or done.returncode == 0:  # a launch is refused where it certainly does not fit
            assert _timeless(why) in " ".join(done.stdout.split()), args


def test_every_face_tells_the_same_need_of_memory_and_the_same_verdict(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(drawn.shell.here)
    memory, found = drawn.json("memory", "configs/run.yaml"), drawn.json("find", "configs/run.yaml")
    low, _, high = memory["gpu_need_gib"]
    verdicts = {one["gpu"]: one["fits"] for one in memory["kinds"]}
    measured = {
        one["gpu"] for one in (drawn.json("cost", "configs/run.yaml") or {"measured": []})["measured"]
    }
    for one in found["machines"]:
        assert one["need_gib"] == pytest.approx([low, high])
        name = (
            one["gpu"]
            if one["socket"] != "PCIe" or not one["gpu"].startswith(("A100", "H100", "H200"))
            else f"{one['gpu']} PCIe"
        )
        assert one["fits"] == ("yes" if {name, one["gpu"]} & measured else verdicts[one["gpu"]])
    about = [
        finding
        for finding in validate([Path("configs/run.yaml")], drawn.env).findings
        if finding.code in MEMORY_CODES
    ]
    for finding in about:
        assert set(verdicts.values()) & MEMORY_CODES[finding.code], finding
    assert ("no" in verdicts.values()) == bool(
        {"ME201", "ME203", "ME204"} & {finding.code for finding in about}
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("lora", [True, False])
def test_a_model_alone_needs_the_same_whoever_is_asked(
    tmp_path: Path, fake: FakePrime, model: str, count: int, *, lora: bool
) -> None:
    fake.rows = (row("H100_80GB", count, 3.0 * count),)
    env = {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url, "HOME": str(tmp_path)}
    drawn = Drawn(Inside(tmp_path), env)
    option = ["--lora"] if lora else []
    memory = drawn.json("memory", "--model", model, "--gpus", str(count), "--gpu", "H100_80GB", *option)
    found = drawn.json("find", "--model", model, "--gpus", str(count), *option)
    verified = drawn.json("verify-model", model, "--gpu", "h100-80gb", "--gpus", str(count))
    machines: list[dict[str, Any]] = found["machines"] + found["left_out"]
    (machine,) = machines
    (check,) = [one for one in verified["checks"] if one["name"] == f"memory, {'LoRA' if lora else 'full'}"]
    low, _, high = memory["gpu_need_gib"]
    assert machine["need_gib"] == check["need_gib"] == pytest.approx([low, high])
    verdict = memory["kinds"][0]["fits"]
    assert machine["fits"] == verdict
    assert (check["result"] == "yes") == (verdict == "yes")
    assert ("does not fit" in check["message"]) == (verdict in ("no", "unlikely"))


@pytest.mark.parametrize(("model", "preset", "gpus"), INITS)
def test_what_init_writes_needs_what_init_says_whoever_is_asked(
    tmp_path: Path, fake: FakePrime, monkeypatch: pytest.MonkeyPatch, model: str, preset: str, gpus: int
) -> None:
    monkeypatch.chdir(tmp_path)
    drawn = Drawn(
        Inside(tmp_path),
        {"PRIME_API_KEY": fake.api_key, "PRIME_API_BASE_URL": fake.url, "HOME": str(tmp_path)},
    )
    made = prime_rl_settings(Answers(model, preset, gpus, "", 0.0), lora=None, steps=100, ref="", name="made")
    save_files(prime_rl_files(made, Path("configs")), replace=False)
    kind, gb = made.wanted.preset.kind, made.wanted.preset.gb
    fake.rows = (row(kind, gpus, 3.0 * gpus),)
    memory, found = drawn.json("memory", "configs/made.yaml"), drawn.json("find", "configs/made.yaml")
    low, high = memory["trainer"]["band_gib"]
    assert dict(made.reasons)["trainer"] == f"{low:.0f} to {high:.0f} of {gb} GB on each GPU"
    assert [one["fits"] for one in memory["kinds"]] == ["yes"]
    for one in found["machines"]:
        assert (one["fits"], one["need_gib"]) == (
            "yes",
            pytest.approx([memory["gpu_need_gib"][0], memory["gpu_need_gib"][2]]),
        )
    alone = drawn.json("find", "--model", model, "--rl", "--gpus", str(gpus), "--seq-len", str(made.seq_len))
    if made.method == "full":
        (machine,) = alone["machines"] + alone["left_out"]
        parts = memory["trainer"]["phases_gib"]
        assert {phase: machine["need_gib_parts"][phase] for phase in parts} == parts
        assert alone["constraints"]["disk_gib"] <= made.disk_gib
    codes = {finding.code for finding in validate([Path("configs/made.yaml")], drawn.env).findings}
    assert not {code for code in codes if code.startswith(("ME2", "HW105"))}


def test_a_watcher_tries_machines_in_the_order_that_everybody_was_told(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(drawn.shell.here)
    found = drawn.json("find", "configs/run.yaml")
    home = Home(drawn.shell.home, {**drawn.env, "PRIME_TRAIN_PROVIDER": "prime"})
    (loaded,) = load_configs([Path("configs/run.yaml")], drawn.env)
    spec = loaded.spec
    assert spec is not None
    forecast = forecast_of([subject for _, subject in loaded.judged])
    now_s = wall_s()
    run = Run(f"{spec.name}-x7k2p", spec, created_s=now_s, forecast=forecast)
    seen = seen_here(home)
    assert seen is not None
    ranked = rank(offered(drawn.env, spec.hardware).offers, spec.hardware, market=market_of(run, seen, now_s))
    assert [quote.offer.offer_id for quote in ranked.quotes] == [one["offer_id"] for one in found["machines"]]
    for quote, one in zip(ranked.quotes, found["machines"], strict=True):
        assert _same(quote.usd, one["usd_expected"])


def _comment(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(drawn.shell.here)
    (loaded,) = load_configs([Path("configs/run.yaml")], drawn.env)
    seen = seen_here(Home(drawn.shell.home, drawn.env))
    found = review(
        loaded, offers_for(partial(offered, drawn.env), loaded, seen), before={}, after=loaded.sources
    )
    return "\n".join(block(loaded.file, found)).replace("\\", "")


def _table(comment: str, head: str) -> list[list[str]]:
    """Return the cells of the rows below the head of a table."""
    lines = comment.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def _same(*amounts: float) -> bool:
    """Return whether the amounts are the same, but for the seconds that pass from one face to the next, in
    which a history fades.
    """
    return all(amount == pytest.approx(amounts[0], rel=1e-4) for amount in amounts)


def _says_the_same(why: str, other: str) -> bool:
    """Return whether both are the same words with the same figures, but for what a history fades by in a few
    seconds.
    """
    (words, figures), (others, other_figures) = (
        (_FIGURE.sub("", text), [float(one.replace(",", "")) for one in _FIGURE.findall(text)])
        for text in map(_timeless, (why, other))
    )
    return words == others and figures == pytest.approx(other_figures, rel=0.01)


def _timeless(why: str) -> str:
    """Return the reasons without the hours that are left until the deadline, which pass from one face to the
    next.
    """
    return why.partition("; not expected to end by the deadline")[0]
