"""Damaged files by the million: ``python -m tests.fuzz KIND --cases 1000000``."""

import sys

from tests.fuzz.running import main

sys.exit(main())
