"""`python -m tests.chaos`: see run.py."""

import sys

from tests.chaos.run import main

sys.exit(main())
