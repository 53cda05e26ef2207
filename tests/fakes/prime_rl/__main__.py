"""`rl @ rl.toml ...`: the launcher. Exit code 0: trained to the end, or a crash whose clean-up took too long;
1: everything else.
"""

import signal
import sys
import threading
from types import FrameType

from tests.fakes.prime_rl.deaths import Died, Then
from tests.fakes.prime_rl.folder import open_logs, open_run, write_configs
from tests.fakes.prime_rl.gpu import gpus_there
from tests.fakes.prime_rl.options import Refused, read
from tests.fakes.prime_rl.signs import Signs
from tests.fakes.prime_rl.training import Training


def main() -> int:
    signal.signal(signal.SIGTERM, _leave)
    try:
        options = read(sys.argv[1:])
    except Refused as error:
        print(error, flush=True)
        return 1
    resume = open_run(options)
    write_configs(options)
    if options.dry_run:
        print(
            "SUCCESS Dry run complete. To start an RL run locally, remove --dry-run from your command.",
            flush=True,
        )
        return 0
    if options.gpus > (there := gpus_there()):
        raise ValueError(
            f"Requested {options.gpus} GPUs via deployment settings, but only {there} physical GPU(s) are "
            f"available: {list(range(there))}"
        )
    signs = Signs(options.run_folder, open_logs(options.run_folder), options.heartbeats)
    try:
        Training(options, signs, resume).run()
    except Died as error:
        return _end(error, signs)
    print("SUCCESS Training finished!", flush=True)
    return 0


def _end(error: Died, signs: Signs) -> int:
    death = error.death
    signs.log(death.component, death.line)
    match death.then:
        case Then.FAIL:
            print(f"ERROR Error: {death.component.capitalize()} failed with exit code 1", flush=True)
            print("ERROR Terminating all processes...", flush=True)
            return 1
        case Then.MASK:
            return 0
        case Then.HANG:
            threading.Event().wait()
            return 1


def _leave(_: int, __: FrameType | None) -> None:
    print("WARNING Received SIGTERM, terminating all processes...", flush=True)
    sys.exit(1)


sys.exit(main())
