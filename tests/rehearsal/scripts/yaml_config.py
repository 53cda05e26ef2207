"""Takes its settings from a YAML file and key=value; resumes if one of them is a path; JSON lines in a file."""

import json
import pickle
import sys
import time
from pathlib import Path

settings = dict(line.split(": ") for line in Path("yaml_config.yaml").read_text().splitlines())
settings.update(word.split("=", 1) for word in sys.argv[1:])
out = Path(settings["out_dir"])
out.mkdir(exist_ok=True)
step, weights = 0, [0.0] * 900
resume_from = settings["resume_from"]
if resume_from != "null":
    weights, step = pickle.loads(Path(resume_from).read_bytes())
    print("Restored from", resume_from, flush=True)
log = (out / "metrics.jsonl").open("a")
while step < int(settings["max_steps"]):
    weights[step] += 1.0
    step += 1
    time.sleep(0.04)
    log.write(json.dumps({"_step": step, "train/loss": 3 / step, "_runtime": step * 0.04}) + "\n")
    log.flush()
    if step % 20 == 0:
        (out / f"ckpt_{step}.pkl").write_bytes(pickle.dumps((weights, step)))
