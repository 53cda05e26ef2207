"""What tests do to the attempts of a run: the first goes no further than step 6, long after it saved step 4,
until a file `go` is there.
"""

import os
import time
from pathlib import Path

STEP = 6
ATTEMPT = int(os.environ.get("PRIME_TRAIN_ATTEMPT", "0"))
"""0 in a training without an agent."""
TROUBLE = os.environ.get("TROUBLE")


def halt_at(step):
    while ATTEMPT == 1 and step == STEP and not Path("go").exists():
        time.sleep(0.05)
    if ATTEMPT == 1 and step > STEP and TROUBLE == "slow":
        time.sleep(1)
