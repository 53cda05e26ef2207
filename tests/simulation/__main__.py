"""`python -m tests.simulation`."""

import sys

from tests.simulation.simulate import main

sys.exit(main())
