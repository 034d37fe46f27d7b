"""python -m attnviz."""

from attnviz.cli import main

main()
