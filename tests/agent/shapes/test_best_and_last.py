"""A trainer that keeps its best checkpoint and deletes its last one when it ends, as that of transformers
does with `save_total_limit: 1` and `load_best_model_at_end`.

Agent, bucket and trainer are real.
"""

from pathlib import Path

from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.catalog import Reader
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from tests.agent.attempts import RUN_ID, attempt
from tests.agent.checkpoints.formats import tensors, zipped
from tests.waiting import await_true

BEST, LAST = 4, 12
SCRIPT = f"""\
import json, os, shutil, sys, time
from pathlib import Path

out = Path(sys.argv[sys.argv.index("--output_dir") + 1])
for step in range(1, {LAST + 1}):
    print(f"step {{step}} loss {{1 / step}}", flush=True)
    if step % 4 == 0:
        made = out / f"checkpoint-{{step}}"
        made.mkdir(parents=True)
        shutil.copy("weights", made / "model.safetensors")
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            shutil.copy("archive", made / name)
        state = {{"global_step": step, "best_model_checkpoint": f"{{out}}/checkpoint-{BEST}"}}
        (made / "trainer_state.json").write_text(json.dumps(state))
        for older in out.glob("checkpoint-*"):
            if older.name not in (made.name, "checkpoint-{BEST}"):
                shutil.rmtree(older)
while not os.path.exists("go"):
    time.sleep(0.05)
shutil.rmtree(made)
"""


def test_the_best_and_the_last_checkpoint_are_both_durable_though_the_trainer_deletes_the_last(
    tmp_path: Path,
) -> None:
    wanted = RunSpec.model_validate(
        {
            "name": "tiny",
            "trainer": {
                "kind": "hf",
                "command": "train.py --output_dir {checkpoints}",
                "steps": LAST,
                "progress": {"kind": "regex", "pattern": r"^step (?P<step>\d+) loss (?P<loss>[\d.]+)"},
            },
            "checkpoints": {"every_steps": 4, "keep": 1, "settled_s": 1},
            "hardware": {"open_files_min": 256, "disk_gib": 1},
            "health": {"heartbeat_s": 1, "overdue_s": 3, "silence_s": 10},
            "budget": {"usd": 5.0},
        }
    )
    files = {"train.py": SCRIPT.encode(), "weights": tensors(b"weights" * 99), "archive": zipped(b"state")}
    with attempt(tmp_path, wanted, files=files) as here:
        await_true(
            "the last checkpoint is committed", lambda: any(one.step == LAST for one in here.plane.commits)
        )
        (here.disk / "work" / "go").touch()
        assert here.wait() == 0
        exit_ = here.plane.exits[-1].exit
        assert exit_ is not None
        assert (exit_.cause, exit_.saved_step) == (Cause.FINISHED, LAST), exit_
    catalog = Reader(FolderBucket(tmp_path / "bucket"), RUN_ID).catalog()
    assert sorted(manifest.step for manifest in catalog.complete()) == [BEST, LAST]
