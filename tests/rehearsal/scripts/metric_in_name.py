"""epoch=E-val_loss=L.ckpt, of which the newest two stay, in a folder with a date and a random word; --ckpt takes a path."""

import argparse
import math
import pickle
import random
import time
from pathlib import Path

p = argparse.ArgumentParser()
p.add_argument("--epochs", type=int, default=40)
p.add_argument("--ckpt", default=None, help="path of a checkpoint to continue training from")
a = p.parse_args()
out = (
    Path("runs")
    / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{random.choice(['brisk', 'calm', 'deft'])}-{random.choice(['owl', 'fox', 'elk'])}-{random.randrange(99)}"
)
out.mkdir(parents=True)
first, weights, mine = 0, [0.0] * 900, []
if a.ckpt:
    weights, first = pickle.loads(Path(a.ckpt).read_bytes())
    print(f"continuing from {a.ckpt}", flush=True)
for epoch in range(first, a.epochs):
    for _ in range(15):
        weights[epoch] += 1.0
        time.sleep(0.03)
    loss = 2 * math.exp(-epoch / 9)
    print(f"epoch {epoch}: train_loss {loss:.4f} val_loss {loss * 1.1:.4f}", flush=True)
    path = out / f"epoch={epoch}-val_loss={loss * 1.1:.4f}.ckpt"
    path.write_bytes(pickle.dumps((weights, epoch + 1)))
    mine.append(path)
    if len(mine) > 2:
        mine.pop(0).unlink()
