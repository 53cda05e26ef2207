"""rl_model_N_steps.zip and files of its normalisation and replay after it; tables between rules; steps of four environments."""

import math
import os
import pickle
import re
import time
import zipfile

os.makedirs("logs/models", exist_ok=True)
found = [
    int(re.findall(r"\d+", name)[0]) for name in os.listdir("logs/models") if name.endswith("_steps.zip")
]
steps, weights = 0, [0.0] * 800
if found:
    steps = max(found)
    with zipfile.ZipFile(f"logs/models/rl_model_{steps}_steps.zip") as archive:
        weights = pickle.loads(archive.read("policy.pth"))
    with open(f"logs/models/rl_model_vecnormalize_{steps}_steps.pkl", "rb") as file:
        pickle.load(file)
    print(f"Loading rl_model_{steps}_steps.zip", flush=True)
rollouts = 0
while steps < 40_000:
    for _ in range(32):
        time.sleep(0.004)
        steps += 4
        if steps % 512 == 0:
            with zipfile.ZipFile(f"logs/models/rl_model_{steps}_steps.zip", "w") as archive:
                archive.writestr("data", "{}")
                archive.writestr("policy.pth", pickle.dumps(weights))
            for name in ("vecnormalize", "replay_buffer"):
                with open(f"logs/models/rl_model_{name}_{steps}_steps.pkl", "wb") as file:
                    pickle.dump(weights, file)
    rollouts += 1
    weights[rollouts % 800] += 1.0
    rows = (
        f"| rollout/           |          |\n|    ep_rew_mean     | {100 - 90 * math.exp(-steps / 2000):<8.3g} |\n"
        f"| time/              |          |\n|    fps             | 987      |\n|    iterations      | {rollouts:<8} |\n"
        f"|    time_elapsed    | 3        |\n|    total_timesteps | {steps:<8} |\n| train/             |          |\n"
        f"|    loss            | {2 * math.exp(-steps / 3000):<8.3g} |"
    )
    print("-" * 33 + "\n" + rows + "\n" + "-" * 33, flush=True)
