"""The border from torch to NumPy: `Engine` takes requests and gives frames; the rooms behind it are its own."""

from attnviz.engine.core import Engine
from attnviz.engine.errors import ComputationError

__all__ = ["ComputationError", "Engine"]
