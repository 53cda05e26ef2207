"""`python -m tests.market`."""

import sys

from tests.market.comparison import main

sys.exit(main())
