"""python -m attnviz."""

import sys

try:
    from attnviz.cli import main
except KeyboardInterrupt:  # so early that nobody listens yet
    sys.exit(130)

main()
