"""save/step_N/ with CKPT.yaml FIRST and the arrays later; folders without a complete set are ignored; abbreviated numbers in the lines."""

import math
import pickle
import time
from pathlib import Path

save = Path("results/1986/save")
units = sorted(save.glob("step_*"), key=lambda one: int(one.name[5:]))
units = [
    one
    for one in units
    if all((one / name).exists() for name in ("brain.ckpt", "model.ckpt", "optimizer.ckpt"))
]
step, weights = 0, [0.0] * 700
if units:
    step = int(units[-1].name[5:])
    weights = pickle.loads((units[-1] / "model.ckpt").read_bytes())
    print(f"Loading a checkpoint from {units[-1]}", flush=True)
while step < 20_000:
    weights[step % 700] += 1.0
    time.sleep(0.03)
    step += 100
    print(
        f"INFO {time.strftime('%Y-%m-%d %H:%M:%S')} ot_train.py:163 step:{step if step < 1000 else f'{step / 1000:.1f}K'} smpl:{step * 8 / 1000:.0f}K ep:{step // 50} loss:{3 * math.exp(-step / 9000):.3f} grdn:1.21 lr:1.0e-05",
        flush=True,
    )
    if step % 1500 == 0:
        unit = save / f"step_{step}"
        unit.mkdir(parents=True)
        (unit / "CKPT.yaml").write_text(f"# yamllint disable\nend-of-epoch: true\nunixtime: {time.time()}\n")
        for name in ("brain.ckpt", "optimizer.ckpt", "model.ckpt"):
            time.sleep(0.02)
            (unit / name).write_bytes(pickle.dumps(weights))
