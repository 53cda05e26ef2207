"""What tests do to the first attempt of a run: it goes no further than step 6, long after it saved step 4, until a file `go` is there."""

import os
import time
from pathlib import Path

STEP = 6
IS_FIRST = os.environ.get("PRIME_TRAIN_ATTEMPT") == "1"


def halt_at(step):
    while IS_FIRST and step == STEP and not Path("go").exists():
        time.sleep(0.05)
    if IS_FIRST and step > STEP and os.environ.get("TROUBLE") == "slow":
        time.sleep(1)
