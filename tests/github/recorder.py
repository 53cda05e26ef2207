"""A replacement of `prime-train` for tests of what an action passes to it: prints that as JSON, and answers
as a command would.
"""

import json
import os
import sys

TOLD = ("PRIME_TRAIN_", "WANDB_", "DISCORD_", "GITHUB_TOKEN", "AWS_", "INPUT_")
CHANGED = ["configs/changed.yaml"]
"""The configs that it reports as changed by a pull request."""

reported = {
    name: value
    for name, value in os.environ.items()
    if name.startswith(TOLD) and name != "PRIME_TRAIN_TESTS_WARM"
}
print(json.dumps({"arguments": sys.argv[1:], "environment": reported}))
if sys.argv[1:] == ["gha", "validate"]:
    named = reported["PRIME_TRAIN_INPUT_PATHS"]
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as outputs:  # noqa: PTH123 - starts without pathlib, in half the time
        outputs.write(f"configs={json.dumps([named] if named else CHANGED)}\n")
