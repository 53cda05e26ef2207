"""A checkpoint of 20 MB in pieces with pauses, seldom by default: --save-every; in a table of its own."""

import argparse
import csv
import os
import pickle
import time

p = argparse.ArgumentParser()
p.add_argument("--save-every", type=int, default=1000)
p.add_argument("--resume", choices=["auto", "never"], default="never")
a = p.parse_args()
step, path = 0, "exp/state.ckpt"
os.makedirs("exp", exist_ok=True)
if a.resume == "auto" and os.path.exists(path):
    with open(path, "rb") as file:
        step = pickle.load(file)
    print("resume", step, flush=True)
with open("exp/history.csv", "a", newline="") as table:
    rows = csv.writer(table)
    if step == 0:
        rows.writerow(["it", "loss", "seconds"])
    while step < 5000:
        time.sleep(0.03)
        step += 1
        rows.writerow([step, round(3 / step, 5), 0.04])
        table.flush()
        if step % a.save_every == 0:
            with open(path, "wb") as file:
                pickle.dump(step, file)
                for _ in range(4):
                    file.write(os.urandom(5 * 2**20))
                    file.flush()
                    time.sleep(0.1)
