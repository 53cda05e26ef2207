"""G_N.pth and D_N.pth, of which it finds the newest of each by itself; a line of a logger with a date and time."""

import glob
import logging
import math
import os
import pickle
import re
import time

logging.basicConfig(format="%(asctime)s\t%(name)s\t%(levelname)s\t%(message)s", level=logging.INFO)
log = logging.getLogger("44k")


def newest(prefix):
    found = glob.glob(f"logs/44k/{prefix}_*.pth")
    return max(found, key=lambda path: int(re.findall(r"\d+", os.path.basename(path))[0]), default=None)


os.makedirs("logs/44k", exist_ok=True)
step, nets = 0, {"G": [0.0] * 800, "D": [0.0] * 600}
for prefix in nets:
    if newest(prefix):
        with open(newest(prefix), "rb") as file:
            nets[prefix], step = pickle.load(file)
        log.info("Loaded checkpoint '%s' (iteration %s)", newest(prefix), step)
while step < 200:
    nets["G"][step % 800] += 1.0
    time.sleep(0.04)
    if step % 5 == 0:
        log.info("Train Epoch: %s [%.0f%%]", 1 + step // 50, 100 * (step % 50) / 50)
        log.info("Losses: %s, step: %s, lr: 0.0001", [round(2 * math.exp(-step / 90), 4), 0.5], step)
    if step % 20 == 0 and step > 0:
        for prefix, net in nets.items():
            log.info(
                "Saving model and optimizer state at iteration %s to logs/44k/%s_%s.pth", step, prefix, step
            )
            with open(f"logs/44k/{prefix}_{step}.pth", "wb") as file:
                pickle.dump((net, step), file)
            old = f"logs/44k/{prefix}_{step - 60}.pth"
            if os.path.exists(old):
                os.remove(old)
    step += 1
