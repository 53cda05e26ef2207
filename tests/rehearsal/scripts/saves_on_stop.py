"""One file in place by a rename, saved by a thread while steps go on, and at SIGTERM; a positional argument resumes; dicts."""

import copy
import os
import pickle
import signal
import sys
import threading
import time

state = {"w": [0.0] * 900, "step": 0}
if len(sys.argv) > 1:
    with open(sys.argv[1], "rb") as file:
        state = pickle.load(file)
    print("loaded", sys.argv[1], flush=True)
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())


def save(frozen):
    with open("model.pt.tmp", "wb") as file:
        for piece in range(3):
            file.write(pickle.dumps(frozen)[piece::3])
            time.sleep(0.05)
    with open("model.pt.tmp", "wb") as file:
        pickle.dump(frozen, file)
    os.replace("model.pt.tmp", "model.pt")


while state["step"] < 300 and not stop.is_set():
    state["w"][state["step"] % 900] += 1.0
    time.sleep(0.04)
    state["step"] += 1
    print({"global_step": state["step"], "loss": round(2 / state["step"], 5), "lr": 1e-4}, flush=True)
    if state["step"] % 20 == 0:
        threading.Thread(target=save, args=(copy.deepcopy(state),)).start()
if stop.is_set():
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    save(state)
